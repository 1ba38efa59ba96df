"""The tables of a PostgreSQL store: a kind may be kept in several, and a change that touches no row aborts itself.

`narrow_rows.py` explains which tables there are, and why.
"""
# ruff: noqa: S608 - texts consist of names that were checked against the structs, never of values

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from tenure.core import lifecycle
from tenure.core.filters import Range, Where
from tenure.core.records import Claim, Result, Task
from tenure.stores.postgres.bulk_inserts import given
from tenure.stores.postgres.narrow_rows import NARROW, NarrowTable, PostgresTable, by_space
from tenure.stores.sql.codec import Column, columns_of
from tenure.stores.sql.statements import (
    KEY,
    Dialect,
    Statement,
    Table,
    Write,
    beyond,
    conditions,
    joined,
    marks,
    order_by,
    order_of,
)

# The columns that claims, renewals and results write. They are a separate table, since PostgreSQL writes a whole new
# row, and a new entry in each index of its table, whatever has changed.
HOT = {
    "task": (
        "state", "run", "generation", "attempts", "agent", "session", "claimed_at", "lease", "lease_until", "renewals",
        "presented_at", "claim_epoch", "late_submit_open", "percent", "work_product", "updated_at", "ready_at",
        "started_at", "completed_at", "version", "lane", "due_at", "plain",
    )
}  # fmt: skip
# Filters that find a few tasks by a separate index.
_SELECTIVE = frozenset(
    {"id", "key", "ref", "idempotency_key", "parent", "dag", "offer_to", "set_aside_for", "created_at"}
)
# Orders that `task_base` has an index for. A page of common states walks it, and skips tasks of other states; a page of
# rarer ones is sorted, since the walk might come to them last.
_WALKED = frozenset({"created_at", "key"})
_COMMON = 2000  # tasks
_BY_STATE = frozenset({"project", "state"})
# The columns that are written rarely, with the state by the task's place: without its hot row, unless it is held.
_COUNTED = """(SELECT b.*, c.state FROM (
    SELECT space, number, 'ready'::text COLLATE "C" AS state FROM {s}queue
    UNION ALL SELECT space, number, state FROM {s}standing
    UNION ALL SELECT s.space, s.number, h.state FROM {s}held AS s CROSS JOIN LATERAL (
        SELECT k.state FROM {s}task_hot AS k WHERE k.space = s.space AND k.number = s.number OFFSET 0) AS h
        WHERE h.state IN ('claimed', 'running')) AS c
    JOIN {s}task_base AS b ON b.space = c.space AND b.number = c.number) AS listed"""
_BY_HOLDER = frozenset({"project", "session", "agent"})
_READY = "'ready'::text COLLATE \"C\""
# A place and the rows of its tasks, from the place to the row, whatever the planner expects: without `OFFSET 0` it
# sorted all tasks of a project to find the few of a state that it did not know to be rare.
_ALL_OF = """(SELECT t.*, {state} AS place_state FROM {place} AS s CROSS JOIN LATERAL (SELECT * FROM {s}task AS k
    WHERE k.space = s.space AND k.number = s.number OFFSET 0) AS t
    WHERE t.space = s.space AND t.id = s.id AND t.state = {state}) AS placed"""


def parts_of(table: str, struct: type[msgspec.Struct]) -> dict[str, list[Column]]:
    """The tables that keep a kind, each with its columns."""
    columns, hot = list(columns_of(struct)), HOT.get(table)
    if hot is None:
        return {NARROW.get(table, table): columns}
    return {
        f"{table}_hot": [column for column in columns if column.name in hot],
        f"{table}_base": [column for column in columns if column.name not in hot],
    }


class _Step(NamedTuple):
    """Part of a statement, and its values."""

    text: str
    values: list[Any]


class SplitTable(PostgresTable[Task]):
    """Tasks: `task_base` has the columns that are written rarely, `task_hot` the fence, and side tables their places.

    A place is what a task is found by: in the queue, held, standing in a state, due. All of them change with the row.
    """

    def __init__(self, kind: type[Task], dialect: Dialect) -> None:
        super().__init__(kind, dialect)
        self.hot, self.base = (f'{dialect.schema}"{self.name}_{part}"' for part in ("hot", "base"))
        parts = parts_of(self.name, kind).values()
        self._hot, self._base = ([self.codec.position[column.name] for column in columns] for columns in parts)
        self._of_base = {column.name for column in list(parts)[1]}
        hot, base = (", ".join(_quoted(column.name) for column in columns) for columns in parts)
        s = dialect.schema
        self.insert = (
            f'WITH base AS (INSERT INTO {self.base} (space, "tenant", {base}) VALUES ({s}space_of(?, ?),'
            f" {marks(len(self._base) + 1)}) RETURNING space, number), hot AS (INSERT INTO {self.hot} (space, number,"
            f' "tenant", {hot}) SELECT base.space, base.number, {marks(len(self._hot) + 1)} FROM base'
            " RETURNING space, number)"
        )
        this = f'{s}"task_base" AS b WHERE b.tenant = ? AND b.project = ? AND b.id = ?'
        self._this = f"{this} AND h.space = b.space AND h.number = b.number AND h.version = ? AND h.generation = ?"

    def _counted(self, tenant: str, where: Where, *fields: str) -> Statement:
        """In the narrowest table or view that has all of these fields: most counts then need no join."""
        named, view = {*where, *fields}, self._view_for(where)
        if named <= self._of_base or (view == self.place and not named <= _BY_STATE):
            clauses, values = conditions(self.codec, where, self.dialect)
            place = self.base if named <= self._of_base else view
            return f"{place} WHERE {joined(clauses)}", [tenant, *values]
        if named <= _BY_STATE:
            view = f'{self.dialect.schema}"task_counted"'
        elif named <= _BY_HOLDER:
            view = f'{self.dialect.schema}"held"'
        elif named - {"state"} <= self._of_base:
            view = _COUNTED.replace("{s}", self.dialect.schema)
        clauses, values = by_space(self.codec, tenant, where, self.dialect)
        return f"{view} WHERE {' AND '.join(clauses)}", values

    def _view_for(self, where: Where) -> str:
        """The view that finds tasks by what the filter names."""
        is_range = isinstance(where.get("id"), Range)  # which every place is in the order of
        if _SELECTIVE.isdisjoint(where.keys() - {"id"} if is_range else where):
            for field, view in (("session", "task_of_session"), ("agent", "task_of_agent"), ("state", "task_listed")):
                if where.get(field) is not None and None not in _items(where[field]):
                    return f'{self.dialect.schema}"{view}"'
        return self.place

    def finding(
        self, tenant: str, where: Where, order: str, after: tuple[Any, str] | None, limit: int | None
    ) -> Statement:
        view = self._view_for(where)
        if view == self.place:
            return super().finding(tenant, where, order, after, limit)
        is_listed = view.endswith('"task_listed"') and isinstance(where.get("project"), str)
        if limit is None or not is_listed or order.removeprefix("-") not in _WALKED:
            return self._placed(tenant, where, order, after, limit)
        states, of_states = self._counted(tenant, {name: where[name] for name in _BY_STATE if name in where})
        common = f"SELECT count(*) = {_COMMON} FROM (SELECT 1 FROM {states} LIMIT {_COMMON}) AS counted"
        # Sorted by their numbers alone: a row has eighty columns.
        few, of_few = self._placed(tenant, where, order, after, limit, ("number", order.removeprefix("-"), "id"))
        here, of_here = by_space(self.codec, tenant, {"project": where["project"]}, self.dialect)
        placed = f'{self.select} WHERE {here[0]} AND "number" = ANY(ARRAY(SELECT "number" FROM ({few}) AS few))'
        walked, of_walked = super().finding(tenant, where, order, after, limit)
        # Counted once; the half that is not chosen is never begun.
        text = (
            f"WITH state (is_common) AS MATERIALIZED ({common}) SELECT * FROM ("
            f"SELECT * FROM ({placed}) AS placed WHERE NOT (SELECT is_common FROM state)"
            f" UNION ALL SELECT * FROM ({walked}) AS walked WHERE (SELECT is_common FROM state)) AS page"
            f" ORDER BY {order_by(order_of(self.codec, order, self.dialect))}"
        )
        return text, [*of_states, *of_here, *of_few, *of_walked]

    def _placed(
        self,
        tenant: str,
        where: Where,
        order: str,
        after: tuple[Any, str] | None,
        limit: int | None,
        names: Sequence[str] = (),
    ) -> Statement:
        """By the places of the tasks; `names`: these of their columns, else all."""
        view = self._view_for(where)
        select = f"SELECT {', '.join(map(_quoted, names))} FROM {self.place}" if names else self.select
        by = order_of(self.codec, order, self.dialect)
        clauses, values = by_space(self.codec, tenant, where, self.dialect)
        if after is not None:
            clause, more = beyond(by, after)
            clauses, values = [*clauses, clause], [*values, *more]
        rest, last = ("", []) if limit is None else (" LIMIT ?", [limit])
        places = [view]
        if view.endswith('"task_listed"'):
            # Each place in its own order, and the best of them: the planner must not sort all of a state. But where
            # the columns are named, all of the state are few, and are sorted.
            places = list(self._places_of(_items(where["state"]), all_of=bool(names)))
            bounds, of_bounds = self._bounds_of_place(where, order, after, all_of=bool(names))
            clauses, values = [*clauses, *bounds], [*values, *of_bounds]
        parts = [
            f"({select.replace(self.place, place)} WHERE {' AND '.join(clauses)} ORDER BY {order_by(by)}{rest})"
            for place in places
        ]
        if len(parts) == 1:
            return parts[0], [*values, *last]
        text = f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS page ORDER BY {order_by(by)}{rest}"
        return text, [*[*values, *last] * len(parts), *last]

    def _bounds_of_place(
        self, where: Where, order: str, after: tuple[Any, str] | None, *, all_of: bool
    ) -> tuple[list[str], list[Any]]:
        """The same bounds for a place: the planner does not conclude them, and would read all of a state."""
        if all_of:
            clauses, values = conditions(self.codec, {"state": where["state"]}, self.dialect)
            return [clause.replace('"state"', '"place_state"') for clause in clauses], values
        ranges = {"id": where["id"]} if isinstance(where.get("id"), Range) else {}
        clauses, values = conditions(self.codec, ranges, self.dialect)
        if after is not None and order in ("id", "-id"):
            clause, more = beyond(order_of(self.codec, order, self.dialect), after)
            clauses, values = [*clauses, clause], [*values, *more]
        return [clause.replace('"id"', '"place_id"') for clause in clauses], values

    def _places_of(self, states: Sequence[Any], *, all_of: bool) -> Iterator[str]:
        s = self.dialect.schema
        yield _ALL_OF.format(s=s, place=f"{s}standing", state="s.state") if all_of else f'{s}"task_standing"'
        if any(not isinstance(state, str) or state == lifecycle.READY for state in states):
            yield _ALL_OF.format(s=s, place=f"{s}queue", state=_READY) if all_of else f'{s}"task_in_queue"'
        if any(not isinstance(state, str) or state in lifecycle.HELD for state in states):
            yield (
                f"(SELECT t.*, t.state AS place_state FROM {s}task_holding AS t) AS placed"
                if all_of
                else f'{s}"task_holding"'
            )

    def inserting(self, tenant: str, row: Task) -> Statement:
        values = self.codec.encode(row)
        base, hot = ([tenant, *(values[n] for n in part)] for part in (self._base, self._hot))
        text, more = self._with_places(tenant, None, row)
        return f"{self.insert}{text} SELECT 1 FROM hot", [tenant, row.project, *base, *hot, *more]

    def inserting_many(self, tenant: str, rows: Sequence[Task]) -> Iterator[Write]:
        for places, some in groupby(rows, lambda row: tuple(_places(row))):
            run = list(some)
            if "held" in places:  # what a copy brings: a new task is held by nobody
                yield from ((*self.inserting(tenant, row), row) for row in run)
            else:
                yield self._insert_many(tenant, run, places)

    def _insert_many(self, tenant: str, rows: Sequence[Task], places: Sequence[str]) -> Write:
        """Each number is drawn before its rows are written: those that are returned would have to be joined again."""
        text, values = given(self.codec, rows)
        s = self.dialect.schema
        text = (
            f"WITH given AS (SELECT g.*, nextval('{s}task_base_number_seq') AS number, ?::text AS tenant,"
            f" (SELECT {s}space_of(?, ?)) AS space FROM ({text}) AS g)"
        )
        steps = [
            (place, f"number, {', '.join(_quoted(self.codec.columns[n].name) for n in part)}", "")
            for place, part in ((self.base, self._base), (self.hot, self._hot))
        ]
        for name in places:
            columns = ", ".join((*_PLACES[name][0], *_PLACES[name][1]))
            if name == "due_block":
                steps.append((f'{s}"due_block"', "at, numbers", "due_at, ARRAY[number]"))
            else:
                steps.append((f'{s}"{name}"', f"{columns}, number", ""))
        if "queue" in places:
            text += f", starts AS ({_MANY_STARTS.replace('{s}', s)})"
        for n, (table, columns, chosen) in enumerate(steps):
            into = f"INSERT INTO {table} (space, tenant, {columns}) OVERRIDING SYSTEM VALUE"
            text += f", part{n} AS ({into} SELECT space, tenant, {chosen or columns} FROM given)"
        return f"{text} SELECT 1", [tenant, tenant, rows[0].project, *values], rows[0]

    def updating(self, tenant: str, before: Task, after: Task, known: Sequence[int] | None = None) -> Statement | None:
        """The hot row decides whether the whole is as it was loaded, also where nothing in it changes."""
        positions, values = self.codec.changes(before, after, known)
        if not positions:
            return None
        hot = [n for n in positions if n in self._hot]
        base = [n for n in positions if n not in self._hot]
        text = self._updates.get(positions)
        if text is None:
            text = self._updates[positions] = self._update(hot, base)
        new = dict(zip(positions, values, strict=True))
        key = self._key_of(tenant, before)
        steps, more = self._with_places(tenant, before, after)
        given = [*(new[n] for n in hot), *key, *([*(new[n] for n in base), *key[:3]] if base else [])]
        return f"{text}{steps} SELECT 1 / count(*) FROM hot", [*given, *more]

    def _update(self, hot: Sequence[int], base: Sequence[int]) -> str:
        if hot:
            first = f"UPDATE {self.hot} AS h SET {self._sets(hot)} FROM {self._this} RETURNING h.space, h.number"
        else:
            first = f"SELECT h.space, h.number FROM {self.hot} AS h, {self._this}"
        then = f", base AS (UPDATE {self.base} SET {self._sets(base)} WHERE {KEY} AND EXISTS (SELECT FROM hot))"
        return f"WITH hot AS ({first}){then if base else ''}"

    def deleting(self, tenant: str, row: Task) -> Statement:
        key = self._key_of(tenant, row)
        steps, more = self._with_places(tenant, row, None)
        text = (
            f"WITH hot AS (DELETE FROM {self.hot} AS h USING {self._this} RETURNING h.space, h.number),"
            f" base AS (DELETE FROM {self.base} WHERE {KEY} AND EXISTS (SELECT FROM hot)){steps}"
            " SELECT 1 / count(*) FROM hot"
        )
        return text, [*key, *key[:3], *more]

    def _with_places(self, tenant: str, before: Task | None, after: Task | None) -> _Step:
        """Steps that bring the places of a task in line with its row; `hot` has its number."""
        old, new = (_places(task) if task is not None else {} for task in (before, after))
        steps: list[_Step] = []
        for name, (columns, others) in _PLACES.items():
            was, is_ = old.get(name), new.get(name)
            if was == is_:
                continue
            table, keyed = f'{self.dialect.schema}"{name}"', len(columns)
            of_task = (
                "numbers = ARRAY(SELECT number FROM hot)"
                if name == "due_block"
                else "number = (SELECT number FROM hot)"
            )
            this = " AND ".join(["space = (SELECT space FROM hot)", *(f"{column} = ?" for column in columns), of_task])
            if was is not None and is_ is not None and was[:keyed] == is_[:keyed]:
                sets = ", ".join(f"{column} = ?" for column in others)
                steps.append(_Step(f"UPDATE {table} SET {sets} WHERE {this}", [*is_[keyed:], *was[:keyed]]))
                continue
            if was is not None:
                steps.append(_Step(f"DELETE FROM {table} WHERE {this}", list(was[:keyed])))
            if is_ is not None and after is not None:
                number, last = ("ARRAY[number]", "numbers") if name == "due_block" else ("number", "number")
                names = ", ".join(("space", "tenant", *columns, *others, last))
                text = f"INSERT INTO {table} ({names}) SELECT space, {marks(len(is_) + 1)}, {number} FROM hot"
                steps.append(_Step(text, [tenant, *is_]))
                if name in _STARTS:
                    values = list(is_[:4]) if name == "queue" else [tenant, after.project, is_[0]]
                    steps.append(_Step(_STARTS[name].replace("{s}", self.dialect.schema), values))
        text = "".join(f", place{n} AS ({step.text})" for n, step in enumerate(steps))
        return _Step(text, [value for step in steps for value in step.values])


# Places of which claims look only behind a start, and what removes a start that is behind a new entry.
_STARTS = {
    "queue": (
        "DELETE FROM {s}lane_start AS s WHERE s.space = (SELECT space FROM hot) AND s.lane = ?"
        " AND (s.band, s.rank, s.sequence) > (?, ?, ?)"
    ),
    "held": (
        'UPDATE {s}session SET held_from = 0 WHERE "tenant" = ? AND "project" = ? AND "id" = ?'
        " AND held_from > (SELECT number FROM hot)"
    ),
}
_MANY_STARTS = (
    "DELETE FROM {s}lane_start AS s USING given AS g WHERE s.space = g.space AND s.lane = g.lane"
    " AND (s.band, s.rank, s.sequence) > (g.band, g.rank, g.sequence)"
)
# Side table → the columns of its key besides the project's number, and its others besides the task's.
_PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "queue": (("lane", "band", "rank", "sequence", "id"), ("plain",)),
    "held": (("session",), ("agent",)),
    "standing": (("state", "id"), ()),
    "due_block": (("at",), ()),
}


def _places(task: Task) -> dict[str, tuple[Any, ...]]:
    """Where a task is found: the values of `_PLACES`."""
    found: dict[str, tuple[Any, ...]] = {}
    is_held = task.agent is not None or task.session is not None
    if task.lane is not None:
        found["queue"] = (task.lane, task.band, task.rank, task.sequence, task.id, task.plain)
    if is_held:
        found["held"] = (task.session or "", task.agent or "")
    listed = task.lane is not None if task.state == lifecycle.READY else is_held and task.state in lifecycle.HELD
    if not listed:
        found["standing"] = (task.state, task.id)
    if task.due_at is not None:
        found["due_block"] = (task.due_at,)
    return found


def _items(wanted: Any) -> Sequence[Any]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def table_for(kind: type[Any], dialect: Dialect) -> Table[Any]:
    if kind is Task:
        return SplitTable(Task, dialect)
    return (NarrowTable if kind in (Claim, Result) else PostgresTable)(kind, dialect)


def _quoted(name: str) -> str:
    return f'"{name}"'
