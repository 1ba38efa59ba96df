"""Faults of the stored bytes: rows that cannot be read, and entries that are not as their rows are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.core.errors import Conflict, StoreCorrupt
from tenure.core.records import KINDS, Row, Task
from tenure.stores.valkey import keys as names
from tenure.stores.valkey.keys import Keys
from tenure.stores.valkey.rows import INDEXES, decoded, entry, unique_values

if TYPE_CHECKING:
    from tenure.stores.valkey.store import Valkey
    from tenure.stores.valkey.transaction import ValkeyTransaction

_TRIES = 10


def faults(store: Valkey, tenant: str) -> list[str]:
    """Reads everything of the tenant, of one moment."""
    for _ in range(_TRIES):
        try:
            with store.begin(tenant, write=False) as transaction:
                return [f"{tenant}: {fault}" for fault in _found(transaction, store.keys_of(tenant), store.url)]
        except Conflict:
            continue
    return [f"{tenant}: not checked, as others kept writing"]


def _found(transaction: ValkeyTransaction, keys: Keys, url: str) -> Iterator[str]:
    for project in transaction.projects():
        values: dict[bytes, bytes] = {}
        tasks: list[Task] = []
        for kind in KINDS:
            rows = []
            (stored,) = transaction.raw(project, ("HGETALL", keys.rows(KINDS[kind].table, project)))
            for id, data in zip(stored[::2], stored[1::2], strict=True):
                try:
                    row: Row = decoded(kind, data, url)
                except StoreCorrupt as error:
                    yield error.message
                    continue
                if (row.project, row.id) != (project, id.decode()):
                    yield f"{KINDS[kind].table} {project}/{id.decode()} says that it is {row.project}/{row.id}"
                rows.append(row)
                values.update(dict.fromkeys(unique_values(row), row.id.encode()))
            if kind is Task:
                tasks = rows  # type: ignore[assignment]  # the kind's own
            for field in INDEXES.get(kind, ()):
                expected = {found.member for row in rows if (found := entry(keys, row, field)) is not None}
                key = keys.index(KINDS[kind].table, field, project)
                yield from _differences(transaction, project, key, expected)
        (stored,) = transaction.raw(project, ("HGETALL", keys.unique(project)))
        wrong = len({*zip(stored[::2], stored[1::2], strict=True)} ^ {*values.items()})
        if wrong:
            yield f"{project}: {wrong} unique values are not as their rows are"
        yield from _differences(
            transaction,
            project,
            keys.due(project),
            {names.number(task.due_at) + task.id.encode() for task in tasks if task.due_at is not None},
        )
        lanes: dict[str, set[bytes]] = {}
        for task in tasks:
            if task.lane is not None:
                lanes.setdefault(task.lane, set()).add(names.place_of(task))
        yield from _differences(transaction, project, keys.lanes(project), {lane.encode() for lane in lanes})
        for lane, places in lanes.items():
            yield from _differences(transaction, project, keys.lane(project, lane), places)
        yield from _of_log(transaction, keys, project)


def _differences(transaction: ValkeyTransaction, project: str, key: bytes, expected: set[bytes]) -> Iterator[str]:
    (members,) = transaction.raw(project, ("ZRANGE", key, 0, -1))
    wrong = len(expected.symmetric_difference(members))
    if wrong:
        yield f"{wrong} entries of {key.decode(errors='replace')} are not as their rows are"


def _of_log(transaction: ValkeyTransaction, keys: Keys, project: str) -> Iterator[str]:
    """Both streams have the same sequences."""
    (events,) = transaction.raw(project, ("XRANGE", keys.log_of(project), "-", "+"))
    (places,) = transaction.raw(project, ("XRANGE", keys.log, "-", "+"))
    here = {id for id, fields in places if fields[1].decode() == project}
    wrong = len(here.symmetric_difference(id for id, _ in events))
    if wrong:
        yield f"{project}: {wrong} events are in one log and not in the other"
