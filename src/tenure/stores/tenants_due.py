"""`Store.tenants_due` for stores that read it tenant by tenant: a leader asks once, when it begins."""

from __future__ import annotations

from collections.abc import Collection

from tenure.core.errors import Conflict
from tenure.core.filters import Range
from tenure.core.records import Cursor, Schedule, Sink
from tenure.stores.port import ForLeader, Store, Transaction

TRIES = 3  # reads of one tenant that others tear


def tenants_due(store: Store, tenants: Collection[str], until: int, since: int) -> dict[str, ForLeader]:
    found: dict[str, ForLeader] = {}
    for tenant in tenants:
        one = _of(store, tenant, until, since)
        if one.is_changed or one.at is not None:
            found[tenant] = one
    return found


def _of(store: Store, tenant: str, until: int, since: int) -> ForLeader:
    for _ in range(TRIES):
        try:
            with store.begin(tenant, write=False) as tx:
                return _first(tx, until, since)
        except Conflict:  # a store without snapshots, where another commit came in between
            continue
    return ForLeader(0, True)  # it is written all the time


def _first(tx: Transaction, until: int, since: int) -> ForLeader:
    is_changed = any(event.time > since for event in tx.events({}, limit=1, last=True))
    if bool(tx.find(Sink, {}, limit=1)) or bool(tx.find(Cursor, {}, limit=1)):
        return ForLeader(0, is_changed)
    tasks = [task.due_at for task in tx.due(None, until, 1)]
    schedules = [row.next_at for row in tx.find(Schedule, {"next_at": Range(high=until + 1)}, order="next_at", limit=1)]
    return ForLeader(min((at for at in (*tasks, *schedules) if at is not None), default=None), is_changed)
