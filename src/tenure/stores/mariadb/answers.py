"""The server's answers to statements, read from its stream of packets.

PyMySQL connects and signs in; the answers are read here. It makes several objects of each column's description, and a
task has ninety columns: that took longer than the statement. Of a description only the type is of interest, which
stands at a fixed place from its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from tenure.stores.mariadb.errors import Failed
from tenure.stores.sql.server_errors import Lost

Rows = tuple[tuple[Any, ...], ...]
_Reader = Callable[[bytes], Any]

_FULL = 0xFFFFFF  # bytes of a packet; one of this size goes on in the next
_OK, _FILE, _END, _ERROR = 0x00, 0xFB, 0xFE, 0xFF
_NULL = 0xFB
_WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}  # bytes of a longer length
_BINARY = b"\x3f\x00"  # the character set of bytes
_INTEGERS, _FLOATS, _DECIMALS = (1, 2, 3, 8, 9, 13), (4, 5), (0, 246)


class Answer(NamedTuple):
    found: Rows
    touched: int = 0  # rows that were found, also by a change
    last: int = 0  # what LAST_INSERT_ID(…) was given
    status: int = 0  # the session's
    is_table: bool = False  # of a query, rows or not

    def rows(self) -> Rows:
        return self.found


def packets(receive: Callable[[], bytes]) -> Iterator[bytes]:
    """The packets that answer one request. Raises Lost at the end of the stream."""
    data, at, long, is_first = b"", 0, b"", True
    while True:
        data, at = _filled(data, at, 4, receive)
        size, number = data[at] | data[at + 1] << 8 | data[at + 2] << 16, data[at + 3]
        if is_first and number == 0:
            raise Lost("the server had closed the connection before it was asked")
        data, at = _filled(data, at, size + 4, receive)
        packet = data[at + 4 : at + 4 + size]
        at, is_first = at + 4 + size, False
        if size == _FULL:
            long += packet
            continue
        yield long + packet if long else packet
        long = b""


def _filled(data: bytes, at: int, size: int, receive: Callable[[], bytes]) -> tuple[bytes, int]:
    """With so many bytes behind `at`, at least."""
    missing = at + size - len(data)
    if missing <= 0:
        return data, at
    parts = [data[at:]]
    while missing > 0:
        more = receive()
        if not more:
            raise Lost("the server closed the connection")
        parts.append(more)
        missing -= len(more)
    return b"".join(parts), 0


def next_answer(stream: Iterator[bytes]) -> Answer:
    """Raises Failed where the statement did, Lost for an answer that cannot be read."""
    try:
        return _answer(stream)
    except (IndexError, KeyError, ValueError) as error:
        raise Lost(f"an answer of the server cannot be read: {error!r}") from error


def _answer(stream: Iterator[bytes]) -> Answer:
    packet = next(stream)
    kind = packet[0]
    if kind == _OK:
        touched, at = _length(packet, 1)
        last, at = _length(packet, at)
        return Answer((), touched, last, packet[at] | packet[at + 1] << 8)
    if kind == _ERROR:
        raise _failure(packet)
    if kind == _FILE:
        raise Lost("the server asks for a file")
    readers = [_reader(next(stream)) for _ in range(_length(packet, 0)[0])]
    next(stream)  # the end of the descriptions
    rows: list[tuple[Any, ...]] = []
    while True:
        packet = next(stream)
        kind = packet[0]
        if kind == _END and len(packet) < 9:
            return Answer(tuple(rows), len(rows), 0, packet[3] | packet[4] << 8, is_table=True)
        if kind == _ERROR:
            raise _failure(packet)
        rows.append(_row(packet, readers))


def _row(packet: bytes, readers: list[_Reader]) -> tuple[Any, ...]:
    values: list[Any] = []
    at = 0
    for read in readers:
        size = packet[at]
        at += 1
        if size == _NULL:
            values.append(None)
            continue
        if size > _NULL:
            width = _WIDTHS[size]
            size = int.from_bytes(packet[at : at + width], "little")
            at += width
        values.append(read(packet[at : at + size]))
        at += size
    return tuple(values)


def _length(packet: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it."""
    first = packet[at]
    if first < _NULL:
        return first, at + 1
    end = at + 1 + _WIDTHS[first]
    return int.from_bytes(packet[at + 1 : end], "little"), end


def _reader(description: bytes) -> _Reader:
    """Of a column's values. Behind the names stand: character set, width, type, flags, decimals, two bytes."""
    kind = description[-6]
    if kind in _INTEGERS:
        return int
    if kind in _FLOATS:
        return float
    if kind in _DECIMALS:
        return _decimal
    return bytes if description[-12:-10] == _BINARY else bytes.decode


def _decimal(text: bytes) -> Decimal:
    return Decimal(text.decode())


def _failure(packet: bytes) -> Failed:
    message = packet[9:] if packet[3:4] == b"#" else packet[3:]
    return Failed(packet[1] | packet[2] << 8, message.decode(errors="replace"))
