"""Tenants as a process sees them: the row of one, its limits, and the engines of all tenants of a store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from tenure.core import limits, tenants
from tenure.core.errors import Conflict, InvalidInput, NotHome, StoreError, StoreUnavailable
from tenure.core.filters import Present
from tenure.core.records import STORE, Tenant, replace
from tenure.core.tenant_limits import of_tenant
from tenure.core.tenant_records import HOME
from tenure.stores.port import TENANTS, Schemas, Store

if TYPE_CHECKING:
    from tenure.artifacts.port import Artifacts
    from tenure.engine.runtime.engine import Engine
    from tenure.engine.runtime.unit_of_work import UnitOfWork

KEPT = limits.KEY_CACHE
OpenUrl = Callable[[str], Store]
STORE_PATH = "store"  # where the URL of a tenant's own store is sealed, in its row


def store_owner(name: str) -> str:
    """The owner text of a tenant's sealed URL."""
    return f"tenant:{name}"


def open_own(home: Engine, row: Tenant, open_url: OpenUrl) -> Store:
    """The store of a tenant whose rows are not in the home store. `home` is the home tenant's engine."""
    if row.isolation == tenants.SCHEMA and row.schema is not None:
        return cast("Schemas", home.store).in_schema(row.schema)
    return open_url(url_of(home, row.id, row.store))


def place_of(row: Tenant) -> bytes:
    """Where the rows of such a tenant are: a sealed URL, or a schema of the home store."""
    return row.store or (row.schema or "").encode()


def url_of(home: Engine, name: str, sealed: bytes) -> str:
    """The URL of a tenant's own store. Raises SecretUnreadable."""
    from tenure.engine.runtime.seals import open_sealed

    def ask(work: UnitOfWork) -> bytes:
        return open_sealed(work, STORE, store_owner(name), STORE_PATH, sealed)

    return home.read_settled((), ask).decode()


def check_open(store: Store, name: str) -> Tenant:
    """The tenant's row; NotFound where there is none, or it is closed."""
    if TENANTS not in store.features:
        raise InvalidInput(f"tenant {name[:80]!r}: this store keeps only the tenant {HOME}", tenants.SEVERAL)
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


def is_far(row: Tenant) -> bool:
    """Whether the tenant's rows are in another store than its row."""
    return row.isolation != tenants.LOGICAL


def region_refused(engine: Engine) -> str | None:
    """The home of the engine's tenant, where this process is not there; None where it is."""
    return None if engine.context.elsewhere is None else engine.context.elsewhere().region


class TenantLimits:
    """The limits of one tenant, and whether it is open, as its row was at most two seconds before.

    Safe to use from several threads.
    """

    def __init__(self, store: Store, row: Tenant, monotonic: Callable[[], float]) -> None:
        self._store, self._tenant, self._monotonic = store, row.id, monotonic
        self._values: Mapping[str, int] = of_tenant(row)
        self._is_open = tenants.is_open(row)
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
            self._values, self._is_open = of_tenant(row), tenants.is_open(row)

    def check_open(self) -> None:
        """NotFound for a tenant that was closed since its engine was made: nobody goes on in it."""
        self.refresh()
        if not self._is_open:
            raise tenants.unknown(self._tenant)


class Router(Protocol):
    """The stores of tenants that have their own: see `stores/router.py`."""

    def find(self, name: str, place: bytes) -> Store | None: ...

    def store(self, name: str, place: bytes, opened: Callable[[OpenUrl], Store]) -> Store: ...

    def close_one(self, name: str, store: Store | None = None) -> None: ...


class TenantEngines:
    """The engines of a store's tenants, each made with its first use. Safe to use from several threads.

    At most `limits.TENANT_ENGINES` are kept: an engine holds nothing that another could not read again.
    """

    def __init__(
        self,
        home: Engine,
        monotonic: Callable[[], float],
        artifacts_of: Callable[[str], Callable[[str], Artifacts] | None] | None = None,
        *,
        fresh: Callable[[], Mapping[str, Any]] = dict,
        router: Router | None = None,
        elsewhere: Callable[[Tenant], NotHome | None] = lambda _: None,
    ) -> None:
        """`artifacts_of`: the artifact stores of a tenant; by default the home tenant's. `fresh`: what each engine's
        own context has. `router` opens the stores of tenants that have their own; without it they are
        unavailable here. `elsewhere`: what writes are refused with, of a tenant whose home is in another region.
        """
        self._elsewhere = elsewhere
        self.home, self._monotonic, self._fresh, self._router = home, monotonic, fresh, router
        self._artifacts_of = artifacts_of or (lambda _: home.context.artifacts)
        self._made: OrderedDict[str, Engine] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def keeps_tenants(self) -> bool:
        return TENANTS in self.home.store.features

    def rows(self) -> list[Tenant]:
        """All open tenants beside the home tenant, by name."""
        if not self.keeps_tenants:
            return []
        where = {"project": "", "closed_at": Present(False)}
        return self.home.read(lambda tx: tx.find(Tenant, where, limit=limits.TENANTS))

    def find(self, name: str) -> Engine:
        """The engine of an open tenant; NotFound where there is none of that name."""
        return self.home if name == HOME else self.of(check_open(self.home.store, name))

    def is_at_hand(self, row: Tenant) -> bool:
        """Whether `of` returns at once: it has no separate store, or that is open."""
        return not is_far(row) or (self._router is not None and self._router.find(row.id, place_of(row)) is not None)

    def close_one(self, name: str, store: Store | None = None) -> None:
        """Close the tenant's own store; its next use opens it again. `store`: unless it has another by now."""
        with self._lock:
            made = self._made.get(name)
            if made is not None and store in (None, made.store):
                del self._made[name]
        if self._router is not None:
            self._router.close_one(name, store)

    def of(self, row: Tenant) -> Engine:
        """The tenant's engine. One with its own store may open that here: StoreUnavailable where it cannot."""
        store = self._own_store(row) if is_far(row) else self.home.store
        with self._lock:
            found = self._made.get(row.id)
            if found is None or found.store is not store or not self._is_as_before(row, found):
                found = self._made[row.id] = self._new(row, store)
            self._made.move_to_end(row.id)
            while len(self._made) > limits.TENANT_ENGINES:
                self._made.popitem(last=False)
            return found

    def _is_as_before(self, row: Tenant, engine: Engine) -> bool:
        now = self._elsewhere(row)
        return region_refused(engine) == (None if now is None else now.region)

    def _own_store(self, row: Tenant) -> Store:
        if self._router is None:
            raise StoreUnavailable(f"tenant {row.id} has its own store, which this process does not open")
        return self._router.store(row.id, place_of(row), lambda open_url: open_own(self.home, row, open_url))

    def _new(self, row: Tenant, store: Store) -> Engine:
        own: dict[str, Any] = {
            "tenant": row.id, "limits": TenantLimits(self.home.store, row, self._monotonic), "optimism": None,
        }  # fmt: skip
        refusal = self._elsewhere(row)
        if refusal is not None:
            own["elsewhere"] = partial(NotHome, refusal.message, refusal.hint, region=refusal.region, home=refusal.home)
        context = replace(self.home.context, **own, **self._fresh(), artifacts=self._artifacts_of(row.id))
        return type(self.home)(store, self.home.random, context)
