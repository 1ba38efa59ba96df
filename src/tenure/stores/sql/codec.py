"""How a struct becomes a row of its table, and back.

It uses the annotations as text: resolving them as types costs 1.4 ms for a task, more than opening the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import repeat
from operator import is_
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import astuple

from tenure.core.decoders import decoder_of
from tenure.core.events import Event
from tenure.core.records import KINDS

S = TypeVar("S", bound=msgspec.Struct)

SCALARS = ("str", "int", "float", "bytes", "bool")
JSON = "json"

_write_json = msgspec.json.Encoder().encode
# The descriptor itself, since frozen structs refuse setattr.
_become = object.__dict__["__class__"].__set__


class Column(msgspec.Struct, frozen=True):
    """`type` is one of SCALARS or JSON."""

    name: str
    type: str
    nullable: bool
    annotation: str


def tables() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Every table with its struct: the kinds of rows, and the log."""
    yield from ((kind.table, struct) for struct, kind in KINDS.items())
    yield "event", Event


@cache
def columns_of(struct: type[msgspec.Struct]) -> tuple[Column, ...]:
    """The columns for a struct's fields, in the struct's order."""
    annotations: dict[str, str] = {}
    for part in reversed(struct.__mro__):
        annotations.update(vars(part).get("__annotations__", {}))
    return tuple(_column(name, annotations[name]) for name in struct.__struct_fields__)


def _column(name: str, annotation: str) -> Column:
    bare = annotation.removesuffix(" | None")
    kind = bare if bare in SCALARS else JSON
    return Column(name, kind, bare != annotation or annotation == "Any", annotation)


class Codec(Generic[S]):
    """Rows of one struct: `decode` the result of a SELECT of `columns`, `encode` the values for an INSERT."""

    def __init__(self, struct: type[S]) -> None:
        self.struct = struct
        self.columns = columns_of(struct)
        self.by_name = {column.name: column for column in self.columns}
        self.position = {column.name: n for n, column in enumerate(self.columns)}
        self._json = frozenset(n for n, column in enumerate(self.columns) if column.type == JSON)
        self._positions = range(len(self.columns))
        self.decode = _decoder(struct, self.columns)

    def encode(self, row: S) -> list[Any]:
        """Values for all columns."""
        values = list(astuple(row))
        for n in self._json:
            value = values[n]
            if value:
                values[n] = _write_json(value).decode()
            elif value is not None:  # most are empty
                values[n] = _EMPTY.get(type(value)) or to_json(value)
        return values

    def encode_many(self, rows: Sequence[S]) -> list[tuple[Any, list[Any]]]:
        """For each column the value that all rows have, and an empty list; or None, and the list of their values.

        The lists show how many rows there are, so a row that is alone has one in each column.
        """
        columns: list[tuple[Any, list[Any]]] = []
        are_many = len(rows) > 1
        for n, values in enumerate(zip(*map(astuple, rows), strict=True)):
            first = values[0]
            if n in self._json:
                is_same = are_many and all(map(is_, values, repeat(first)))
                encoded = [None if value is None else to_json(value) for value in ((first,) if is_same else values)]
            else:
                is_same, encoded = are_many and values.count(first) == len(values), list(values)
            columns.append((encoded[0], []) if is_same else (None, encoded))
        return columns

    def changes(self, before: S, after: S, known: Iterable[int] | None = None) -> tuple[tuple[int, ...], list[Any]]:
        """Positions of the columns that differ, and their new values. `known`: those that are not identical.

        `replace` keeps the fields that it does not set, so identity finds nearly all equal ones. Other objects are
        compared by value, except JSON, where `1 == True` would hide a change.
        """
        old, new, json = astuple(before), astuple(after), self._json
        if known is None:
            known = self._positions
        positions = tuple([n for n in known if old[n] is not new[n] and (n in json or old[n] != new[n])])
        return positions, [to_json(new[n]) if n in json and new[n] is not None else new[n] for n in positions]


def to_json(value: Any) -> str:
    return _write_json(value).decode() if value else _EMPTY.get(type(value)) or _write_json(value).decode()


_EMPTY: dict[type, str] = {tuple: "[]", dict: "{}"}


def _decoder(struct: type[S], columns: Sequence[Column]) -> Callable[[Sequence[Any]], S]:
    build, read = builder(struct, columns), values_reader(struct, columns)
    return lambda row: build(read(row))


def named_bad(rows: Iterable[Sequence[Any]], decode: Callable[[Sequence[Any]], Any]) -> str:
    """The first of these rows that cannot be decoded, by its first columns: its project and id, or its sequence."""
    for row in rows:
        try:
            decode(row)
        except msgspec.MsgspecError:
            return ", ".join(str(value) for value in row[:2])
    return "?"


def values_reader(struct: type[msgspec.Struct], columns: Sequence[Column]) -> Callable[[Sequence[Any]], list[Any]]:
    """The fields' values from their columns' values; the struct's module defines the types."""
    flags = tuple(n for n, column in enumerate(columns) if column.type == "bool")
    json = [
        (n, "" if c.nullable else c.annotation.partition("[")[0], _reader(struct, c))
        for n, c in enumerate(columns)
        if c.type == JSON
    ]
    lists = tuple((n, read) for n, kind, read in json if kind == "tuple")
    objects = tuple((n, read) for n, kind, read in json if kind == "dict")
    others = tuple((n, read) for n, kind, read in json if kind not in ("tuple", "dict"))

    def decode(row: Sequence[Any]) -> list[Any]:
        values = list(row)
        for n in flags:
            if values[n] is not None:
                values[n] = values[n] != 0
        for n, read in lists:  # most are empty
            values[n] = () if values[n] == "[]" else read(values[n])
        for n, read in objects:
            values[n] = {} if values[n] == "{}" else read(values[n])
        for n, read in others:
            if values[n] is not None:
                values[n] = read(values[n])
        return values

    return decode


def _reader(struct: type[msgspec.Struct], column: Column) -> Callable[[str], Any]:
    """Decodes JSON to the column's type; resolves the type at the first value.

    Structs are frozen, and consecutive rows often have equal ones: the last one is reused.
    """
    made: list[Callable[[str], Any]] = []
    last: tuple[str, Any] = ("", None)

    def read(text: str) -> Any:
        nonlocal last
        if not made:
            names = {**vars(sys.modules[struct.__module__])}
            wanted = eval(column.annotation, names)  # noqa: S307 - the annotation of a struct in this package
            made.append(decoder_of(wanted).decode)
        known, value = last
        if text == known:
            return value
        value = made[0](text)
        if isinstance(value, (msgspec.Struct, str)):
            last = (text, value)
        return value

    return read


def builder(struct: type[S], columns: Sequence[Column]) -> Callable[[Sequence[Any]], S]:
    """Makes a struct from its fields in order, the fastest way that works.

    Keyword arguments cost 4.3 µs for the 78 fields of a task (a linear search each), `msgspec.convert` 3.8 µs, but
    positions 0.2 µs. The structs take keywords only; a subclass that only adds positions has the same layout, so its
    instances can be given the real class. Python checks the layouts and refuses if they ever differ.
    """
    names = struct.__struct_fields__
    by_position: Any = msgspec.defstruct(
        struct.__name__, [(name, Any, None) for name in names], bases=(struct,), frozen=True
    )
    become = _become

    def quick(values: Sequence[Any]) -> S:
        made: S = by_position(*values)
        become(made, struct)
        return made

    def plain(values: Sequence[Any]) -> S:
        return struct(**dict(zip(names, values, strict=True)))

    probe: list[Any] = [None] * len(columns)
    try:
        same = by_position.__struct_fields__ == names and type(quick(probe)) is struct
        return quick if same and quick(probe) == plain(probe) else plain
    except TypeError:
        return plain
