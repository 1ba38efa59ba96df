"""The statement texts of one table, made once.

A row is known by (tenant, project, id). An update or removal of a task also names the version and generation that were
loaded; it must touch exactly one row, or the row is not as it was loaded.
"""
# ruff: noqa: S608 - texts are made of the structs' names and of what `clauses` has checked, never of values

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

from tenure.core.errors import Bug, InvalidInput
from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import KINDS, Row, Task
from tenure.stores.port import UNIQUE
from tenure.stores.sql.clauses import (
    Dialect,
    beyond,
    column_of,
    conditions,
    marks,
    order_by,
    order_of,
    padded,
)
from tenure.stores.sql.codec import Codec

R = TypeVar("R", bound=Row)
_PLAIN = (str, int)  # and not bool, which is written into the text

Statement = tuple[str, list[Any]]

_LOAD_AT_ONCE = 256


class Table(Generic[R]):
    """Texts and values for one kind of row."""

    def __init__(self, kind: type[R], dialect: Dialect) -> None:
        self.kind = kind
        self.name = KINDS[kind].table
        self.dialect = dialect
        self.codec: Codec[R] = Codec(kind)
        names = ", ".join(f'"{column.name}"' for column in self.codec.columns)
        self.place = f'{dialect.schema}"{self.name}"'
        self.select = f"SELECT {names} FROM {self.place}"
        self.select_one = f'{self.select} WHERE "tenant" = ? AND "project" = ? AND "id" = ?'
        self.insert = f'INSERT INTO {self.place} ("tenant", {names}) VALUES ({marks(len(self.codec.columns) + 1)})'
        self._uniques = [unique for unique in UNIQUE.get(kind, ()) if unique.only_if is None]
        self._guards = ("version", "generation") if issubclass(kind, Task) else ()
        self._this_row = " AND ".join(f'"{name}" = ?' for name in ("tenant", "project", "id", *self._guards))
        self.delete = self._touching(f"DELETE FROM {self.place} WHERE {self._this_row}")
        self._updates: dict[tuple[int, ...], str] = {}
        self._finds: dict[tuple[Any, ...], str] = {}

    def inserting(self, tenant: str, row: R) -> Statement:
        return self.insert, [tenant, *self.codec.encode(row)]

    def updating(self, tenant: str, before: R, after: R) -> Statement | None:
        """Sets only what changed, so that no other index is touched; None where nothing did."""
        positions, values = self.codec.changes(before, after)
        if not positions:
            return None
        text = self._updates.get(positions)
        if text is None:
            text = self._touching(f"UPDATE {self.place} SET {self._sets(positions)} WHERE {self._this_row}")
            self._updates[positions] = text
        values += (tenant, before.project, before.id)
        values += [getattr(before, name) for name in self._guards]
        return text, values

    def _touching(self, change: str, hot: str = "") -> str:
        """The change, which must touch one row; after what `hot` says of the other table of the two."""
        first = f"hot AS ({hot})" if hot else ""
        if not self.dialect.fails_untouched:
            return f"WITH {first} {change}" if first else change
        steps = [step for step in (first, f"touched AS ({change} RETURNING 1)") if step]
        return f"WITH {', '.join(steps)} SELECT 1 / count(*) FROM touched"

    def _sets(self, positions: Sequence[int]) -> str:
        names = [self.codec.columns[n].name for n in positions]
        if "id" in names or "project" in names:
            raise Bug(f"{self.name}: a change cannot give a row another id or project")
        return ", ".join(f'"{name}" = ?' for name in names)

    def deleting(self, tenant: str, row: R) -> Statement:
        return self.delete, [tenant, row.project, row.id, *(getattr(row, name) for name in self._guards)]

    def loading(self, tenant: str, keys: Collection[tuple[str, str]]) -> Iterator[Statement]:
        """Statements that together give each row once."""
        if len(keys) == 1:
            for project, row_id in keys:
                yield self.select_one, [tenant, project, row_id]
            return
        by_project: dict[str, dict[str, None]] = {}
        for project, row_id in keys:
            by_project.setdefault(project, {})[row_id] = None
        for project, wanted in by_project.items():
            ids = list(wanted)
            if self.dialect.arrays:
                yield f'{self.select} WHERE "tenant" = ? AND "project" = ? AND "id" = ANY(?)', [tenant, project, ids]
                continue
            for start in range(0, len(ids), _LOAD_AT_ONCE):
                part = ids[start : start + _LOAD_AT_ONCE]
                width = padded(len(part))
                text = f'{self.select} WHERE "tenant" = ? AND "project" = ? AND "id" IN ({marks(width)})'
                yield text, [tenant, project, *part, *([part[-1]] * (width - len(part)))]

    def finding(
        self, tenant: str, where: Where, order: str, after: tuple[Any, str] | None, limit: int | None
    ) -> Statement | None:
        """None where nothing can match."""
        if after is None and all(type(value) in _PLAIN for value in where.values()):
            return self._finding_plain(tenant, where, order, limit)
        by = order_of(self.codec, order, self.dialect)
        found = conditions(self.codec, where, self.dialect)
        if found is None:
            return None
        clauses, values = found
        if after is not None:
            clause, more = beyond(by, after)
            clauses.append(clause)
            values += more
        text = f"{self.select} WHERE {_joined(clauses)} ORDER BY {order_by(by)}"
        if limit is not None:
            text += " LIMIT ?"
            values.append(limit)
        return text, [tenant, *values]

    def _finding_plain(self, tenant: str, where: Where, order: str, limit: int | None) -> Statement:
        """The hot shape, equality alone: its text is composed once."""
        shape = (*where, order, limit is None)
        text = self._finds.get(shape)
        if text is None:
            by = order_of(self.codec, order, self.dialect)
            found = conditions(self.codec, where, self.dialect)
            assert found is not None
            text = f"{self.select} WHERE {_joined(found[0])}"
            if not self._is_one(where):
                text += f" ORDER BY {order_by(by)}"
            text += "" if limit is None else " LIMIT ?"
            self._finds[shape] = text
        values = [tenant, *where.values()]
        if limit is not None:
            values.append(limit)
        return text, values

    def _is_one(self, where: Where) -> bool:
        """At most one row has these values. Asked for an order, a planner may walk all rows in it to find the one."""
        return "project" in where and any(where.keys() >= set(unique.fields) for unique in self._uniques)

    def _place_of(self, *fields: str) -> str:
        """Where these fields are kept."""
        return self.place

    def counting(self, tenant: str, where: Where, by: str) -> Statement | None:
        """Gives pairs (value of `by`, number); None where nothing can match."""
        order_of(self.codec, by, self.dialect)  # what can be sorted by can be counted by
        found = conditions(self.codec, where, self.dialect)
        if found is None:
            return None
        clauses, values = found
        text = f'SELECT "{by}", count(*) FROM {self._place_of(by, *where)} WHERE {_joined(clauses)} GROUP BY "{by}"'
        return text, [tenant, *values]

    def summing(self, tenant: str, where: Where, by: str, fields: Sequence[str]) -> Statement | None:
        """Gives the value of `by`, then the sum of each field; None where nothing can match."""
        order_of(self.codec, by, self.dialect)
        for field in fields:
            if column_of(self.codec, field).type != "int":
                raise InvalidInput(f"{field} is not a whole number: it cannot be added up")
        found = conditions(self.codec, where, self.dialect)
        if found is None:
            return None
        clauses, values = found
        sums = ", ".join(f'sum("{field}")' for field in fields)
        place = self._place_of(by, *where, *fields)
        text = f'SELECT "{by}", {sums} FROM {place} WHERE {_joined(clauses)} GROUP BY "{by}"'
        return text, [tenant, *values]

    def tallying(self, tenant: str, where: Where, most: int) -> Statement | None:
        found = conditions(self.codec, where, self.dialect)
        if found is None:
            return None
        clauses, values = found
        place = self._place_of(*where)
        text = f"SELECT count(*) FROM (SELECT 1 FROM {place} WHERE {_joined(clauses)} LIMIT ?) AS matching"
        return text, [tenant, *values, most]


class SplitTable(Table[R]):
    """A kind that is kept as two tables: what is written often, and the rest. A view of both is read.

    A new version of a narrow row costs less than one of a wide row, and touches only the indexes of its own table.
    """

    def __init__(self, kind: type[R], dialect: Dialect, hot: Collection[str]) -> None:
        super().__init__(kind, dialect)
        self.hot = f'{dialect.schema}"{self.name}_hot"'
        self.base = f'{dialect.schema}"{self.name}_base"'
        names = [column.name for column in self.codec.columns]
        self._hot = [n for n, name in enumerate(names) if name in hot or name in _KEY]
        self._base = [n for n, name in enumerate(names) if name not in hot]
        both = (self.hot, self._hot), (self.base, self._base)
        into_hot, into_base = (
            f'INSERT INTO {place} ("tenant", {", ".join(_quoted(names[n]) for n in part)})'
            f" VALUES ({marks(len(part) + 1)})"
            for place, part in both
        )
        self.insert = f"WITH hot AS ({into_hot}) {into_base}"
        of_hot = f"DELETE FROM {self.hot} WHERE {self._this_row} RETURNING 1"
        self.delete = self._touching(f"DELETE FROM {self.base} WHERE {_SAME} AND {_BOTH}", of_hot)

    def _place_of(self, *fields: str) -> str:
        """The one table that has them all, where there is one: counting need not join."""
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
        text = self._updates.get(positions)
        hot = [n for n in positions if n in self._hot]
        if text is None:
            text = self._updates[positions] = self._update(hot, [n for n in positions if n not in hot])
        new = dict(zip(positions, values, strict=True))
        key = [tenant, before.project, before.id]
        guards = [getattr(before, name) for name in self._guards]
        base = [new[n] for n in positions if n not in hot]
        return text, [*(new[n] for n in hot), *key, *guards, *([*base, *key] if base else [])]

    def _update(self, hot: Sequence[int], base: Sequence[int]) -> str:
        """The hot row says whether the whole is as it was loaded, also where nothing in it changes."""
        first = f"UPDATE {self.hot} SET {self._sets(hot)} WHERE {self._this_row}" if hot else ""
        if not base:
            return self._touching(first)
        first = f"{first} RETURNING 1" if hot else f"SELECT 1 FROM {self.hot} WHERE {self._this_row}"
        return self._touching(f"UPDATE {self.base} SET {self._sets(base)} WHERE {_SAME} AND {_BOTH}", first)

    def deleting(self, tenant: str, row: R) -> Statement:
        text, values = super().deleting(tenant, row)
        return text, [*values, *values[:3]]


_KEY = ("project", "id")
_SAME = '"tenant" = ? AND "project" = ? AND "id" = ?'
_BOTH = "EXISTS (SELECT 1 FROM hot)"


class EventTable:
    """Texts and values for the log. The database gives the sequence."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.codec: Codec[Event] = Codec(Event)
        names = [f'"{column.name}"' for column in self.codec.columns]
        self.place = f'{dialect.schema}"event"'
        self.select = f"SELECT {', '.join(names)} FROM {self.place}"
        self._sequence = self.codec.position["sequence"]
        names[self._sequence] = '"tenant"'
        self.insert = f"INSERT INTO {self.place} ({', '.join(names)}) VALUES ({marks(len(names))})"

    def values(self, tenant: str, event: Event) -> list[Any]:
        """For `insert`, whose tenant stands where the sequence would."""
        values = self.codec.encode(event)
        values[self._sequence] = tenant
        return values

    def finding(
        self, tenant: str, where: Where, after: int, limit: int, last: bool, by: str = '"sequence"'
    ) -> Statement | None:
        """`by`: the sequence, spelt so that a planner goes by the right index."""
        found = conditions(self.codec, where, self.dialect)
        if found is None:
            return None
        clauses, values = found
        way = " DESC" if last else ""
        text = f"{self.select} WHERE {_joined(clauses)} AND {by} > ? ORDER BY {by}{way} LIMIT ?"
        return text, [tenant, *values, after, limit]

    def dropping(self, tenant: str, project: str, tasks: Collection[str]) -> Iterator[Statement]:
        """Statements that remove the events of these tasks, but not the project's last.

        It is looked for from the end of the log, where whoever drops has just written it, and the others by their
        tasks: `||` and `+` keep planners from any other way.
        """
        last = (
            f'(SELECT "sequence" FROM {self.place} WHERE "tenant" || \'\' = ? AND "project" || \'\' = ?'
            ' ORDER BY "sequence" DESC LIMIT 1)'
        )
        wanted = list(dict.fromkeys(tasks))
        for start in range(0, len(wanted), _LOAD_AT_ONCE):
            part = wanted[start : start + _LOAD_AT_ONCE]
            found = conditions(self.codec, {"project": project, "task": tuple(part)}, self.dialect)
            assert found is not None
            text = f'DELETE FROM {self.place} WHERE {_joined(found[0])} AND "sequence" + 0 < {last}'
            yield text, [tenant, *found[1], tenant, project]


@cache
def table_of(kind: type[R], dialect: Dialect) -> Table[R]:
    """The texts of a kind, made when it is first used: a command touches few kinds."""
    hot = dict(dialect.hot).get(KINDS[kind].table)
    return Table(kind, dialect) if hot is None else SplitTable(kind, dialect, hot)


@cache
def event_table(dialect: Dialect) -> EventTable:
    return EventTable(dialect)


def _quoted(name: str) -> str:
    return f'"{name}"'


def _joined(clauses: Sequence[str]) -> str:
    return " AND ".join(('"tenant" = ?', *clauses))
