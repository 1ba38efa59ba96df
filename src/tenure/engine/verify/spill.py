"""A mapping most of whose values are in a temporary file, so that verifying a large store needs little memory.

The first few thousand values stay in memory, so that a small store pays nothing. A value that is set again is appended
to the file; the former one stays there until the end. Rows are written as JSON, which is read twenty times as fast as
pickled structs; a row that does not come back from it as it was, as a damaged one may, is pickled.
"""

from __future__ import annotations

import pickle  # written and read by one process, in an unnamed file
import tempfile
from collections.abc import Iterator, MutableMapping
from typing import IO, TypeVar

import msgspec

from tenure.core.decoders import decoder_of

K = TypeVar("K")
V = TypeVar("V")

IN_MEMORY = 10_000  # values of all mappings of a file
_LENGTH = 32  # bits of a position that hold the length


class Spill:
    """The file, for any number of mappings; closed with the block that opened it."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0
        self.room = IN_MEMORY

    def write(self, value: object, kind: type[msgspec.Struct] | None = None) -> int:
        """Append a value, a row if it has a kind; return its position."""
        data = None if kind is None else _as_json(value, kind)
        if data is None:
            data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tenure-verify-")  # noqa: SIM115 - see __exit__
        self._file.seek(self._end)
        self._file.write(data)
        place = self._end << _LENGTH | len(data)
        self._end += len(data)
        return place

    def read(self, place: int, kind: type[msgspec.Struct] | None = None) -> object:
        assert self._file is not None
        self._file.seek(place >> _LENGTH)
        data = self._file.read(place & ((1 << _LENGTH) - 1))
        if kind is not None and data.startswith(b"{"):  # a pickle begins with another byte
            return decoder_of(kind).decode(data)
        return pickle.loads(data)  # noqa: S301 - our own, see above

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _as_json(row: object, kind: type[msgspec.Struct]) -> bytes | None:
    """None where the row would come back as another."""
    try:
        data = msgspec.json.encode(row)
        return data if decoder_of(kind).decode(data) == row else None
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
        return None


class Spilled(MutableMapping[K, V]):
    """Keys in memory, most values in the file; `kind`: that of its rows."""

    def __init__(self, spill: Spill, kind: type[msgspec.Struct] | None = None) -> None:
        self._spill, self._kind = spill, kind
        self._near: dict[K, V] = {}
        self._far: dict[K, int] = {}

    def __getitem__(self, key: K) -> V:
        if key in self._near:
            return self._near[key]
        return self._spill.read(self._far[key], self._kind)  # type: ignore[return-value]  # the value set for it

    def __setitem__(self, key: K, value: V) -> None:
        if key in self._near:
            self._near[key] = value
        elif self._spill.room and key not in self._far:
            self._spill.room -= 1
            self._near[key] = value
        else:
            self._far[key] = self._spill.write(value, self._kind)

    def __delitem__(self, key: K) -> None:
        if key in self._near:
            del self._near[key]
            self._spill.room += 1
        else:
            del self._far[key]

    def __contains__(self, key: object) -> bool:
        return key in self._near or key in self._far

    def __iter__(self) -> Iterator[K]:
        yield from self._near
        yield from self._far

    def __len__(self) -> int:
        return len(self._near) + len(self._far)
