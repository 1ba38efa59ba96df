"""Python's values as PostgreSQL's parameters, and back.

Parameters are sent as text, and the server infers each one's type from its column: one statement text is one prepared
statement, whatever is None. Our texts may contain NUL, PostgreSQL's may not: see `stores/sql/nul.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenure.stores.sql.nul import hidden

_LARGEST = (1 << 63) - 1


def parameter(value: Any) -> bytes | None:
    """Raises OverflowError, TypeError or UnicodeEncodeError for a value that no column can hold."""
    if value is None:
        return None
    kind = type(value)
    if kind is str:
        text: bytes = hidden(value).encode()
        return text
    if kind is int:
        if -_LARGEST - 1 <= value <= _LARGEST:
            return b"%d" % value
        raise OverflowError(f"{value} does not fit into 64 bits")
    if kind is bool:
        return b"t" if value else b"f"
    if kind is bytes:
        return f"\\x{value.hex()}".encode()
    if kind is float:
        return repr(value).encode()
    if kind is list:
        return _array(value)
    raise TypeError(f"no column has the type {kind.__name__}")


def parameters(values: Sequence[Any]) -> list[bytes | None]:
    return [parameter(value) for value in values]


_BETWEEN = "\x1f"


def _array(items: list[Any]) -> bytes:
    """An array's text, with its items quoted; all at once, since they are many."""
    kinds = set(map(type, items))
    if kinds == {str}:
        joined = _BETWEEN.join(items)
        if joined.count(_BETWEEN) == len(items) - 1:
            quoted = _quoted(hidden(joined)).replace(_BETWEEN, '","')
            return f'{{"{quoted}"}}'.encode()
    elif kinds == {int} and max(items) <= _LARGEST and min(items) >= -_LARGEST - 1:
        return f"{{{','.join(map(str, items))}}}".encode()
    elif kinds == {bytes}:
        return ('{"\\\\x' + '","\\\\x'.join([item.hex() for item in items]) + '"}').encode()
    return b"{" + b",".join([_item(item) for item in items]) + b"}"


def _item(value: Any) -> bytes:
    given = parameter(value)
    return b"NULL" if given is None else b'"' + _quoted(given.decode()).encode() + b'"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
