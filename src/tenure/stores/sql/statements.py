"""Statement texts: conditions of a search, and the statements of one table.

A text consists of the names of a struct's fields and of `?`; a value never becomes part of it. Two searches of the same
shape get the same text, so that a prepared statement is found again.

A row's key is (tenant, project, id). An update or deletion of a task also names the version and generation that were
loaded. It must touch exactly one row; otherwise another writer has changed the row since.
"""
# ruff: noqa: S608 - texts consist of names that were checked against the structs, never of values

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from tenure.core import limits
from tenure.core.errors import Bug, InvalidInput
from tenure.core.events import Event
from tenure.core.filters import Contains, Prefix, Present, Range, Where
from tenure.core.records import KINDS, Row, Task
from tenure.stores.port import UNIQUE, Change, Head
from tenure.stores.sql.codec import JSON, Codec, Column, to_json

R = TypeVar("R", bound=Row)

Statement = tuple[str, list[Any]]
Write = tuple[str, Sequence[Any], Row]  # a statement and its row, or the first of its rows

MOST_VALUES = limits.VALUES_PER_QUERY
MANY = 16  # new rows that are encoded together
_LOAD_AT_ONCE = 256
_PLAIN = frozenset({str, int})  # not bool, which is written into the text
KEY = '"tenant" = ? AND "project" = ? AND "id" = ?'


class Dialect(msgspec.Struct, frozen=True, cache_hash=True):
    """Where SQL databases differ. `{}` stands for a column; the order and number of `?` are fixed."""

    contains: str
    contains_values: tuple[str, ...] = ("json", "item")  # what its `?` get: the item as JSON text, or as it is
    truths: tuple[str, str] = ("0", "1")
    arrays: bool = False  # one parameter may hold many values
    nulls_last: bool = False  # the default of an ascending order
    row_values: bool = True  # its planner reads a range for (a, b) > (?, ?)
    schema: str = ""  # stands before a table's name, quoted and with its dot
    tables: Callable[[type[Row], Dialect], Table[Any]] | None = None  # makes a kind's Table, where it is special


# --- conditions ---


class Order(msgspec.Struct, frozen=True):
    field: str
    falling: bool
    names_nulls: bool = False  # the text must say where NULL goes
    row_values: bool = True


def conditions(codec: Codec[Any], where: Where, dialect: Dialect) -> tuple[list[str], list[Any]]:
    """Clauses to join with AND, and their values."""
    clauses: list[str] = []
    values: list[Any] = []
    for field, wanted in where.items():
        column = column_of(codec, field)
        name = f'"{field}"'
        match wanted:
            case Contains():
                if column.type != JSON or not column.annotation.startswith("tuple["):
                    raise InvalidInput(f"{field} is not a list, so it cannot be searched for an item")
                for item in (wanted.item, *wanted.more):
                    clauses.append(dialect.contains.replace("{}", name))
                    spelt = {"json": to_json(item), "item": item}
                    values += [spelt[how] for how in dialect.contains_values]
                continue
            case Present():
                clauses.append(f"{name} IS {'NOT ' if wanted.yes else ''}NULL")
                continue
            case None:
                clauses.append(f"{name} IS NULL")
                continue
        _refuse_json(column)
        match wanted:
            case tuple():
                clauses.append(_any_of(column, wanted, values, dialect))
            case Range():
                bounds = [(f"{name} {sign} ?", at) for sign, at in ((">=", wanted.low), ("<", wanted.high))]
                clauses += [clause for clause, at in bounds if at is not None] or [f"{name} IS NOT NULL"]
                values += [at for _, at in bounds if at is not None]
            case Prefix():
                if column.type != "str":
                    raise InvalidInput(f"{field}: a prefix filter needs a text column")
                # A range, because LIKE ignores case and has wildcards.
                following = successor(wanted.text)
                clauses += [f"{name} >= ?", *([f"{name} < ?"] if following is not None else [])]
                values += [wanted.text, *([following] if following is not None else [])]
            case bool():
                # written out, so that the planner sees that a partial index fits
                clauses.append(f"{name} = {dialect.truths[wanted]}")
            case _:
                clauses.append(f"{name} = ?")
                values.append(wanted)
    return clauses, values


def _any_of(column: Column, wanted: Sequence[Any], values: list[Any], dialect: Dialect) -> str:
    name, given = f'"{column.name}"', [value for value in wanted if value is not None]
    if len(given) > MOST_VALUES:
        raise InvalidInput(f"{column.name}: {len(given)} values, at most {MOST_VALUES} in one search")
    if not given:
        return f"{name} IS NULL" if wanted else "1 = 0"
    if dialect.arrays and len(given) > 1:
        values.append(given)
        clause = f"{name} = ANY(?)"
    else:
        filled = filled_up(given)
        values += filled
        clause = f"{name} IN ({marks(len(filled))})" if len(filled) > 1 else f"{name} = ?"
    return clause if len(given) == len(wanted) else f"({clause} OR {name} IS NULL)"


def column_of(codec: Codec[Any], field: str) -> Column:
    try:
        return codec.by_name[field]
    except KeyError:
        raise InvalidInput(
            f"{codec.struct.__name__} has no field {field!r}", f"It has: {', '.join(codec.by_name)}."
        ) from None


def _refuse_json(column: Column) -> None:
    if column.type == JSON:
        raise InvalidInput(f"{column.name} holds a structure: it can be neither compared nor sorted by")


def order_of(codec: Codec[Any], order: str, dialect: Dialect) -> Order:
    """The field to sort by, checked."""
    field = order.removeprefix("-")
    column = column_of(codec, field)
    _refuse_json(column)
    return Order(field, field != order, dialect.nulls_last and column.nullable, dialect.row_values)


def order_by(order: Order) -> str:
    """NULL comes first when rising and last when falling; the id turns with the field, as an index does."""
    way = " DESC" if order.falling else ""
    if order.field == "id":
        return f'"id"{way}'
    nulls = f" NULLS {'LAST' if order.falling else 'FIRST'}" if order.names_nulls else ""
    return f'"{order.field}"{way}{nulls}, "id"{way}'


def beyond(order: Order, after: tuple[Any, str]) -> tuple[str, list[Any]]:
    """The condition for rows behind the pair (value of the order's field, id)."""
    value, row_id = after
    sign, field = "<" if order.falling else ">", f'"{order.field}"'
    if order.field == "id":
        return f'"id" {sign} ?', [row_id]
    if value is None:
        if order.falling:
            return f'({field} IS NULL AND "id" < ?)', [row_id]
        return f'({field} IS NOT NULL OR "id" > ?)', [row_id]
    pair, values = f'({field}, "id") {sign} (?, ?)', [value, row_id]
    if not order.row_values:
        pair = f'({field} {sign} ? OR {field} = ? AND "id" {sign} ?)'
        values = [value, value, row_id]
    return (f"({pair} OR {field} IS NULL)" if order.falling else pair), values


def successor(text: str) -> str | None:
    """The first text, by code points, behind every text with this prefix; None where there is none."""
    while text:
        last = ord(text[-1])
        if last == 0xD7FF:  # the next ones are surrogates, which no stored text has
            return text[:-1] + "\ue000"
        if last < 0x10FFFF:
            return text[:-1] + chr(last + 1)
        text = text[:-1]
    return None


def filled_up(values: list[Any]) -> list[Any]:
    """The values, repeated up to a power of two: few texts, and a value given twice changes nothing."""
    return values + values[-1:] * ((1 << (len(values) - 1).bit_length()) - len(values))


def marks(count: int) -> str:
    return ", ".join("?" * count)


def joined(clauses: Sequence[str]) -> str:
    return " AND ".join(('"tenant" = ?', *clauses))


# --- tables ---


class Table(Generic[R]):
    """The statements for one kind of row, their texts composed once."""

    def __init__(self, kind: type[R], dialect: Dialect) -> None:
        self.kind = kind
        self.name = KINDS[kind].table
        self.dialect = dialect
        self.codec: Codec[R] = Codec(kind)
        names = ", ".join(f'"{column.name}"' for column in self.codec.columns)
        self.place = f'{dialect.schema}"{self.name}"'
        self.written = f'{dialect.schema}"{self._written_to()}"'
        self.select = f"SELECT {names} FROM {self.place}"
        self._load_one = f"{self.select} WHERE {KEY}"
        self.insert = f'INSERT INTO {self.written} ("tenant", {names}) VALUES ({marks(len(self.codec.columns) + 1)})'
        self._uniques = [unique for unique in UNIQUE.get(kind, ()) if unique.only_if is None]
        self._guards = ("version", "generation") if issubclass(kind, Task) else ()
        self._key = attrgetter("project", "id", *self._guards)
        self._this_row = " AND ".join((KEY, *(f'"{name}" = ?' for name in self._guards)))
        self.delete = self._checked(f"DELETE FROM {self.written} WHERE {self._this_row}")
        self._updates: dict[tuple[int, ...], str] = {}
        self._finds: dict[tuple[Any, ...], str] = {}

    def _written_to(self) -> str:
        """The table that changes go to, where `place` is a view."""
        return self.name

    def _checked(self, change: str) -> str:
        """The statement of a change that must touch one row. Here the caller checks how many it touched."""
        return change

    def inserting(self, tenant: str, row: R) -> Statement:
        return self.insert, [tenant, *self.codec.encode(row)]

    def inserting_many(self, tenant: str, rows: Sequence[R]) -> Iterator[Write]:
        """As `inserting` for each; they are of one project."""
        columns = [repeat(tenant), *(many or repeat(one) for one, many in self.codec.encode_many(rows))]
        for row, *values in zip(rows, *columns, strict=False):
            yield self.insert, values, row

    def updating(self, tenant: str, before: R, after: R, known: Sequence[int] | None = None) -> Statement | None:
        """Sets only the columns that changed, so that no other index is touched; None where none did.

        `known` as in Change.
        """
        positions, values = self.codec.changes(before, after, known)
        if not positions:
            return None
        text = self._updates.get(positions)
        if text is None:
            change = f"UPDATE {self.written} SET {self._sets(positions)} WHERE {self._this_row}"
            text = self._updates[positions] = self._checked(change)
        values += self._key_of(tenant, before)
        return text, values

    def _sets(self, positions: Sequence[int]) -> str:
        names = [self.codec.columns[n].name for n in positions]
        if "id" in names or "project" in names:
            raise Bug(f"{self.name}: a change cannot give a row another id or project")
        return ", ".join(f'"{name}" = ?' for name in names)

    def _key_of(self, tenant: str, row: R) -> list[Any]:
        return [tenant, *self._key(row)]

    def deleting(self, tenant: str, row: R) -> Statement:
        return self.delete, self._key_of(tenant, row)

    def loading_one(self, tenant: str, key: tuple[str, str]) -> Statement:
        return self._load_one, [tenant, *key]

    def loading(self, tenant: str, keys: Collection[tuple[str, str]]) -> Iterator[Statement]:
        """Statements that together return each row once."""
        by_project: dict[str, dict[str, None]] = {}
        for project, row_id in keys:
            by_project.setdefault(project, {})[row_id] = None
        for project, wanted in by_project.items():
            ids = list(wanted)
            if len(ids) == 1:
                yield self._load_one, [tenant, project, *ids]
                continue
            yield from self._loading_many(tenant, project, ids)

    def _loading_many(self, tenant: str, project: str, ids: list[str]) -> Iterator[Statement]:
        for start in range(0, len(ids), _LOAD_AT_ONCE):
            part = filled_up(ids[start : start + _LOAD_AT_ONCE])
            text = f'{self.select} WHERE "tenant" = ? AND "project" = ? AND "id" IN ({marks(len(part))})'
            yield text, [tenant, project, *part]

    def finding(
        self, tenant: str, where: Where, order: str, after: tuple[Any, str] | None, limit: int | None
    ) -> Statement:
        """The text of the hot shape, equality alone, is composed once."""
        is_plain = after is None and _PLAIN.issuperset(map(type, where.values()))
        shape = (*where, order, limit is None)
        text = self._finds.get(shape) if is_plain else None
        values = [*where.values()]
        if text is None:
            by = order_of(self.codec, order, self.dialect)
            clauses, values = conditions(self.codec, where, self.dialect)
            if after is not None:
                clause, more = beyond(by, after)
                clauses.append(clause)
                values += more
            text = f"{self.select} WHERE {joined(clauses)}"
            text += "" if is_plain and self._is_one(where) else f" ORDER BY {order_by(by)}"
            text += "" if limit is None else " LIMIT ?"
            if is_plain:
                self._finds[shape] = text
        return text, [tenant, *values, *(() if limit is None else (limit,))]

    def _is_one(self, where: Where) -> bool:
        """At most one row has these values. With an ORDER BY a planner may walk all rows in that order to find it."""
        return "project" in where and any(where.keys() >= set(unique.fields) for unique in self._uniques)

    def _counted(self, tenant: str, where: Where, *fields: str) -> Statement:
        """The text behind FROM of a count: the rows that match, with at least these fields."""
        clauses, values = conditions(self.codec, where, self.dialect)
        return f"{self.place} WHERE {joined(clauses)}", [tenant, *values]

    def counting(self, tenant: str, where: Where, by: str) -> Statement:
        """Returns pairs (value of `by`, number)."""
        return self._grouping(tenant, where, by, "count(*)")

    def summing(self, tenant: str, where: Where, by: str, fields: Sequence[str]) -> Statement:
        """Returns the value of `by`, then the sum of each field."""
        for field in fields:
            if column_of(self.codec, field).type != "int":
                raise InvalidInput(f"{field} is not a whole number: it cannot be added up")
        return self._grouping(tenant, where, by, ", ".join(f'sum("{field}")' for field in fields), *fields)

    def _grouping(self, tenant: str, where: Where, by: str, what: str, *fields: str) -> Statement:
        order_of(self.codec, by, self.dialect)  # checks it
        text, values = self._counted(tenant, where, by, *fields)
        return f'SELECT "{by}", {what} FROM {text} GROUP BY "{by}"', values

    def tallying(self, tenant: str, where: Where, most: int) -> Statement:
        text, values = self._counted(tenant, where)
        return f"SELECT count(*) FROM (SELECT 1 FROM {text} LIMIT ?) AS matching", [*values, most]


class EventTable:
    """The statements for the log. The database assigns the sequence."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.codec: Codec[Event] = Codec(Event)
        names = [f'"{column.name}"' for column in self.codec.columns]
        self.place = f'{dialect.schema}"event"'
        self.select = f"SELECT {', '.join(names)} FROM {self.place}"
        self._sequence = self.codec.position["sequence"]
        names[self._sequence] = '"tenant"'
        self.insert = f"INSERT INTO {self.place} ({', '.join(names)}) VALUES ({marks(len(names))})"

    def many(self, tenant: str, events: Sequence[Event]) -> Iterator[tuple[Any, ...]]:
        """As `values` for each."""
        columns = [many or repeat(one) for one, many in self.codec.encode_many(events)]
        columns[self._sequence] = [tenant] * len(events)
        return zip(*columns, strict=False)

    def values(self, tenant: str, event: Event) -> list[Any]:
        """For `insert`: the tenant stands at the position of the sequence."""
        values = self.codec.encode(event)
        values[self._sequence] = tenant
        return values

    def finding(
        self, tenant: str, where: Where, after: int, limit: int, last: bool, by: str = '"sequence"'
    ) -> Statement:
        """`by`: the sequence, written so that a planner takes the right index."""
        clauses, values = conditions(self.codec, where, self.dialect)
        way = " DESC" if last else ""
        text = f"{self.select} WHERE {joined(clauses)} AND {by} > ? ORDER BY {by}{way} LIMIT ?"
        return text, [tenant, *values, after, limit]

    def dropping(self, tenant: str, project: str, tasks: Collection[str]) -> Iterator[Statement]:
        """Statements that remove the events of these tasks, but not the project's last.

        The last one is found from the end of the log, where the caller has just written it, and the others by their
        tasks: `||` and `+` keep planners from any other index.
        """
        last = (
            f'(SELECT "sequence" FROM {self.place} WHERE "tenant" || \'\' = ? AND "project" || \'\' = ?'
            ' ORDER BY "sequence" DESC LIMIT 1)'
        )
        wanted = list(dict.fromkeys(tasks))
        for start in range(0, len(wanted), _LOAD_AT_ONCE):
            part = tuple(wanted[start : start + _LOAD_AT_ONCE])
            clauses, values = conditions(self.codec, {"project": project, "task": part}, self.dialect)
            text = f'DELETE FROM {self.place} WHERE {joined(clauses)} AND "sequence" + 0 < {last}'
            yield text, [tenant, *values, tenant, project]


@cache
def table_of(kind: type[R], dialect: Dialect) -> Table[R]:
    """Made when a kind is first used: a command touches few kinds."""
    return (dialect.tables or Table)(kind, dialect)


@cache
def event_table(dialect: Dialect) -> EventTable:
    return EventTable(dialect)


def grouped(kind: type[R], by: str, pairs: Iterable[tuple[Any, ...]], dialect: Dialect) -> dict[Any, Any]:
    """The groups by value, where the database keeps a bool as an integer."""
    if table_of(kind, dialect).codec.by_name[by].type == "bool":
        return {None if value is None else value != 0: group for value, group in pairs}
    return dict(pairs)


def head_of(row: Sequence[Any]) -> Head:
    """The same for a task's position in its lane."""
    band, rank, sequence, id, plain = row
    return Head(band, rank, sequence, id, plain != 0)


def writes(changes: Sequence[Change], tenant: str, dialect: Dialect) -> Iterator[Write]:
    """Changes as statements, each with its row, in the caller's order: a row may free a unique value for the next."""
    for (kind, _, is_new), some in groupby(changes, _sort):
        table = table_of(kind, dialect)
        if not is_new:
            for change in some:
                yield from _changed(table, change, tenant)
            continue
        rows = [change.after for change in some if change.after is not None]
        if len(rows) >= MANY:
            yield from table.inserting_many(tenant, rows)
        else:
            for row in rows:
                yield *table.inserting(tenant, row), row


def _sort(change: Change) -> tuple[type[Row], str, bool]:
    """Equal for new rows of one kind and project."""
    row = change.after if change.after is not None else change.before
    if row is None:
        raise Bug("a change has neither a row before nor one after")
    return type(row), row.project, change.before is None


def _changed(table: Table[Any], change: Change, tenant: str) -> Sequence[Write]:
    before, after = change.before, change.after
    assert before is not None
    if after is None:
        return ((*table.deleting(tenant, before), before),)
    statement = table.updating(tenant, before, after, change.fields)
    return () if statement is None else ((*statement, after),)
