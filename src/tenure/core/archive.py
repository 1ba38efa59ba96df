"""The archive: when a finished task may move there, and how its rows and events become one document.

A document is JSON, deflated with the dictionary `WORDS`: most of a small document is field names, which then cost
nothing. It has the rows of each kind in `OWNED`, without fields that have their default, and the task's events.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import astuple

from tenure.core import former_names, ids, lifecycle, limits
from tenure.core.archive_words import WORDS
from tenure.core.decoders import converted, decoder_of, defaults_of
from tenure.core.events import Event
from tenure.core.records import (
    KINDS,
    Archived,
    Artifact,
    Body,
    Brief,
    Budget,
    Checkpoint,
    Claim,
    DeadLetter,
    Edge,
    Landing,
    Result,
    Row,
    Signature,
    Task,
    Usage,
    Validation,
    replace,
)

DAY = 24 * 3600 * 1_000_000
SECOND = 1_000_000
AFTER = limits.ARCHIVE_AFTER

# Rows that move with a task: kind → the field that names the task. An edge belongs to the dependent task.
OWNED: dict[type[Row], str] = {
    Task: "id",
    Brief: "id",
    Checkpoint: "id",
    Claim: "task",
    Result: "task",
    Signature: "task",
    Validation: "task",
    Usage: "task",
    Landing: "task",
    Artifact: "task",
    Edge: "task",
    DeadLetter: "task",
    Budget: "task",
}
_BY_TABLE = {KINDS[kind].table: kind for kind in OWNED}
_BEGUN = zlib.compressobj(6, zdict=WORDS)  # 9 makes them half a per cent smaller, in a fifth more time
_FORMAT = b"\x01"  # before the deflated bytes: names the dictionary


class Document(msgspec.Struct, frozen=True):
    """The contents of `Archived.document`: rows by table, the events in order, and large values by name.

    In a project that is audited also the leaf of each event, as it was sealed.
    """

    rows: dict[str, tuple[msgspec.Raw, ...]] = {}
    events: tuple[Event, ...] = ()
    bodies: dict[str, msgspec.Raw] = {}
    leaves: bytes = b""


def archive_after(given: Mapping[str, int]) -> int:
    """How long after its end a task keeps its own rows, under the limits that apply in its project."""
    seconds = given.get("archive_after")
    return AFTER if seconds is None else min(seconds * SECOND, limits.ARCHIVE_LONGEST)


def kept_for(days: int | None) -> int | None:
    """How long it is kept in the archive; None: for ever."""
    return None if days is None else min(days * DAY, limits.ARCHIVE_LONGEST)


def may_go(task: Task, until: int) -> bool:
    """Whether it has ended, last changed not after `until`, and has nothing due. Neighbours are not checked here."""
    return task.state in lifecycle.FINISHED and task.updated_at <= until and task.due_at is None


def archived(
    task: Task,
    rows: Iterable[Row],
    events: Sequence[Event],
    now: int,
    bodies: Iterable[Body] = (),
    leaves: bytes = b"",
) -> Archived:
    """The one row that replaces all of them."""
    large = {body.id: msgspec.Raw(body.content) for body in bodies}  # JSON already
    document = msgspec.json.encode(Document(_written(rows), tuple(events), large, leaves))
    has_dag = ids.has_dag_row(task)
    return Archived(
        project=task.project, id=task.id, key=task.key, ref=task.ref, track=task.track, type=task.type,
        dag=task.dag if has_dag else None, parent=task.parent,
        root=(task.root or task.id) if task.root or task.children else None,
        idempotency_key=task.idempotency_key, state=task.state, priority=task.priority, tags=task.tags,
        deadline=task.deadline, created_at=task.created_at, updated_at=task.updated_at,
        completed_at=task.completed_at, archived_at=now, events=len(events), size=len(document),
        document=deflated(document),
    )  # fmt: skip


def emptied(row: Archived) -> Archived:
    """What remains archived when the task has its own rows again: the log so far."""
    document = msgspec.json.encode(Document({}, events_in(row), leaves=leaves_of(row)))
    return replace(row, out=True, size=len(document), document=deflated(document))


def rows_in(row: Archived) -> list[Row]:
    """The rows of the task, as they were when it moved."""
    rows = _read(row).rows
    return [_row(_BY_TABLE[table], raw) for table, raws in rows.items() for raw in raws]


def _row(kind: type[Row], raw: msgspec.Raw) -> Row:
    if kind is Task:  # archived by an earlier version, it has other fields
        return converted(former_names.task_of(msgspec.json.decode(raw)), Task)
    return decoder_of(kind).decode(raw)


def events_in(row: Archived) -> tuple[Event, ...]:
    return _read(row).events


def leaves_of(row: Archived) -> bytes:
    """The leaves of its events; none where it was archived before the audit."""
    return _read(row).leaves


def bodies_in(row: Archived) -> list[Body]:
    """The large values that its rows refer to."""
    return [Body(project=row.project, id=id, content=bytes(raw)) for id, raw in _read(row).bodies.items()]


def _read(row: Archived) -> Document:
    return decoder_of(Document).decode(inflated(row.document))


def _written(rows: Iterable[Row]) -> dict[str, tuple[msgspec.Raw, ...]]:
    written: dict[str, list[msgspec.Raw]] = {}
    for row in rows:
        written.setdefault(KINDS[type(row)].table, []).append(msgspec.Raw(msgspec.json.encode(_set_fields(row))))
    return {table: tuple(raws) for table, raws in written.items()}


def _set_fields(row: Row) -> dict[str, Any]:
    """The fields that differ from their default."""
    defaults = _defaults(type(row))
    pairs = zip(type(row).__struct_fields__, astuple(row), strict=True)
    return {name: value for name, value in pairs if name not in defaults or defaults[name] != value}


_defaults = cache(defaults_of)


def deflated(data: bytes) -> bytes:
    making = _BEGUN.copy()  # a third faster than loading the dictionary again
    return _FORMAT + making.compress(data) + making.flush()


def inflated(data: bytes) -> bytes:
    """Raises ValueError where the bytes are not what `deflated` made."""
    if data[:1] != _FORMAT:
        raise ValueError(f"an archived document of format {data[:1]!r}, which this version does not know")
    reading = zlib.decompressobj(zdict=WORDS)
    try:
        whole = reading.decompress(data[1:]) + reading.flush()
    except zlib.error as error:
        raise ValueError(f"an archived document cannot be read: {error}") from None
    if not reading.eof:
        raise ValueError("an archived document is truncated")
    if reading.unused_data:
        raise ValueError("an archived document has bytes behind its end")
    return whole
