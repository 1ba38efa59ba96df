"""Decoders, each built once and by one thread at a time.

msgspec exposes the plan of a struct to other threads before it is complete; decoding with it then crashes the process
with a segmentation fault. So every decoder is built here, under one lock, before its type is used.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput

T = TypeVar("T")


class _Sample(msgspec.Struct):
    names: list[str] = []


_Factory: Any = type(_Sample.__struct_defaults__[0])  # msgspec gives it no public name
_LOCK = threading.Lock()
_MADE: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type; safe from any thread."""
    made = _MADE.get(kind)
    if made is None:
        with _LOCK:
            made = _MADE[kind] = _MADE.get(kind) or msgspec.json.Decoder(kind)
    return made


def converted(value: Any, kind: type[T]) -> T:
    """A plain value as that type, as by msgspec.convert."""
    decoder_of(kind)  # builds the plan that `convert` uses
    return msgspec.convert(value, kind)


def defaults_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The defaults of the fields that have one. `msgspec.structs.fields` resolves the types too, in a millisecond."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    given = zip(names[len(names) - len(defaults) :], defaults, strict=True)
    return {
        name: default.factory() if isinstance(default, _Factory) else default
        for name, default in given
        if default is not msgspec.NODEFAULT
    }


def check_json(text: bytes | str, what: str) -> None:
    """Refuse JSON from outside that parsers read differently: a duplicate key, an integer beyond 64 bits.

    Invalid JSON is left to the next decoder, which knows the types.
    """
    import json  # most commands read no JSON

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"{what}: duplicate key {twice[:80]!r} in one object", "leave one of them out")
        return found

    def integer(digits: str) -> int:
        # By its length first: parsing a number of a million digits takes a second.
        if len(digits) > limits.INTEGER_DIGITS or not -(2**63) <= int(digits) < 2**64:
            raise InvalidInput(
                f"{what}: an integer of {len(digits.lstrip('-'))} digits does not fit 64 bits", "send it as text"
            )
        return 0

    try:
        json.loads(text, object_pairs_hook=members, parse_int=integer)
    except (ValueError, RecursionError):
        return
