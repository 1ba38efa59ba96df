"""Replay: the event log alone gives the tables back.

Left out are rows that no event speaks of (remembered requests, cooled models, large bodies, archived tasks) and
fields that events leave out on purpose: nonces, renewals and presence. What follows from other rows is worked out
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tenure.core import graph
from tenure.core.decoding import converted
from tenure.core.events import Event
from tenure.core.former import TaskFields
from tenure.core.records import KINDS, Archived, Dag, Edge, Row, Task

_BY_TABLE = {kind.table: row for row, kind in KINDS.items()}
TASK = KINDS[Task].table
# What stands in for a field that the log does not have.
_UNKNOWN: dict[str, Any] = {"nonce": b"", "lease": 0, "until": 0, "last_seen": 0, "last_activity": 0}

Tables = dict[type[Row], dict[tuple[str, str], Row]]


def replay(events: Iterable[Event], archived: Iterable[Archived] = ()) -> Tables:
    """The rows that the events, in their order, leave behind.

    Of `archived` tasks, whose events went with them, only what other rows are worked out from is taken.
    """
    fields: dict[tuple[str, str, str], Any] = {}
    for event in events:
        for table, id, changes in event.patch:
            key = (table, event.project, id)
            if changes is None:
                fields.pop(key, None)
            elif key in fields:
                fields[key].update(changes)
            else:
                fields[key] = TaskFields() if table == TASK else {}
                fields[key].update(changes)
    tables: Tables = {kind: {} for kind in KINDS}
    for (table, project, id), folded in fields.items():
        values = folded.values if table == TASK else folded
        kind = _BY_TABLE[table]
        known = {f: v for f, v in _UNKNOWN.items() if f in kind.__struct_fields__ and f not in values}
        row = converted({**known, "project": project, "id": id, **values}, kind)
        tables[kind][project, id] = row
    _work_out(tables, [row for row in archived if not row.out])
    return tables


def _work_out(tables: Tables, archived: Iterable[Archived]) -> None:
    """Counts that follow from edges, parents and states."""
    tasks: dict[tuple[str, str], Any] = tables[Task]
    states = {(row.project, row.id): row.state for row in archived} | {key: t.state for key, t in tasks.items()}
    counts: dict[tuple[str, str], dict[str, int]] = {
        key: dict.fromkeys(("waits_on", "unmet", "dependents", "children"), 0) | {"lineage": 1} for key in tasks
    }
    for (project, _), edge in tables[Edge].items():
        assert isinstance(edge, Edge)
        counts[project, edge.task]["waits_on"] += 1
        counts[project, edge.task]["unmet"] += not graph.is_met(edge, states[project, edge.needs])
        if (project, edge.needs) in counts:
            counts[project, edge.needs]["dependents"] += 1
    for (project, _), task in tasks.items():
        if task.parent is not None:
            counts[project, task.parent]["children"] += 1
            counts[project, task.root]["lineage"] += 1
    for key, task in tasks.items():
        tasks[key] = msgspec.structs.replace(task, **counts[key])
    parts = [(project, task.dag, graph.part(task)) for (project, _), task in tasks.items()]
    parts += [(row.project, row.dag, row.state) for row in archived if row.dag is not None]
    for project, id, part in parts:
        dag = tables[Dag].get((project, id))
        if isinstance(dag, Dag):
            tables[Dag][project, id] = graph.counted(dag, None, part)


def differences(replayed: Tables, stored: Tables) -> list[str]:
    """Where the stored rows are not what the log says; empty when the log gives the tables back."""
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
