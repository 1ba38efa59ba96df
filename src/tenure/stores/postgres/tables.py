"""The tables of a PostgreSQL store: a kind may be kept as two, and a change that touches no row aborts itself."""
# ruff: noqa: S608 - texts consist of names that were checked against the structs, never of values

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from tenure.core.records import KINDS, Row
from tenure.stores.sql.codec import Column, columns_of
from tenure.stores.sql.statements import KEY, Dialect, Statement, Table, marks

R = TypeVar("R", bound=Row)

# The columns that claims, renewals and results write. They are a separate table, since PostgreSQL writes a whole new
# row, and a new entry in each index of its table, whatever has changed.
HOT = {
    "task": (
        "sequence", "state", "run", "generation", "attempts", "agent", "session", "claimed_at", "lease", "lease_until",
        "renewals", "presented_at", "claim_epoch", "late_submit_open", "percent", "work_product", "updated_at",
        "ready_at", "started_at", "completed_at", "version", "lane", "band", "rank", "due_at", "plain",
        "set_aside_for", "price",
    )
}  # fmt: skip
_KEY = ("project", "id")
_WITH_HOT = "EXISTS (SELECT 1 FROM hot)"


def parts_of(table: str, struct: type[msgspec.Struct]) -> dict[str, list[Column]]:
    """The tables that keep a kind, each with its columns."""
    columns, hot = list(columns_of(struct)), HOT.get(table)
    if hot is None:
        return {table: columns}
    return {
        f"{table}_hot": [column for column in columns if column.name in _KEY or column.name in hot],
        f"{table}_base": [column for column in columns if column.name not in hot],
    }


class PostgresTable(Table[R]):
    """Changes are sent together with the commit, so nobody can check in between how many rows they touched."""

    def _checked(self, change: str, hot: str = "") -> str:
        """The change, or an error unless it touches one row; `hot` runs before it, on the other table of the two."""
        steps = [f"hot AS ({hot})"] if hot else []
        steps.append(f"touched AS ({change} RETURNING 1)")
        return f"WITH {', '.join(steps)} SELECT 1 / count(*) FROM touched"

    def _loading_many(self, tenant: str, project: str, ids: list[str]) -> Iterator[Statement]:
        """By the primary key, which begins with the id.

        `||` hides tenant and project from the planner. PostgreSQL 17 would otherwise take an index that begins with
        them and has the id at its end, and so read all of the project's entries.
        """
        text = f'{self.select} WHERE "tenant" || \'\' = ? AND "project" || \'\' = ? AND "id" = ANY(?)'
        yield text, [tenant, project, ids]


class SplitTable(PostgresTable[R]):
    """A kind that is kept as two tables, `NAME_hot` and `NAME_base`; `NAME` is a view of both, for reading.

    A new version of a narrow row costs less than one of a wide row, and touches only the indexes of its table.
    """

    def __init__(self, kind: type[R], dialect: Dialect) -> None:
        super().__init__(kind, dialect)
        self.hot, self.base = (f'{dialect.schema}"{self.name}_{part}"' for part in ("hot", "base"))
        parts = parts_of(self.name, kind).values()
        self._hot, self._base = ([self.codec.position[column.name] for column in columns] for columns in parts)
        into_hot, into_base = (
            f'INSERT INTO {place} ("tenant", {", ".join(_quoted(column.name) for column in columns)})'
            f" VALUES ({marks(len(columns) + 1)})"
            for place, columns in zip((self.hot, self.base), parts, strict=True)
        )
        self.insert = f"WITH hot AS ({into_hot}) {into_base}"
        from_hot = f"DELETE FROM {self.hot} WHERE {self._this_row} RETURNING 1"
        self.delete = self._checked(f"DELETE FROM {self.base} WHERE {KEY} AND {_WITH_HOT}", from_hot)

    def _place_of(self, *fields: str) -> str:
        """The one table that has all of them, if there is one: a count then needs no join."""
        positions = {self.codec.position[field] for field in fields}
        if positions <= set(self._hot):
            return self.hot
        return self.base if positions <= set(self._base) else self.place

    def inserting(self, tenant: str, row: R) -> Statement:
        values = self.codec.encode(row)
        return self.insert, [tenant, *(values[n] for n in self._hot), tenant, *(values[n] for n in self._base)]

    def updating(self, tenant: str, before: R, after: R) -> Statement | None:
        positions, values = self.codec.changes(before, after)
        if not positions:
            return None
        hot = [n for n in positions if n in self._hot]
        base = [n for n in positions if n not in hot]
        text = self._updates.get(positions)
        if text is None:
            text = self._updates[positions] = self._update(hot, base)
        new = dict(zip(positions, values, strict=True))
        key = self._key_of(tenant, before)
        return text, [*(new[n] for n in hot), *key, *([*(new[n] for n in base), *key[:3]] if base else [])]

    def _update(self, hot: Sequence[int], base: Sequence[int]) -> str:
        """The hot row decides whether the whole is as it was loaded, also where nothing in it changes."""
        first = f"UPDATE {self.hot} SET {self._sets(hot)} WHERE {self._this_row}" if hot else ""
        if not base:
            return self._checked(first)
        first = f"{first} RETURNING 1" if hot else f"SELECT 1 FROM {self.hot} WHERE {self._this_row}"
        return self._checked(f"UPDATE {self.base} SET {self._sets(base)} WHERE {KEY} AND {_WITH_HOT}", first)

    def deleting(self, tenant: str, row: R) -> Statement:
        text, values = super().deleting(tenant, row)
        return text, [*values, *values[:3]]


def table_for(kind: type[R], dialect: Dialect) -> Table[R]:
    return (SplitTable if KINDS[kind].table in HOT else PostgresTable)(kind, dialect)


def _quoted(name: str) -> str:
    return f'"{name}"'
