"""The row of a tenant, read in the home tenant by a process that works in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tenure.core import limits, tenants
from tenure.core.errors import Conflict, InvalidInput, StoreError
from tenure.core.records import Tenant
from tenure.core.tenant_limits import of_tenant
from tenure.core.tenant_records import HOME
from tenure.stores.port import TENANTS, Store

KEPT = limits.KEY_CACHE


def check_open(store: Store, name: str) -> Tenant:
    """The tenant's row; NotFound where there is none, or it is closed."""
    if TENANTS not in store.features:
        raise InvalidInput(f"tenant {name[:80]!r}: this store keeps only the tenant {HOME}")
    row = row_of(store, name)
    if row is None or not tenants.is_open(row):
        raise tenants.unknown(name)
    return row


def row_of(store: Store, name: str) -> Tenant | None:
    if len(name) > limits.TENANT_NAME:
        return None
    for last in (False, False, True):
        try:
            with store.begin(HOME, write=False) as tx:
                found = tx.load(Tenant, [("", name)])
            return found[0] if found else None
        except Conflict:  # a store without snapshots, where another commit came in between
            if last:
                raise
    return None


class TenantLimits:
    """The limits of one tenant, as its row had them at most two seconds before. Safe to use from several threads."""

    def __init__(self, store: Store, row: Tenant, monotonic: Callable[[], float]) -> None:
        self._store, self._tenant, self._monotonic = store, row.id, monotonic
        self._values: Mapping[str, int] = of_tenant(row)
        self._read_at = monotonic()

    def __call__(self) -> Mapping[str, int]:
        return self._values

    def refresh(self) -> None:
        """Read the row again if it is old; while the store is unavailable the last values apply."""
        now = self._monotonic()
        if now - self._read_at < KEPT:
            return
        self._read_at = now
        try:
            row = row_of(self._store, self._tenant)
        except StoreError:
            return
        if row is not None:
            self._values = of_tenant(row)
