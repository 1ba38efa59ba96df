"""Verify the archive: what it holds can be read, agrees with its columns, and is stored nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from tenure.core import archive, ids, lifecycle
from tenure.core.records import Archived, Body, Claim, Result, Row, Task, Track, Usage
from tenure.core.task_records import HOLDERS, referred
from tenure.engine.archive.totals import ARCHIVED
from tenure.engine.verify.replay import Tables

_SAME = (
    "project", "id", "key", "ref", "track", "type", "parent", "idempotency_key", "state", "priority", "tags",
    "deadline", "created_at", "updated_at", "completed_at",
)  # fmt: skip


def archived_rows(rows: Tables) -> Iterator[str]:
    left: Counter[tuple[str, str]] = Counter()
    spent: Counter[str] = Counter()
    for archived in rows[Archived].values():
        live = rows[Task].get((archived.project, archived.id))
        left[archived.project, archived.track] += not archived.out
        if archived.out != (live is not None):
            yield f"{archived.key}: is both archived and a task, or neither"
        try:
            inside, events = archive.rows_in(archived), archive.events_in(archived)
        except (ValueError, msgspec.MsgspecError) as error:
            yield f"{archived.key}: {error}"
            continue
        if [e.version for e in events] != list(range(1, archived.events + 1)):
            yield f"{archived.key}: of {archived.events} archived events there are {len(events)}, or not in their order"
        if archived.out:
            if inside:
                yield f"{archived.key}: is recalled, but {len(inside)} of its rows are archived"
            continue
        spent[archived.project] += sum(isinstance(row, Usage) for row in inside)
        yield from _inside(archived, inside)
    for track in rows[Track].values():
        counted = track.completed + track.cancelled - track.pruned
        if counted != left[track.project, track.id]:
            yield f"track {track.id}: {counted} tasks in the archive, {left[track.project, track.id]} are there"
    yield from _added_up(rows, spent)


def _inside(archived: Archived, rows: list[Row]) -> Iterator[str]:
    """One task, in agreement with its columns, finished, with its lineage and result."""
    tasks = [row for row in rows if isinstance(row, Task)]
    if len(tasks) != 1 or any(getattr(tasks[0], name) != getattr(archived, name) for name in _SAME):
        yield f"{archived.key}: the archived task is not the one that its row names"
        return
    (task,) = tasks
    if task.state not in lifecycle.FINISHED or task.version != archived.events:
        yield f"{task.key}: {task.state} with version {task.version} and {archived.events} events, but archived"
    if archived.dag != (task.dag if ids.has_dag_row(task) else None):
        yield f"{task.key}: archived under another dag"
    generations = sorted(row.generation for row in rows if isinstance(row, Claim))
    if generations != list(range(1, task.generation + 1)):
        yield f"{task.key}: generation {task.generation}, but archived claims {generations}"
    if set(referred(rows)) != {body.id for body in archive.bodies_in(archived)}:
        yield f"{task.key}: archived without a large value that it refers to"
    accepted = [row.run for row in rows if isinstance(row, Result) and row.accepted]
    if len(accepted) != len(set(accepted)) or (task.state == lifecycle.COMPLETED and task.run not in accepted):
        yield f"{task.key}: archived with accepted results in runs {accepted}, of which {task.run} is the last"


def large_values(rows: Tables) -> Iterator[str]:
    """What rows refer to exists, and is kept for at least as many tasks as refer to it."""
    users: dict[tuple[str, str], set[str]] = {}
    for kind in HOLDERS:
        for row in rows[kind].values():
            for name in referred([row]):
                users.setdefault((row.project, name), set()).add(getattr(row, archive.OWNED[kind]))
    for key, tasks in users.items():
        body = rows[Body].get(key)
        if body is None or body.uses < len(tasks):
            yield f"{sorted(tasks)[0]}: refers to a large value that is missing or counted too low"


def _added_up(rows: Tables, spent: Counter[str]) -> Iterator[str]:
    """Sums cover at least the usage that can still be read; that of pruned tasks is included too."""
    sums: Counter[str] = Counter()
    for row in rows[Usage].values():
        if row.task == ARCHIVED:
            sums[row.project] += row.pairs
    pruned = {row.project for row in rows[Track].values() if row.pruned}
    for project in {*spent, *sums}:
        pairs = spent[project]
        if sums[project] < pairs or (sums[project] != pairs and project not in pruned):
            yield f"{project}: the usage of archived tasks is {pairs} rows, and {sums[project]} are in the sums"
