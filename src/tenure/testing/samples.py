"""Rows to test stores with: plain ones, and by Hypothesis any that the structs allow."""

from __future__ import annotations

import types
import typing
from functools import cache
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from tenure.core.events import Event
from tenure.core.records import Row

S = TypeVar("S", bound=msgspec.Struct)

BIGGEST = 2**63 - 1

_PLAIN: dict[Any, Any] = {str: "x", int: 1, bool: False, float: 1.5, bytes: b"\x00\xff", Any: None}


def row_of(kind: type[S], **fields: Any) -> S:
    """A row with `fields`, and something plain wherever the struct has no default."""
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.name in fields:
            values[field.name] = fields.pop(field.name)
        elif field.required:
            values[field.name] = _plain(field.type)
    return kind(**values, **fields)


def event_of(**fields: Any) -> Event:
    """An event with `fields`, of no task unless they say so."""
    return Event(**{"id": "event", "time": 0, "kind": "task.noted", "project": "p", **fields})


def rows(kind: type[S], **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[S]:
    """Any row of a kind, every field set by chance."""
    types_of = {field.name: field.type for field in msgspec.structs.fields(kind)}
    chances = {name: fixed.get(name, values(wanted)) for name, wanted in types_of.items()}
    return st.fixed_dictionaries(chances).map(lambda made: kind(**made))


def texts() -> st.SearchStrategy[str]:
    """Any text without lone surrogates: NUL, quotes, other planes and all."""
    return st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
        ["", "\x00", "a\x00b", "%", "_", '"', "\\", "'", "naïve", "🙂", "\U0010ffff", "\ud7ff", "\ue000", "A", "a", ","]
    )


def integers() -> st.SearchStrategy[int]:
    return st.integers(-(2**63), BIGGEST) | st.sampled_from([0, 1, -1, BIGGEST, -(2**63)])


def _json() -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | integers() | st.floats(allow_nan=False, allow_infinity=False) | texts()
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3), max_leaves=5
    )


@cache
def values(wanted: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        str: texts(),
        int: integers(),
        bool: st.booleans(),
        bytes: st.binary(max_size=20),
        float: st.floats(allow_nan=False, allow_infinity=False),
        type(None): st.none(),
        Any: _json(),
    }
    if wanted in scalars:
        return scalars[wanted]
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([values(one) for one in inner])
    if origin is tuple and inner[-1] is ...:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*[values(one) for one in inner])
    if origin is dict:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=3)
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return rows(wanted)
    raise TypeError(f"no samples of {wanted}: say here how to make them")


def _plain(wanted: Any) -> Any:
    if wanted in _PLAIN:
        return _PLAIN[wanted]
    origin = typing.get_origin(wanted)
    if origin in (types.UnionType, typing.Union):
        return None
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return row_of(wanted)
    return origin()


def key_of(row: Row) -> tuple[str, str]:
    return row.project, row.id
