"""`new_epoch`: one epoch of every tenant of a store, also of those that have their own schema of the same server."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tenure.core import tenants
from tenure.core.errors import TenureError
from tenure.core.records import Tenant, replace
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.runtime.epoch import Begun
from tenure.engine.runtime.tenancy import TenantEngines, is_far, open_own
from tenure.stores.open_store import open_store


class NewEpoch(NamedTuple):
    """What `Client.new_epoch` has begun. Receipts of before are void in `tenants`, and in no others.

    `epoch`: the id of the client's own tenant; each has another. `unrecorded`: those of them whose log does not have
    it, and where claims end with their leases. `elsewhere`: tenants with a store that the epoch is not
    of, because it has another server, or could not be opened.
    """

    epoch: str
    tenants: tuple[str, ...]
    unrecorded: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def begin(engine: Engine, why: str, *, alone: bool, monotonic: Callable[[], float]) -> NewEpoch:
    """`alone`: of the engine's tenant."""
    begun = engine.new_epoch(why, alone=alone)
    covered, elsewhere = {*begun.tenants}, set[str]()
    if not alone:
        home = Engine(engine.store, engine.random, replace(engine.context, tenant=HOME, limits=None))
        for row in filter(is_far, TenantEngines(home, monotonic).rows()):
            found = _begun_in_schema(home, row, why) if row.isolation == tenants.SCHEMA else None
            if found is None:
                elsewhere.add(row.id)
            else:
                covered.update(found.tenants)
    return NewEpoch(begun.epoch, tuple(sorted(covered - elsewhere)), begun.unrecorded, tuple(sorted(elsewhere)))


def _begun_in_schema(home: Engine, row: Tenant, why: str) -> Begun | None:
    """None where the tenant's tables could not be opened, or its epoch could not begin."""
    try:
        store = open_own(home, row, open_store)
        try:
            return Engine(store, home.random, replace(home.context, tenant=row.id)).new_epoch(why)
        finally:
            store.close()
    except TenureError:
        return None
