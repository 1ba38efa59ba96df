"""The row of a tenant, read in the home tenant by a process that works in another."""

from __future__ import annotations

from tenure.core import limits, tenants
from tenure.core.errors import InvalidInput
from tenure.core.records import Tenant
from tenure.core.tenant_records import HOME
from tenure.stores.port import TENANTS, Store


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
    with store.begin(HOME, write=False) as tx:
        found = tx.load(Tenant, [("", name)])
    return found[0] if found else None
