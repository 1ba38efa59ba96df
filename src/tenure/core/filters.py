"""The filters of `find`: a mapping from field to value, tuple of values (any of them), or one of these.

Defined here, below the stores, so that the engine can apply them to rows it has changed but not yet saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tenure.core.records import Row

R = TypeVar("R", bound=Row)


class Range(msgspec.Struct, frozen=True):
    """low ≤ value < high; an open end is None. A missing value is in no range."""

    low: Any = None
    high: Any = None


class Prefix(msgspec.Struct, frozen=True):
    """Text with the prefix `text`."""

    text: str


class Contains(msgspec.Struct, frozen=True):
    """A list that contains `item`, and each of `more`."""

    item: str
    more: tuple[str, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """Any value at all, or none with `yes=False`."""

    yes: bool = True


Where = Mapping[str, Any]


def matches(row: msgspec.Struct, where: Where) -> bool:
    return all(_fits(getattr(row, field), wanted) for field, wanted in where.items())


def selected(
    rows: Iterable[R], where: Where, order: str = "id", after: tuple[Any, str] | None = None, limit: int | None = None
) -> list[R]:
    """The rows that match, as a store's `find` gives them: by `order` and then id, missing values first."""
    field = order.removeprefix("-")
    falling = field != order
    places = [(place(getattr(row, field), row.id), row) for row in rows if matches(row, where)]
    if after is not None:
        here = place(*after)
        places = [pair for pair in places if (pair[0] < here if falling else pair[0] > here)]
    places.sort(key=lambda pair: pair[0], reverse=falling)
    return [row for _, row in places[:limit]]


def place(value: Any, row_id: str) -> tuple[Any, ...]:
    """A row's sort key: missing values come first."""
    return (value is not None, value if value is not None else 0, row_id)


def sums_of(rows: Iterable[Row], by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
    """The sums of integer fields for each value of `by`; None where no row of a group has a value there."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, by), []).append(row)
    return {
        value: tuple(_sum([n for row in group if (n := getattr(row, field)) is not None]) for field in fields)
        for value, group in groups.items()
    }


def _sum(numbers: list[int]) -> int | None:
    return sum(numbers) if numbers else None


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return value in wanted
    if isinstance(wanted, Range):
        if value is None or (wanted.low is not None and value < wanted.low):
            return False
        return wanted.high is None or bool(value < wanted.high)
    if isinstance(wanted, Prefix):
        return value is not None and str(value).startswith(wanted.text)
    if isinstance(wanted, Contains):
        return all(item in value for item in (wanted.item, *wanted.more))
    if isinstance(wanted, Present):
        return (value is not None) == wanted.yes
    return bool(value == wanted)
