"""Decoders, each built once and by one thread at a time.

msgspec shows the plan of a struct to other threads before it is whole; whoever decodes with it then ends the process
with a segmentation fault. So no type is ever met by a decoder that was not built here, under one lock.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput

T = TypeVar("T")
LONGEST_INTEGER = limits.INTEGER_DIGITS
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
    """A plain value as that type, as msgspec.convert has it."""
    decoder_of(kind)  # builds the plan that `convert` uses
    return msgspec.convert(value, kind)


def check_json(text: bytes | str, what: str) -> None:
    """Refuse JSON from outside that others may read differently: a key given twice, an integer beyond 64 bits.

    What is not JSON at all is left to whoever decodes it next, with the types that are wanted.
    """
    import json  # most commands read none

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"{what}: the key {twice[:80]!r} stands twice in one object", "leave one of them out")
        return found

    def integer(digits: str) -> int:
        # Judged by its length first: to read a number of a million digits takes a second.
        if len(digits) > LONGEST_INTEGER or not -(2**63) <= int(digits) < 2**64:
            raise InvalidInput(
                f"{what}: an integer of {len(digits.lstrip('-'))} digits, beyond 64 bits", "send it as text"
            )
        return 0

    try:
        json.loads(text, object_pairs_hook=members, parse_int=integer)
    except (ValueError, RecursionError):
        return
