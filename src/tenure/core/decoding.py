"""Decoders, each built once and by one thread at a time.

msgspec shows the plan of a struct to other threads before it is whole; whoever decodes with it then ends the process
with a segmentation fault. So no type is ever met by a decoder that was not built here, under one lock.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
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
