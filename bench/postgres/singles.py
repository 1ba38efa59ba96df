"""One at a time on one connection, beside a bare prepared statement that does the same writes.

The writes are not written down here. A claim and a submit of ours are run once, and whatever they changed in the tables
becomes one statement: an INSERT for each row that came, an UPDATE of what changed for each that changed. The bare claim
looks for the head of its lane too, since that is what a claim is. It checks no receipt, no agent, no request id and no
due lease, and notifies nobody.
"""

from __future__ import annotations

import gc
import os
import re
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

from psycopg import sql
from psycopg.rows import dict_row

from bench.ground import WrongAnswer, check, sync_cost
from bench.postgres.filling import tables_of
from bench.postgres.ground import Board, Ground, claim_next, submit
from tenure.core.outcomes import Outcome

AGENTS = 20
_MADE = re.compile(r"\b(evt|cmd|result)_[0-9A-Z]{26}\b")
_DAY = 86_400_000_000  # µs

Rows = dict[str, dict[tuple[Any, ...], dict[str, Any]]]  # table → key → row


class Costs(NamedTuple):
    """Seconds of one, one entry a turn; `syncs` of the disk before it."""

    claim: list[float]
    submit: list[float]
    bare_claim: list[float]
    bare_submit: list[float]
    syncs: list[float]


def measure(ground: Ground, folder: Path, turns: int, each: int) -> Costs:
    """Two stores of the same size, ours in one and the bare statements in the other, by turns."""
    ready = 2 * (turns + 2) * each + 100
    ours, other = ground.board(), ground.board()
    for board in (ours, other):
        board.fill(ready)
    bare = Bare(ground, other)
    costs = Costs([], [], [], [], [])
    _ours(ours, max(each, AGENTS))
    bare.cycle(each)
    gc.collect()
    for turn in range(turns):
        costs.syncs.append(sync_cost(folder))
        for is_ours in (True, False) if turn % 2 == 0 else (False, True):
            claiming, submitting = _ours(ours, each) if is_ours else bare.cycle(each)
            (costs.claim if is_ours else costs.bare_claim).append(claiming)
            (costs.submit if is_ours else costs.bare_submit).append(submitting)
    ours.verify()
    bare.verify()
    bare.close()
    for board in (ours, other):
        board.close()
    return costs


def _ours(board: Board, count: int) -> tuple[float, float]:
    """Seconds of a claim and of a submit, in the median."""
    claiming, submitting = [], []
    for n in range(count):
        asked = claim_next("bench", f"agent-{n % AGENTS}")
        began = time.perf_counter()
        (grant,) = board.engine.run([asked])
        claimed = time.perf_counter()
        check([grant], "GRANTED")
        assert isinstance(grant, Outcome)
        handed = submit("bench", str(grant.receipt))
        sent = time.perf_counter()
        accepted = board.engine.run([handed])
        submitting.append(time.perf_counter() - sent)
        claiming.append(claimed - began)
        check(accepted, "ACCEPTED")
        assert grant.task is not None
        board.granted.append(grant.task["id"])
        board.accepted.append(grant.task["id"])
    return statistics.median(claiming), statistics.median(submitting)


class Bare:
    """The two statements, on a separate connection."""

    def __init__(self, ground: Ground, board: Board) -> None:
        self._link = ground.connect()
        self._schema = board.schema
        self._columns = tables_of(self._link, board.schema)
        _ours(board, 2)  # the agent is known, and holds nothing
        asked = claim_next("bench", "agent-0")
        before = self._rows()
        (grant,) = board.claim([asked])
        claimed = self._rows()
        handed = submit("bench", str(grant.receipt))
        check(board.engine.run([handed]), "ACCEPTED")
        submitted = self._rows()
        assert grant.task is not None
        board.accepted.append(grant.task["id"])
        self._traced = len(board.accepted)
        facts = {
            "id": grant.task["id"].removeprefix("task_"), "ref": grant.task["ref"],
            "request": str(asked.request_id), "handed": str(handed.request_id),
        }  # fmt: skip
        self._moment = time.time_ns() // 1000
        home, lane = self._home(before, facts["id"])
        lines = sql.SQL(
            "FROM {} AS h {} WHERE h.tenant = 'local' AND h.project = 'bench' AND h.lane = {}"
            " ORDER BY h.band, h.rank, h.sequence, h.id"
        )
        table = sql.Identifier(board.schema, home)
        head = sql.SQL("SELECT id {} LIMIT 1").format(lines.format(table, sql.SQL(""), lane))
        self._claim = Script(self._schema, self._columns, before, claimed, facts, {home: head})
        self._submit = Script(self._schema, self._columns, claimed, submitted, facts, {})
        # `ref` may lie in another table than the claim's order; `task` has both.
        beside = sql.SQL("JOIN {} AS t USING (tenant, project, id)").format(sql.Identifier(board.schema, "task"))
        waiting = sql.SQL("SELECT id, t.ref {}").format(lines.format(table, beside, lane))
        self._next = iter(self._link.execute(waiting).fetchall())
        self._count = 0

    def cycle(self, count: int) -> tuple[float, float]:
        """Seconds of a claim and of a submit, in the median."""
        claiming, submitting = [], []
        for _ in range(count):
            id, ref = next(self._next)
            self._count += 1
            facts = {
                "id": id.removeprefix("task_"), "ref": ref, "number": f"{self._count:026d}",
                "request": os.urandom(16).hex(), "handed": os.urandom(16).hex(),
            }  # fmt: skip
            claiming.append(self._run(self._claim, facts))
            facts["number"] = f"1{self._count:025d}"
            submitting.append(self._run(self._submit, facts))
        return statistics.median(claiming), statistics.median(submitting)

    def _run(self, script: Script, facts: dict[str, str]) -> float:
        values = script.values(facts, time.time_ns() // 1000 - self._moment)
        began = time.perf_counter()
        (touched,) = self._link.execute(script.text, values, prepare=True).fetchall()[0]
        spent = time.perf_counter() - began
        if touched != script.touches:
            raise WrongAnswer(f"the bare statement wrote {touched} rows, not {script.touches}")
        return spent

    def verify(self) -> None:
        """As many claims and results as were made, of as many tasks."""
        wanted = self._count + self._traced
        for table in ("claim", "result"):
            asked = sql.SQL("SELECT count(*), count(DISTINCT task) FROM {}").format(sql.Identifier(self._schema, table))
            found = self._link.execute(asked).fetchone()
            if found != (wanted, wanted):
                raise WrongAnswer(
                    f"the bare side made {wanted} of each, but there are {found} rows and tasks of {table}"
                )

    def close(self) -> None:
        self._link.close()

    def _home(self, rows: Rows, id: str) -> tuple[str, str]:
        """The table with the claim's order in it, and the task's lane."""
        for table, kept in rows.items():
            for row in kept.values():
                if {"lane", "band", "rank", "sequence"} <= row.keys() and row["id"] == f"task_{id}":
                    return table, row["lane"]
        raise WrongAnswer("no table has the columns of the claim's order")

    def _rows(self) -> Rows:
        """Every row of every table, by its primary key."""
        found: Rows = {}
        for table in self._columns:
            keys = [
                row[0]
                for row in self._link.execute(
                    "SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid"
                    " AND a.attnum = ANY (i.indkey) WHERE i.indrelid = %s::regclass AND i.indisprimary",
                    (f'"{self._schema}"."{table}"',),
                )
            ]
            with self._link.cursor(row_factory=dict_row) as cursor:
                rows = cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(self._schema, table)))
                found[table] = {tuple(row[key] for key in keys): row for row in rows}
        return found


class Script:
    """One statement with all writes between two states of the tables, and the values for another task."""

    def __init__(
        self,
        schema: str,
        columns: dict[str, dict[str, str]],
        before: Rows,
        after: Rows,
        facts: dict[str, str],
        heads: dict[str, sql.Composable],
    ) -> None:
        """`heads`: the table whose row must be the first of a query, and that query."""
        self._facts = facts
        self._source = sql.Literal(f'"{schema}".event_sequence_seq')
        self._values: list[Any] = []
        self._heads = heads
        parts: list[sql.Composable] = []
        for table, rows in after.items():
            name = sql.Identifier(schema, table)
            for key, row in rows.items():
                old = before[table].get(key)
                if old is None:
                    parts.append(self._insert(name, row, columns[table]))
                elif old != row:
                    parts.append(self._update(name, table, old, row))
        if any(key not in after[table] for table, rows in before.items() for key in rows):
            raise WrongAnswer("a row was removed, which the bare statement does not do")
        self.touches = len(parts)
        named = [sql.SQL("w{} AS ({} RETURNING 1)").format(sql.SQL(str(n)), part) for n, part in enumerate(parts)]
        for head in heads.values():
            named.insert(0, sql.SQL("head AS MATERIALIZED ({})").format(head))
        counts = [sql.SQL("(SELECT count(*) FROM w{})").format(sql.SQL(str(n))) for n in range(len(parts))]
        text = sql.SQL("WITH {} SELECT {}").format(sql.SQL(", ").join(named), sql.SQL(" + ").join(counts))
        self.text = text.as_bytes(None)  # once, not at each execution

    def values(self, facts: dict[str, str], shift: int) -> list[Any]:
        return [_filled(value, facts, shift) for value in self._values]

    def _insert(self, name: sql.Identifier, row: dict[str, Any], columns: dict[str, str]) -> sql.Composable:
        # A block of one event draws its sequence, as a single event does by itself.
        drawn = {"first": sql.SQL("nextval({})"), "last": sql.SQL("currval({})")} if "last" in columns else {}
        values = sql.SQL(", ").join(
            drawn[column].format(self._source) if column in drawn else self._place(row[column], kind)
            for column, kind in columns.items()
        )
        return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            name, sql.SQL(", ").join(map(sql.Identifier, columns)), values
        )

    def _update(self, name: sql.Identifier, table: str, old: dict[str, Any], row: dict[str, Any]) -> sql.Composable:
        changed = [column for column in row if row[column] != old[column]]
        sets = sql.SQL(", ").join(
            [sql.SQL("{} = {}").format(sql.Identifier(column), self._place(row[column])) for column in changed]
        )
        text = sql.SQL("UPDATE {} SET {} WHERE tenant = 'local' AND project = 'bench' AND id = {}").format(
            name, sets, self._place(old["id"])
        )
        if table in self._heads:
            text += sql.SQL(" AND id = (SELECT id FROM head)")
        return text

    def _place(self, value: Any, kind: str = "") -> sql.Composable:
        if kind == "ARRAY":
            if value is None:
                return sql.SQL("NULL")
            items = [self._place(item, "bigint" if isinstance(item, int) else "text") for item in value]
            return sql.SQL("ARRAY[{}]").format(sql.SQL(", ").join(items))
        if isinstance(value, str):
            text = _MADE.sub(r"\1_%(number)s", value.replace("%", "%%"))
            for name, given in self._facts.items():
                text = text.replace(given, f"%({name})s")
            value = _Blank(text) if text != value else value
        self._values.append(value)
        return sql.SQL("%s::{}").format(sql.SQL(kind)) if kind else sql.Placeholder()


class _Blank(str):
    """A text with places for names."""

    __slots__ = ()


def _filled(value: Any, facts: dict[str, str], shift: int) -> Any:
    if isinstance(value, _Blank):
        return value % facts
    if isinstance(value, int) and not isinstance(value, bool) and abs(value - time.time_ns() // 1000) < _DAY:
        return value + shift
    return value
