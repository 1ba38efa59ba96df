"""Changes as statements: in the caller's order, since one row may give up a unique value that the next one takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tenure.core.errors import Bug
from tenure.core.records import Row
from tenure.stores.port import Change
from tenure.stores.sql.clauses import Dialect
from tenure.stores.sql.statements import table_of


class Write(NamedTuple):
    """One statement, and the row that it is about."""

    text: str
    values: list[Any]
    row: Row


def writes(changes: Sequence[Change], tenant: str, dialect: Dialect) -> Iterator[Write]:
    for change in changes:
        before, after = change.before, change.after
        row = after if after is not None else before
        if row is None:
            raise Bug("a change of nothing into nothing")
        table = table_of(type(row), dialect)
        if before is None:
            statement = table.inserting(tenant, row)
        elif after is None:
            statement = table.deleting(tenant, before)
        else:
            changed = table.updating(tenant, before, after)
            if changed is None:
                continue
            statement = changed
        yield Write(*statement, row)
