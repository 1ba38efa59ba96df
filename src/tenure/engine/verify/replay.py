"""Replay: the event log alone gives the tables back.

Left out are rows without events (remembered requests, cooled models, large bodies, archived tasks) and fields that
events omit on purpose: nonces, renewals and presence. What follows from other rows is computed
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec

from tenure.core import graph
from tenure.core.decoders import converted
from tenure.core.events import Event
from tenure.core.former_names import TaskFields
from tenure.core.records import KINDS, Archived, Dag, Edge, Row, Task

R = TypeVar("R", bound=Row)
TASK = KINDS[Task].table
# In place of a field that the log does not have.
_UNKNOWN: dict[str, Any] = {"nonce": b"", "lease": 0, "until": 0, "last_seen": 0, "last_activity": 0}

Key = tuple[str, str]  # project and id
_Gone = tuple[str, str, str, str | None]  # project, id, state and dag of an archived task
Fields = MutableMapping[tuple[str, str, str], dict[str, Any] | TaskFields]  # table, project, id → values


class Tables(Protocol):
    """The rows of each kind, by project and id."""

    def __getitem__(self, kind: type[R], /) -> Mapping[Key, R]: ...

    def items(self) -> Iterable[tuple[type[Row], Mapping[Key, Row]]]: ...


def replay(events: Iterable[Event], archived: Iterable[Archived] = (), fields: Fields | None = None) -> Tables:
    """The rows that the events, in their order, produce; each is built when it is requested.

    Of `archived` tasks, whose events went with them, only what other rows derive from is taken. `fields`: an empty
    mapping to keep the values in, if they must not stay in memory.
    """
    fields = {} if fields is None else fields
    apply(events, fields)
    return tables_of(fields, archived)


def apply(events: Iterable[Event], fields: Fields) -> None:
    """Bring the values up to the last of these events."""
    for event in events:
        for table, id, changes in event.patch:
            key = (table, event.project, id)
            if changes is None:
                fields.pop(key, None)
                continue
            values = fields.get(key)
            if values is None:
                values = TaskFields() if table == TASK else {}
            values.update(changes)
            fields[key] = values


def tables_of(fields: Fields, archived: Iterable[Archived] = ()) -> Tables:
    """The rows with these values, and what follows from other rows."""
    keys: dict[str, dict[Key, None]] = {kind.table: {} for kind in KINDS.values()}
    for table, project, id in fields:
        keys[table][project, id] = None
    tables = {row: _Replayed(row, kind.table, keys[kind.table], fields) for row, kind in KINDS.items()}
    rows: Tables = tables  # type: ignore[assignment]  # rows of a kind under their kind
    gone = [(row.project, row.id, row.state, row.dag) for row in archived if not row.out]
    tables[Task].counts = _counts(rows, gone)
    tables[Dag].parts = _parts(rows, gone)
    return rows


class _Replayed(Mapping[Key, Row]):
    """The rows of one kind."""

    def __init__(self, kind: type[Row], table: str, keys: dict[Key, None], fields: Fields) -> None:
        self._kind, self._table, self._keys, self._fields = kind, table, keys, fields
        self.counts: dict[Key, dict[str, int]] = {}  # task → counts derived from other rows
        self.parts: dict[Key, Counter[str]] = {}  # dag → tasks by state

    def __getitem__(self, key: Key) -> Row:
        kept = self._fields[self._table, *key]
        row = row_of(self._kind, key, kept.values if isinstance(kept, TaskFields) else kept)
        if key in self.counts:
            row = msgspec.structs.replace(row, **self.counts[key])
        if isinstance(row, Dag):
            for part in self.parts.get(key, Counter()).elements():
                row = graph.counted(row, None, part)
        return row

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def row_of(kind: type[R], key: Key, values: Mapping[str, Any]) -> R:
    """The row with these values; fields that the log does not have are zero or empty."""
    return converted({**_unknown(kind), "project": key[0], "id": key[1], **values}, kind)


@cache
def _unknown(kind: type[Row]) -> dict[str, Any]:
    return {f: v for f, v in _UNKNOWN.items() if f in kind.__struct_fields__}


def _counts(rows: Tables, archived: Sequence[_Gone]) -> dict[Key, dict[str, int]]:
    """Counts of tasks that follow from edges and parents."""
    states = {(project, id): state for project, id, state, _ in archived}
    zero = {"waits_on": 0, "unmet": 0, "dependents": 0, "children": 0, "lineage": 1}
    counts = {key: zero.copy() for key in rows[Task]}
    for (project, id), task in rows[Task].items():
        states[project, id] = task.state
        if task.parent is not None:
            counts[project, task.parent]["children"] += 1
            counts[project, task.root or ""]["lineage"] += 1
    for (project, _), edge in rows[Edge].items():
        counts[project, edge.task]["waits_on"] += 1
        counts[project, edge.task]["unmet"] += not graph.is_met(edge, states[project, edge.needs])
        if (project, edge.needs) in counts:
            counts[project, edge.needs]["dependents"] += 1
    return counts


def _parts(rows: Tables, archived: Sequence[_Gone]) -> dict[Key, Counter[str]]:
    """The tasks of each dag, by state."""
    parts: dict[Key, Counter[str]] = {key: Counter() for key in rows[Dag]}
    found = [(task.project, task.dag, graph.part(task)) for task in rows[Task].values()]
    for project, dag, part in (*found, *((project, dag, state) for project, _, state, dag in archived)):
        if dag is not None and (project, dag) in parts:
            parts[project, dag][part] += 1
    return parts


def differences(replayed: Tables, stored: Tables) -> list[str]:
    """Where the stored rows differ from the log; empty when the log gives the tables back."""
    found = []
    worked_out = {Task: {"waits_on", "unmet", "dependents", "children", "lineage"}, Dag: set(KINDS[Dag].unlogged)}
    for kind, rows in stored.items():
        if not KINDS[kind].logged:
            continue
        hidden = KINDS[kind].unlogged - worked_out.get(kind, set())
        names = [f for f in kind.__struct_fields__ if f not in hidden]
        for key in rows.keys() | replayed[kind].keys():
            mine, theirs = replayed[kind].get(key), rows.get(key)
            if mine is None or theirs is None:
                found.append(f"{KINDS[kind].table} {key}: only in the {'table' if mine is None else 'log'}")
                continue
            found += [
                f"{KINDS[kind].table} {key}.{f}: log {getattr(mine, f)!r}, table {getattr(theirs, f)!r}"
                for f in names
                if getattr(mine, f) != getattr(theirs, f)
            ]
    return found
