"""Questions that a store answers by looking at rows itself: checked as SQL stores check them, sorted and cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from tenure.core.errors import InvalidInput
from tenure.core.filters import Contains, Prefix, Present, Where
from tenure.core.records import Row
from tenure.stores.sql.codec import JSON, columns_of

R = TypeVar("R", bound=Row)


def page(rows: Iterable[R], order: str, after: tuple[Any, str] | None = None, limit: int | None = None) -> list[R]:
    """The rows as `find` gives them: by `order` and then id, behind `after`, at most `limit`."""
    field = order.removeprefix("-")
    falling = field != order
    placed = [(place(getattr(row, field), row.id), row) for row in rows]
    if after is not None:
        here = place(*after)
        placed = [one for one in placed if (one[0] < here if falling else one[0] > here)]
    placed.sort(key=lambda one: one[0], reverse=falling)
    return [row for _, row in placed[:limit]]


def place(value: Any, row_id: str) -> tuple[Any, ...]:
    """A row's sort key: missing values come first."""
    return (value is not None, value if value is not None else 0, row_id)


def check(struct: type[msgspec.Struct], where: Where, *sorting: str) -> None:
    """Refuse what an SQL store would refuse, so that tests on this store find it."""
    columns = {column.name: column for column in columns_of(struct)}
    for field in (*where, *sorting):
        if field not in columns:
            raise InvalidInput(f"{struct.__name__} has no field {field!r}")
    for field in sorting:
        if columns[field].type == JSON:
            raise InvalidInput(f"{field} holds a structure: it can be neither compared nor sorted by")
    for field, wanted in where.items():
        if wanted is None or isinstance(wanted, Present):
            continue
        if isinstance(wanted, Contains) != columns[field].annotation.startswith("tuple["):
            raise InvalidInput(f"{field}: a list, and only a list, can be searched for an item")
        if isinstance(wanted, Prefix) and columns[field].type != "str":
            raise InvalidInput(f"{field}: a prefix filter needs a text column")


def check_numbers(kind: type[Row], fields: Sequence[str]) -> None:
    """Only whole numbers can be added up."""
    types = {column.name: column.type for column in columns_of(kind)}
    for field in fields:
        if types[field] != "int":
            raise InvalidInput(f"{field} is not a whole number: it cannot be added up")
