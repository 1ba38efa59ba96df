"""Texts without NUL, for servers that do not keep or do not sort it.

PostgreSQL's texts cannot contain it. MariaDB's can, but its sort takes `''` and `'\\x00'` for equal. So NUL becomes
`\\x01\\x01`, and `\\x01` becomes `\\x01\\x02`. That keeps order, equality and prefixes, and costs nothing where neither
occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from tenure.stores.sql.codec import Codec

S = TypeVar("S", bound=msgspec.Struct)


def hidden(text: str) -> str:
    """The text without NUL."""
    if "\x00" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return text


def shown(text: str) -> str:
    if "\x01" in text:
        return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
    return text


@cache
def reader(kind: type[S]) -> Callable[[Sequence[Any]], S]:
    """As the codec's `decode`, for rows of such a server."""
    codec = Codec(kind)
    texts = [n for n, column in enumerate(codec.columns) if column.type == "str"]
    decode = codec.decode

    def read(row: Sequence[Any]) -> S:
        for n in texts:
            value = row[n]
            if value is not None and "\x01" in value:
                row = [shown(v) if m in texts and v is not None else v for m, v in enumerate(row)]
                break
        return decode(row)

    return read
