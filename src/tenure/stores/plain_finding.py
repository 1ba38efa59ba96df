"""Questions that a store answers by looking at rows itself, checked as SQL stores check them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenure.core.errors import InvalidInput
from tenure.core.filters import Contains, Prefix, Present, Where
from tenure.core.records import Row
from tenure.stores.sql.codec import JSON, columns_of


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
