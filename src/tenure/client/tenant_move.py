"""`move_tenant`: move a tenant to another store or region, from a process that opens both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tenure.client.caller import StoreOnly, SystemRandom, is_server
from tenure.client.transports.local import LazySealer
from tenure.core import tenants
from tenure.core.errors import InvalidInput, close_all
from tenure.core.records import Tenant, replace
from tenure.engine import Context, Engine, Random
from tenure.engine.runtime.tenancy import row_of, url_of
from tenure.engine.tenant_move import MovedTenant, MoverEngine, NewPlace, Step, begin, call_off, finish
from tenure.stores.open_store import open_store
from tenure.stores.port import Store

HERE = "home"  # --to home: back to the tables of all tenants, in the home store


class _Stores:
    """The tenant's engines, in the home store and elsewhere."""

    def __init__(self, home: Engine, name: str, open: Callable[[str], Store]) -> None:
        self._home, self._name, self._open = home, name, open
        self._made: dict[bytes, MoverEngine] = {}

    def at(self, isolation: str, store: bytes) -> MoverEngine:
        found = self._made.get(store)
        if found is None:
            opened = (
                self._open(url_of(self._home, self._name, store)) if isolation == tenants.INSTANCE else self._home.store
            )
            context = replace(self._home.context, tenant=self._name)
            found = self._made[store] = MoverEngine(opened, self._home.random, context)
        return found

    def close(self) -> None:
        close_all(*(made.store.close for made in self._made.values() if made.store is not self._home.store))


@contextmanager
def _opened(url: str, name: str, random: Random | None) -> Iterator[tuple[Engine, _Stores]]:
    if is_server(url):
        raise StoreOnly(f"tenant move: {url} is a server, not a store", "run it on its host, with its store's URL")
    store = open_store(url, create=False)
    sealer: Any = LazySealer(url)
    home = Engine(store, random or SystemRandom(), Context(sealer=sealer))
    stores = _Stores(home, name, open_store)
    try:
        yield home, stores
    finally:
        close_all(stores.close, store.close)


def target_of(row: Tenant | None, to: str | None, store: str | None) -> NewPlace:
    """What `--to` and `--store` mean: a region, a store's URL, or `home`; a region may come with a store."""
    if to is None:
        raise InvalidInput("no move is under way: name the new store or region", "--to REGION --store URL")
    if "://" in to:
        return NewPlace(to, None if row is None else row.region)
    if to == HERE:
        return NewPlace(None, None)
    if store is None:
        raise InvalidInput(
            f"region {to} needs the URL of the tenant's store there",
            "--store postgresql://…; - reads it from stdin, home means the store of all tenants",
        )
    return NewPlace(None if store == HERE else store, to)


def move_tenant(
    url: str,
    name: str,
    *,
    to: str | None = None,
    store: str | None = None,
    promoted: bool = False,
    step: Step = lambda _: None,
    random: Random | None = None,
) -> MovedTenant:
    """Move a tenant of the deployment whose home store is at `url`; finish a move that was interrupted.

    `to`: a store's URL, `home` for the home store, or a region, with the URL of its store in `store`.
    """
    with _opened(url, name, random) as (home, stores):
        row = row_of(home.store, name)
        if row is None or not row.moving:
            begin(home, name, target_of(row, to, store))
            step("begin")
        elif to is not None:
            step(f"move {row.moves} is under way: finishing it")
        return finish(home, name, stores, step, promoted=promoted)


def stay(url: str, name: str, *, random: Random | None = None) -> Tenant:
    """Call off the move of a tenant that is under way."""
    with _opened(url, name, random) as (home, stores):
        return call_off(home, name, stores)
