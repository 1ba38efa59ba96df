"""The one composer of conditions for `find`, `count` and `events`.

A text is made of the names of a struct's fields and of `?`; a value never becomes part of it. Two questions of the
same shape give the same text, so that prepared statements are found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.filters import Contains, Prefix, Present, Range, Where
from tenure.stores.sql.codec import JSON, Codec, Column, to_json

MOST_VALUES = limits.VALUES_PER_QUERY


class Dialect(msgspec.Struct, frozen=True, cache_hash=True):
    """What SQL databases spell differently. `{}` stands for a column; order and number of `?` are fixed.

    `contains` is asked with what `contains_asks` names: the item as a JSON text, or as itself.
    """

    contains: str
    contains_asks: tuple[str, ...] = ("json", "item")
    truths: tuple[str, str] = ("0", "1")
    arrays: bool = False  # many values may be one parameter
    missing_last: bool = False  # where sorting is not told otherwise
    schema: str = ""  # what stands before a table's name, quoted and with its dot
    fails_untouched: bool = False  # a change that touches no row shall fail by itself: nobody looks before the commit
    # Tables kept as two, `NAME_hot` with these columns and `NAME_base` with the others; `NAME` is a view of both.
    hot: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Order(NamedTuple):
    field: str
    falling: bool
    tell_missing: bool = False  # the database must be told where missing values go


def conditions(codec: Codec[Any], where: Where, dialect: Dialect) -> tuple[list[str], list[Any]] | None:
    """Clauses to join with AND and their values; None where nothing can match."""
    clauses: list[str] = []
    values: list[Any] = []
    for field, wanted in where.items():
        column = column_of(codec, field)
        if isinstance(wanted, tuple):
            if not wanted:
                return None
            clauses.append(_any_of(column, wanted, values, dialect))
        elif isinstance(wanted, Range):
            _range(column, wanted, clauses, values)
        elif isinstance(wanted, Prefix):
            _prefix(column, wanted.text, clauses, values)
        elif isinstance(wanted, Contains):
            if column.type != JSON or not column.annotation.startswith("tuple["):
                raise InvalidInput(f"{field} is not a list: it cannot be asked what it contains")
            clauses.append(dialect.contains.replace("{}", _quoted(column)))
            spelt = {"json": to_json(wanted.item), "item": wanted.item}
            values += [spelt[how] for how in dialect.contains_asks]
        elif isinstance(wanted, Present):
            clauses.append(f"{_quoted(column)} IS {'NOT ' if wanted.yes else ''}NULL")
        elif wanted is None:
            clauses.append(f"{_quoted(column)} IS NULL")
        elif isinstance(wanted, bool):
            # written out, so that a partial index over it can be seen to fit
            clauses.append(f"{_comparable(column)} = {dialect.truths[wanted]}")
        else:
            clauses.append(f"{_comparable(column)} = ?")
            values.append(wanted)
    return clauses, values


def column_of(codec: Codec[Any], field: str) -> Column:
    try:
        return codec.by_name[field]
    except KeyError:
        raise InvalidInput(
            f"{codec.struct.__name__} has no field {field!r}", f"It has: {', '.join(codec.by_name)}."
        ) from None


def order_of(codec: Codec[Any], order: str, dialect: Dialect) -> Order:
    """The field to sort by, checked."""
    field = order.removeprefix("-")
    column = column_of(codec, field)
    _comparable(column)
    return Order(field, field != order, dialect.missing_last and column.nullable)


def order_by(order: Order) -> str:
    """Missing values come first when rising and last when falling; the id turns with the field, as an index does."""
    way = " DESC" if order.falling else ""
    if order.field == "id":
        return f'"id"{way}'
    missing = f" NULLS {'LAST' if order.falling else 'FIRST'}" if order.tell_missing else ""
    return f'"{order.field}"{way}{missing}, "id"{way}'


def beyond(order: Order, after: tuple[Any, str]) -> tuple[str, list[Any]]:
    """The condition for rows behind the pair (value of the order's field, id)."""
    value, row_id = after
    sign = "<" if order.falling else ">"
    if order.field == "id":
        return f'"id" {sign} ?', [row_id]
    field = f'"{order.field}"'
    if value is None:
        if order.falling:
            return f'({field} IS NULL AND "id" < ?)', [row_id]
        return f'({field} IS NOT NULL OR "id" > ?)', [row_id]
    if order.falling:
        return f'(({field}, "id") < (?, ?) OR {field} IS NULL)', [value, row_id]
    return f'({field}, "id") > (?, ?)', [value, row_id]


def _quoted(column: Column) -> str:
    return f'"{column.name}"'


def _comparable(column: Column) -> str:
    if column.type == JSON:
        raise InvalidInput(f"{column.name} holds a structure: it can be neither compared nor sorted by")
    return f'"{column.name}"'


def _any_of(column: Column, wanted: Sequence[Any], values: list[Any], dialect: Dialect) -> str:
    name = _comparable(column)
    given = [value for value in wanted if value is not None]
    if len(given) > MOST_VALUES:
        raise InvalidInput(f"{column.name}: {len(given)} values, at most {MOST_VALUES} can be asked for at once")
    nothing = f"{name} IS NULL"
    if not given:
        return nothing
    if dialect.arrays and len(given) > 1:
        values.append(given)
        clause = f"{name} = ANY(?)"
    else:
        # Filled up to a power of two, so that there are few texts; a value given twice changes nothing.
        width = padded(len(given))
        values += given
        values += [given[-1]] * (width - len(given))
        clause = f"{name} IN ({marks(width)})" if width > 1 else f"{name} = ?"
    return clause if len(given) == len(wanted) else f"({clause} OR {nothing})"


def _range(column: Column, wanted: Range, clauses: list[str], values: list[Any]) -> None:
    name = _comparable(column)
    if wanted.low is None and wanted.high is None:
        clauses.append(f"{name} IS NOT NULL")
    if wanted.low is not None:
        clauses.append(f"{name} >= ?")
        values.append(wanted.low)
    if wanted.high is not None:
        clauses.append(f"{name} < ?")
        values.append(wanted.high)


def _prefix(column: Column, text: str, clauses: list[str], values: list[Any]) -> None:
    """A range and not LIKE, which ignores case and knows wildcards."""
    if column.type != "str":
        raise InvalidInput(f"{column.name} is not a text: it has no beginning")
    clauses.append(f'"{column.name}" >= ?')
    values.append(text)
    following = successor(text)
    if following is not None:
        clauses.append(f'"{column.name}" < ?')
        values.append(following)


def successor(text: str) -> str | None:
    """The first text, by code points, behind all that begin with `text`; None where there is none."""
    while text:
        last = ord(text[-1])
        if last == 0xD7FF:  # the next ones are surrogates, which no stored text has
            return text[:-1] + "\ue000"
        if last < 0x10FFFF:
            return text[:-1] + chr(last + 1)
        text = text[:-1]
    return None


def padded(count: int) -> int:
    return 1 << (count - 1).bit_length()


def marks(count: int) -> str:
    return ", ".join("?" * count)
