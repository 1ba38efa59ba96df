"""Answers are read from the stream however it is cut into pieces."""

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.stores.mariadb.answers import Answer, next_answer, packets
from tenure.stores.mariadb.errors import Failed
from tenure.stores.sql.server_errors import Lost

LONGEST = 0xFFFFFF
TEXT, NUMBER, BYTES, SUM, FLOAT = (253, 45), (8, 63), (252, 63), (246, 63), (5, 63)


def packed(*payloads: bytes) -> bytes:
    """As packets of one answer; longer payloads as several."""
    made, number = b"", 1
    for payload in payloads:
        for at in range(0, len(payload) + 1, LONGEST):  # a full packet is followed by another, empty or not
            part = payload[at : at + LONGEST]
            made += len(part).to_bytes(3, "little") + bytes([number % 256]) + part
            number += 1
    return made


def length(number: int) -> bytes:
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    if number < 1 << 24:
        return b"\xfd" + number.to_bytes(3, "little")
    return b"\xfe" + number.to_bytes(8, "little")


def column(kind: int, characters: int) -> bytes:
    names = b"".join(length(len(name)) + name for name in (b"def", b"db", b"t", b"t", b"c", b"c"))
    return names + b"\x0c" + characters.to_bytes(2, "little") + bytes(4) + bytes([kind]) + bytes(5)


def table(columns: list[tuple[int, int]], *rows: list[bytes | None], status: int = 2) -> list[bytes]:
    end = b"\xfe\x00\x00" + status.to_bytes(2, "little")
    values = [b"".join(b"\xfb" if v is None else length(len(v)) + v for v in row) for row in rows]
    return [length(len(columns)), *(column(*one) for one in columns), end, *values, end]


def done(touched: int = 0, last: int = 0, status: int = 2) -> bytes:
    return b"\x00" + length(touched) + length(last) + status.to_bytes(2, "little") + b"\x00\x00"


def error(code: int, text: str) -> bytes:
    return b"\xff" + code.to_bytes(2, "little") + b"#HY000" + text.encode()


def cut(data: bytes, size: int) -> Iterator[bytes]:
    stream = iter([data[at : at + size] for at in range(0, len(data), size)])
    return packets(lambda: next(stream, b""))


@given(
    st.lists(st.lists(st.none() | st.text(max_size=400), min_size=2, max_size=2), max_size=5),
    st.integers(1, 700),
)
def test_rows_are_the_same_however_the_stream_is_cut(rows: list[list[str | None]], size: int) -> None:
    sent = table([TEXT, TEXT], *[[None if v is None else v.encode() for v in row] for row in rows])
    stream = cut(packed(*sent, done(3, 1 << 40)), size)
    assert next_answer(stream) == Answer(tuple(map(tuple, rows)), len(rows), 0, 2, is_table=True)
    assert next_answer(stream) == Answer((), 3, 1 << 40, 2)


@pytest.mark.parametrize("size", [0, 250, 251, 65_535, 65_536, LONGEST - 10, LONGEST - 4, LONGEST, 2 * LONGEST + 5])
def test_a_text_of_any_length_is_whole(size: int) -> None:
    text = "x" * size
    (row,) = next_answer(cut(packed(*table([TEXT], [text.encode()])), 1 << 16)).found
    assert row == (text,)


def test_values_have_the_type_of_their_column() -> None:
    values: list[Any] = [-7, "naïve", b"\xff\x00", Decimal("12"), 2.5, None]
    sent = [b"-7", "naïve".encode(), b"\xff\x00", b"12", b"2.5", None]
    (row,) = next_answer(cut(packed(*table([NUMBER, TEXT, BYTES, SUM, FLOAT, NUMBER], sent)), 99)).found
    assert list(row) == values
    assert list(map(type, row)) == list(map(type, values))


@pytest.mark.parametrize("rows", [0, 2])
def test_a_failure_is_told_also_between_rows(rows: int) -> None:
    sent = table([NUMBER], [b"1"], [b"2"])[: 3 + rows] if rows else []
    with pytest.raises(Failed, match="too slow") as caught:
        next_answer(cut(packed(*sent, error(1969, "too slow")), 5))
    assert caught.value.code == 1969


def test_a_stream_that_ends_is_a_lost_connection() -> None:
    whole = packed(*table([NUMBER], [b"1"]))
    for end in range(len(whole)):
        with pytest.raises(Lost):
            next_answer(cut(whole[:end], 64))


@given(st.lists(st.binary(max_size=12), max_size=4))
def test_what_no_server_says_is_a_lost_connection(said: list[bytes]) -> None:
    with suppress(Lost, Failed):
        next_answer(cut(packed(*said), 64))


def test_what_the_server_said_before_it_was_asked_is_a_lost_connection() -> None:
    """It announces that it shuts down with a packet of number 0."""
    farewell = error(1927, "Connection was killed")
    with pytest.raises(Lost):
        next_answer(cut(len(farewell).to_bytes(3, "little") + b"\x00" + farewell, 64))
