"""Narrow rows: the layout that makes fencing cheap, and claims and results that have no separate row.

Why. Each write of a row costs a new version of it and an entry in every index of its table; an entry of texts costs
several times one of numbers. So what a claim and a result must write is little, narrow, and by number.

The tables.
- `space`: the number of each project. Keys begin with it, and the tenant is a column beside it, for policies.
- `task_base`: the columns that are written rarely, with the task's `number` and all indexes by text. `task_hot`: the
  fence (state, generation, holder, lease, version), keyed by number. No other column of it has an index, so its updates
  stay in their page. `task` is a view of both.
- Places, which stand for indexes of `task_hot`: `queue` has what can be claimed, in the order of the claim; `held` what
  somebody holds; `standing` everything else by its state; `due_block` the due times. Every write of a task brings its
  places in line, in the same statement (`SplitTable._with_places`, and the functions of the fast path).
- `granted`: one row a claim command of the fast path. `done`: one row a finished claim, with its result.
- `claim_row`, `result_row`: claims and results with a separate row, as the ordinary path writes them. `claim` and
  `result` are views of these and of `claim_narrow`, `result_narrow`.

A narrow claim is of a task that was never claimed before, so a task has at most one. While it is live, its nonce, user
and place in the log are in the task's hot row (`granted` names its command's row); when it was completed, in `done`.
Before the ordinary path changes anything that a narrow claim or result is made of, `give_rows` writes it out as
separate rows and clears the narrow form, in the same transaction (`PostgresTransaction._giving_rows`). The ordinary
path has the project to itself, so nobody sees a claim twice or not at all.

Due blocks outlive their tasks. A batch that claims 500 tasks writes one block with 500 numbers. A number in it counts
while the task's own `due_at` is the block's time; nobody removes it before. A transaction that meets a block that
counts for none of its tasks drops it (`has_due` behind `now`, `first_due` on the way to the next), so each entry is
looked at once more than it is written: such a transaction commits even if it writes nothing else. The ordinary path
writes blocks of one, and removes them with the change.

Entries of `queue` and `held` are removed by every claim and every result, but the server cannot forget them while an
older transaction is open. So a claim begins at a start: `lane_start`, in front of which nothing is queued in the lane,
and `session.held_from`, below which the session holds no number. Claims raise them, now and then, under the claim lock.
What enters in front of one removes it in the same statement (`tables._STARTS`); the ordinary path has the project to
itself, so no claim can miss it.

Which tests prove it. `testing/engine/both_ways.py` compares every claim and result with the ordinary path's;
`tests/stores/test_postgres_guards.py` has due blocks, `test_postgres_old_readers.py` starts, `test_postgres_plans.py`
the plan of every statement here; `tests/upgrades` brings stores of older releases into this layout.

What a new field must do. A field of Task is a column of `task_base`, or of `task_hot` where a hot verb changes it; the
views of tasks are made again by that migration. A field of Claim or Result is a column of `claim_row` or `result_row`,
and a value in both halves of the views; where a narrow claim could have another value than the default, it needs a
column in `granted` or `done`.
"""
# ruff: noqa: S608 - texts consist of names that were checked against the structs, never of values

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

from tenure.core.filters import Where
from tenure.core.records import Claim, Row
from tenure.stores.postgres.bulk_inserts import given
from tenure.stores.sql.codec import Codec
from tenure.stores.sql.statements import (
    Dialect,
    Statement,
    Table,
    Write,
    beyond,
    conditions,
    joined,
    order_by,
    order_of,
)

R = TypeVar("R", bound=Row)

NARROW = {"claim": "claim_row", "result": "result_row"}
# The tasks of a page of narrow claims by id. Their view has no index by it, and would sort all of a project for each
# page. A claim's id begins with its task's, so finished ones are walked by the place of their task, no further than a
# full page of separate rows reaches: where all have separate rows, nothing is walked in vain. Live ones are few.
_CLAIMS_PAGE = """"number" = ANY (ARRAY(
    (SELECT d.number FROM {s}standing AS s JOIN {s}done AS d ON d.space = s.space AND d.number = s.number
        WHERE s.space = {space} AND s.state = 'completed' AND s.id >= ? AND s.id <= coalesce((
            SELECT r.task FROM {s}claim_row AS r WHERE r.id > ? AND r.project = ? AND r.tenant = ?
            ORDER BY r.id OFFSET ? LIMIT 1), '~')
            AND (s.id || '@' || d.generation) COLLATE "C" > ?
        ORDER BY s.id LIMIT ?)
    UNION ALL (SELECT j.number FROM {s}held AS j
        CROSS JOIN LATERAL (SELECT b.id FROM {s}task_base AS b
            WHERE b.space = j.space AND b.number = j.number OFFSET 0) AS b
        CROSS JOIN LATERAL (SELECT h.generation FROM {s}task_hot AS h
            WHERE h.space = j.space AND h.number = j.number AND h.granted IS NOT NULL OFFSET 0) AS h
        WHERE j.space = {space} AND (b.id || '@' || h.generation) COLLATE "C" > ? ORDER BY b.id LIMIT ?)))"""


def space_of(schema: str, tenant: str, project: str) -> str:
    """The number of a project, which keys begin with."""
    return f"(SELECT p.number FROM {schema}space AS p WHERE p.tenant = {tenant} AND p.project = {project})"


def by_space(codec: Codec[Any], tenant: str, where: Where, dialect: Dialect) -> tuple[list[str], list[Any]]:
    """As `conditions`, for tables whose keys begin with the project's number.

    Tenant and project are not named where the number stands for both: the planner would begin with their indexes.
    """
    project = where.get("project")
    if not isinstance(project, str):
        clauses, values = conditions(codec, where, dialect)
        return ['"tenant" = ?', *clauses], [tenant, *values]
    clauses, values = conditions(codec, {n: v for n, v in where.items() if n != "project"}, dialect)
    return [f'"space" = {space_of(dialect.schema, "?", "?")}', *clauses], [tenant, project, *values]


class PostgresTable(Table[R]):
    """Changes are sent together with the commit, so nobody can check in between how many rows they touched."""

    def _checked(self, change: str) -> str:
        """The change, or an error unless it touches one row."""
        return f"WITH touched AS ({change} RETURNING 1) SELECT 1 / count(*) FROM touched"

    def inserting_many(self, tenant: str, rows: Sequence[R]) -> Iterator[Write]:
        text, values = given(self.codec, rows)
        names = ", ".join(f'"{column.name}"' for column in self.codec.columns)
        insert = f'INSERT INTO {self.written} ("tenant", {names}) SELECT ?, g.* FROM ({text}) AS g'
        yield insert, [tenant, *values], rows[0]

    def _loading_many(self, tenant: str, project: str, ids: list[str]) -> Iterator[Statement]:
        """By the primary key, which begins with the id.

        `||` hides tenant and project from the planner. PostgreSQL 17 would otherwise take an index that begins with
        them and has the id at its end, and so read all of the project's entries.
        """
        text = f'{self.select} WHERE "tenant" || \'\' = ? AND "project" || \'\' = ? AND "id" = ANY(?)'
        yield text, [tenant, project, ids]


class NarrowTable(PostgresTable[R]):
    """Claims or results: some have a separate row, and the others are read from narrow tables."""

    def __init__(self, kind: type[R], dialect: Dialect) -> None:
        super().__init__(kind, dialect)
        self._own, self._narrow = (
            self.select.replace(self.place, f'{dialect.schema}"{self.name}_{part}"') for part in ("row", "narrow")
        )

    def _written_to(self) -> str:
        return NARROW[self.name]

    def loading(self, tenant: str, keys: Collection[tuple[str, str]]) -> Iterator[Statement]:
        """The id of a narrow claim is not a column: it is found by its task."""
        projects: dict[str, dict[str, None]] = {}
        for project, row_id in keys:
            projects.setdefault(project, {})[row_id] = None
        tasks = '"task" = ANY(?) AND ' if self.kind is Claim else ""
        for project, wanted in projects.items():
            ids = list(wanted)
            text = (
                f'{self._own} WHERE "tenant" || \'\' = ? AND "project" || \'\' = ? AND "id" = ANY(?)'
                f' UNION ALL {self._narrow} WHERE "space" = {space_of(self.dialect.schema, "?", "?")}'
                f' AND {tasks}"id" = ANY(?)'
            )
            of_tasks = [[row_id.rpartition("@")[0] for row_id in ids]] if tasks else []
            yield text, [tenant, project, ids, tenant, project, *of_tasks, ids]

    def finding(
        self, tenant: str, where: Where, order: str, after: tuple[Any, str] | None, limit: int | None
    ) -> Statement:
        """The separate rows and the narrow ones, each in its order, and the best of them."""
        by = order_of(self.codec, order, self.dialect)
        own, values = conditions(self.codec, where, self.dialect)
        narrow, of_narrow = by_space(self.codec, tenant, where, self.dialect)
        project = where.get("project")
        if self.kind is Claim and order == "id" and limit and len(where) == 1 and isinstance(project, str):
            behind = "" if after is None else after[1]
            narrow.append(_CLAIMS_PAGE.format(s=self.dialect.schema, space=space_of(self.dialect.schema, "?", "?")))
            of_narrow += [tenant, project, behind.rpartition("@")[0], behind, project, tenant, limit - 1, behind, limit]
            of_narrow += [tenant, project, behind, limit]
        if after is not None:
            clause, more = beyond(by, after)
            own, values = [*own, clause], [*values, *more]
            narrow, of_narrow = [*narrow, clause], [*of_narrow, *more]
        rest, last = "", []
        if limit is not None:
            rest, last = " LIMIT ?", [limit]
        text = (
            f"SELECT * FROM (({self._own} WHERE {joined(own)} ORDER BY {order_by(by)}{rest})"
            f" UNION ALL ({self._narrow} WHERE {' AND '.join(narrow)} ORDER BY {order_by(by)}{rest})) AS page"
            f" ORDER BY {order_by(by)}{rest}"
        )
        return text, [tenant, *values, *last, *of_narrow, *last, *last]

    def _counted(self, tenant: str, where: Where, *fields: str) -> Statement:
        names = ", ".join(f'"{field}"' for field in dict.fromkeys(fields)) or "1"
        own, values = conditions(self.codec, where, self.dialect)
        narrow, of_narrow = by_space(self.codec, tenant, where, self.dialect)
        own_place, narrow_place = (text.partition(" FROM ")[2] for text in (self._own, self._narrow))
        text = (
            f"(SELECT {names} FROM {own_place} WHERE {joined(own)}"
            f" UNION ALL SELECT {names} FROM {narrow_place} WHERE {' AND '.join(narrow)}) AS both_forms"
        )
        return text, [tenant, *values, *of_narrow]
