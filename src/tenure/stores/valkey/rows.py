"""Rows as bytes, and the entries by which they are found.

A row is a MessagePack map of the fields that differ from their defaults: of a task's 80 fields that is a third. So a
new field needs no migration, but a default that changes, or a field that is renamed, is a new form: see `FORM`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple, force_setattr

from tenure.core.decoders import defaults_of
from tenure.core.errors import StoreCorrupt
from tenure.core.events import Event
from tenure.core.records import (
    KINDS,
    Archived,
    Artifact,
    Claim,
    Content,
    Delivery,
    Edge,
    Landing,
    Message,
    Reservation,
    Result,
    Row,
    Session,
    Spawn,
    Task,
    Usage,
    Validation,
)
from tenure.stores.port import UNIQUE
from tenure.stores.sql.codec import columns_of
from tenure.stores.valkey.keys import Keys, ordered

S = TypeVar("S", bound=msgspec.Struct)

# Of the keys and of the bytes in them. A store of a newer form is refused.
FORM = 1

# Fields with an index, the most selective first. A missing value is in none. `id`: kinds whose pages are read by id.
INDEXES: dict[type[Row], tuple[str, ...]] = {
    Task: (
        "session", "agent", "parent", "offer_to", "set_aside_for", "dag", "key", "state", "created_at", "id",
    ),
    Archived: ("idempotency_key", "dag", "key", "created_at", "id"),
    Claim: ("request_id", "process", "task", "session"),
    Edge: ("task", "needs"),
    Result: ("task",),
    Usage: ("task", "doubtful"),
    Landing: ("task",),
    Artifact: ("task",),
    Content: ("idle_at",),
    Validation: ("task", "state"),
    Reservation: ("task",),
    Session: ("agent",),
    Message: ("recipient",),
    Delivery: ("webhook",),
    Spawn: ("state",),
}  # fmt: skip

_NOTHING: Any = object()
_encode = msgspec.msgpack.Encoder().encode
_lock = threading.Lock()  # see core/decoders.py
_decoders: dict[type[Any], msgspec.msgpack.Decoder[Any]] = {}


class Entry(NamedTuple):
    """A member of a sorted set."""

    key: bytes
    member: bytes


def encoded(row: Row) -> bytes:
    kept = {
        name: value
        for name, value, default in zip(row.__struct_fields__, astuple(row), _defaults(type(row)), strict=True)
        if value is not default and (value != default or type(value) is not type(default))
    }
    return _encode(kept)


@cache
def _defaults(kind: type[Row]) -> tuple[Any, ...]:
    defaults = defaults_of(kind)
    return tuple(defaults.get(name, _NOTHING) for name in kind.__struct_fields__)


def decoded(kind: type[S], data: bytes, url: str) -> S:
    try:
        row: S = _decoder(kind).decode(data)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"{url}: a row of {kind.__name__} cannot be read: {error}") from error
    return row


def encoded_event(event: Event) -> bytes:
    """Without its sequence, which is where it stands in the log."""
    return _encode(msgspec.structs.replace(event, sequence=0))


def decoded_event(sequence: int, data: bytes, url: str) -> Event:
    event = decoded(Event, data, url)
    force_setattr(event, "sequence", sequence)  # nobody has seen it yet
    return event


def _decoder(kind: type[S]) -> msgspec.msgpack.Decoder[S]:
    made = _decoders.get(kind)
    if made is None:
        with _lock:
            made = _decoders[kind] = _decoders.get(kind) or msgspec.msgpack.Decoder(kind)
    return made


@cache
def is_text(kind: type[Row], field: str) -> bool:
    return next(column.type for column in columns_of(kind) if column.name == field) == "str"


@cache
def is_nullable(kind: type[Row], field: str) -> bool:
    return next(column.nullable for column in columns_of(kind) if column.name == field)


def entry(keys: Keys, row: Row, field: str) -> Entry | None:
    """The entry of the row in an index; None where it has no such value."""
    value, id = getattr(row, field), row.id.encode()
    if value is None:
        return None
    member = id if field == "id" else ordered(value) + id
    return Entry(keys.index(KINDS[type(row)].table, field, row.project), member)


def unique_values(row: Row) -> Iterator[bytes]:
    """The row's unique values, as fields of the hash of its project."""
    for number, unique in enumerate(UNIQUE.get(type(row), ())):
        value = unique.value_of(row)
        if value is not None:
            yield unique_field(type(row), number, *value[3:])


def unique_field(kind: type[Row], number: int, *values: Any) -> bytes:
    return b"%s:%d:%s" % (KINDS[kind].table.encode(), number, b"".join(map(ordered, values)))


@cache
def unique_alone(kind: type[Row]) -> dict[str, int]:
    """Fields that are unique by themselves → the number of that rule."""
    return {u.fields[0]: n for n, u in enumerate(UNIQUE.get(kind, ())) if len(u.fields) == 1 and u.only_if is None}
