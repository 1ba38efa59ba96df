"""One at a time on one connection, beside a bare prepared statement that does the same writes.

The writes are not written down here. A claim and a submit of ours are run once, and whatever they changed in the tables
becomes one statement: an INSERT for each row that came, an UPDATE of what changed for each that changed, a DELETE for
each that went. The bare claim looks for the head of its lane too, since that is what a claim is, and both draw the
sequence of their event. They check no receipt, no agent, no request id and no due lease, and notify nobody.

A row is found by its primary key, or by all of its columns where there is none. What belongs to one task shows in its
value: the counters of the store begin so far apart that a number shows which of them it comes from.
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
from bench.postgres.ground import Board, Ground, claim_next, submit
from tenure.core.outcomes import Outcome

AGENTS = 20
_MADE = re.compile(r"\b(evt|cmd|result)_[0-9A-Z]{26}\b")
_TIME = re.compile(r"\b\d{16}\b")
_DAY = 86_400_000_000  # µs
_APART = 10**12  # between the counters of a store
_EVENTS = "event_sequence_seq"
_ORDER = ("band", "rank", "sequence", "id")  # of a claim, in its lane
# What a function computes at each row (a transaction's id, a counter) is not ours to give; a constant default is.
_TABLES = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = ANY (i.indkey), false),
       a.attidentity = '' AND a.attgenerated = '' AND coalesce(strpos(pg_get_expr(d.adbin, c.oid), '('), 0) = 0
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
  LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
 WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r' ORDER BY c.relname, a.attnum
"""

Rows = dict[str, dict[tuple[Any, ...], dict[str, Any]]]  # table → key → row
Facts = dict[Any, Any]  # of one task: by their names, and by what the traced task had in their place


class Table(NamedTuple):
    """Column → type; the columns that a row is found by, and those that an INSERT gives."""

    columns: dict[str, str]
    keys: tuple[str, ...]
    given: tuple[str, ...]


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
    ours = ground.board()
    ours.fill(ready)
    bare = Bare(ground, ready)
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
    ours.close()
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
    """The two statements, on a separate connection, and the store of `ready` tasks that they write to."""

    def __init__(self, ground: Ground, ready: int) -> None:
        self._link = ground.connect()
        self.board = board = ground.board()
        self._schema = board.schema
        self._spread()
        board.fill(ready)
        self._tables = self._described()
        _ours(board, 2)  # the agent is known, and holds nothing
        asked = claim_next("bench", "agent-0")
        before, (waited, *_), last = self._rows(), self._waiting(), self._last_drawn()
        (grant,) = board.claim([asked])
        claimed, granted = self._rows(), self._last_drawn()
        handed = submit("bench", str(grant.receipt))
        check(board.engine.run([handed]), "ACCEPTED")
        submitted, completed = self._rows(), self._last_drawn()
        if (granted, completed) != (last + 1, last + 2):
            raise WrongAnswer(f"after {last}, a claim drew up to {granted} and a submit to {completed}, not one each")
        assert grant.task is not None
        if waited["id"] != grant.task["id"]:
            raise WrongAnswer(f"{waited['id']} was at the head of the queue, but {grant.task['id']} was granted")
        board.accepted.append(grant.task["id"])
        self._traced = len(board.accepted)
        self._number, self._granted = waited["number"], granted
        texts = {
            "id": waited["id"].removeprefix("task_"), "ref": waited["ref"],
            "request": str(asked.request_id), "handed": str(handed.request_id),
        }  # fmt: skip
        self._moment = time.time_ns() // 1000
        self._claim = Script(self._schema, self._tables, before, claimed, texts, granted, self._head(waited))
        self._submit = Script(self._schema, self._tables, claimed, submitted, texts, completed, None)
        self._next = iter(self._waiting())
        self._count = 0

    def cycle(self, count: int) -> tuple[float, float]:
        """Seconds of a claim and of a submit, in the median."""
        claiming, submitting = [], []
        for _ in range(count):
            task = next(self._next)
            self._count += 1
            facts: Facts = {
                "id": task["id"].removeprefix("task_"), "ref": task["ref"], "made": f"{self._count:026d}",
                "request": os.urandom(16).hex(), "handed": os.urandom(16).hex(), self._number: task["number"],
            }  # fmt: skip
            spent, facts[self._granted] = self._run(self._claim, facts)
            claiming.append(spent)
            facts["made"] = f"1{self._count:025d}"
            spent, _ = self._run(self._submit, facts)
            submitting.append(spent)
        return statistics.median(claiming), statistics.median(submitting)

    def _run(self, script: Script, facts: Facts) -> tuple[float, int]:
        """The seconds, and the sequence of its event."""
        values = script.values(facts, time.time_ns() // 1000 - self._moment)
        began = time.perf_counter()
        ((touched, sequence),) = self._link.execute(script.text, values, prepare=True).fetchall()
        spent = time.perf_counter() - began
        if touched != script.touches:
            raise WrongAnswer(f"the bare statement wrote {touched} rows, not {script.touches}")
        return spent, sequence

    def verify(self) -> None:
        """As many claims and results as were made, of as many tasks."""
        wanted = self._count + self._traced
        for table in ("claim", "result"):
            asked = sql.SQL("SELECT count(*), count(DISTINCT task) FROM {}").format(self._name(table))
            found = self._link.execute(asked).fetchone()
            if found != (wanted, wanted):
                raise WrongAnswer(
                    f"the bare side made {wanted} of each, but there are {found} rows and tasks of {table}"
                )

    def close(self) -> None:
        self._link.close()
        self.board.close()

    def _name(self, table: str) -> sql.Identifier:
        return sql.Identifier(self._schema, table)

    def _spread(self) -> None:
        """Let every counter begin in a separate range, where no other number is."""
        counters = self._link.execute(
            "SELECT sequencename FROM pg_sequences WHERE schemaname = %s AND data_type = 'bigint'::regtype",
            (self._schema,),
        ).fetchall()
        for n, (counter,) in enumerate(counters, 1):
            self._link.execute("SELECT setval(%s, %s)", (self._name(counter).as_string(None), n * _APART))

    def _last_drawn(self) -> int:
        asked = sql.SQL("SELECT last_value FROM {}").format(self._name(_EVENTS))
        ((last,),) = self._link.execute(asked).fetchall()
        return int(last)

    def _described(self) -> dict[str, Table]:
        found: dict[str, list[tuple[str, str, bool, bool]]] = {}
        for table, *column in self._link.execute(_TABLES, (f'"{self._schema}"',)):
            found.setdefault(table, []).append(tuple(column))
        return {
            table: Table(
                {name: kind for name, kind, _, _ in columns},
                tuple(name for name, _, is_key, _ in columns if is_key) or tuple(name for name, *_ in columns),
                tuple(name for name, _, _, is_given in columns if is_given),
            )
            for table, columns in found.items()
        }

    def _home(self) -> str:
        """The table with the claim's order in it."""
        for name, table in self._tables.items():
            if {"lane", *_ORDER} <= table.columns.keys():
                return name
        raise WrongAnswer("no table has the columns of the claim's order")

    def _waiting(self) -> list[dict[str, Any]]:
        """The rows of tasks that can be claimed, in the claim's order, with their refs."""
        asked = sql.SQL(
            "SELECT h.*, t.ref FROM {} AS h JOIN {} AS t ON t.space = h.space AND t.number = h.number ORDER BY {}"
        ).format(self._name(self._home()), self._name("task"), _ordered("h"))
        with self._link.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(asked).fetchall()

    def _head(self, task: dict[str, Any]) -> tuple[str, sql.Composable]:
        """The table with the claim's order, and the query of the first in the task's lane."""
        home = self._home()
        asked = sql.SQL("SELECT {} FROM {} AS h WHERE h.space = {} AND h.lane = {} ORDER BY {} LIMIT 1").format(
            sql.SQL(", ").join(map(sql.Identifier, self._tables[home].keys)), self._name(home),
            task["space"], task["lane"], _ordered("h"),
        )  # fmt: skip
        return home, asked

    def _rows(self) -> Rows:
        """Every row of every table, by its key."""
        found: Rows = {}
        for name, table in self._tables.items():
            asked = sql.SQL("SELECT * FROM {}").format(self._name(name))
            with self._link.cursor(row_factory=dict_row) as cursor:
                found[name] = {tuple(str(row[key]) for key in table.keys): row for row in cursor.execute(asked)}
        return found


def _ordered(table: str) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier(table, column) for column in _ORDER)


class Script:
    """One statement with all writes between two states of the tables, and the values for another task."""

    def __init__(
        self,
        schema: str,
        tables: dict[str, Table],
        before: Rows,
        after: Rows,
        texts: dict[str, str],
        drawn: int,
        head: tuple[str, sql.Composable] | None,
    ) -> None:
        """`drawn`: the sequence of the event. `head`: a table whose row must be the first of a query, and the query."""
        self._texts, self._drawn = texts, drawn
        self._values: list[Any] = []
        self._home = head[0] if head is not None else None
        parts: list[sql.Composable] = []
        for name, table in tables.items():
            target = sql.Identifier(schema, name)
            for key in {**before[name], **after[name]}:
                old, new = before[name].get(key), after[name].get(key)
                if old is None and new is not None:
                    parts.append(self._insert(target, table, new))
                elif old is not None and old != new:
                    parts.append(self._change(target, name, table, old, new))
        self.touches = len(parts)
        source = sql.Literal(sql.Identifier(schema, _EVENTS).as_string(None))
        named = [sql.SQL("drawn AS MATERIALIZED (SELECT nextval({}) AS sequence)").format(source)]
        if head is not None:
            named.append(sql.SQL("head AS MATERIALIZED ({})").format(head[1]))
        named += [sql.SQL("w{} AS ({} RETURNING 1)").format(sql.SQL(str(n)), part) for n, part in enumerate(parts)]
        counts = [sql.SQL("(SELECT count(*) FROM w{})").format(sql.SQL(str(n))) for n in range(len(parts))]
        text = sql.SQL("WITH {} SELECT {}, (SELECT sequence FROM drawn)").format(
            sql.SQL(", ").join(named), sql.SQL(" + ").join(counts)
        )
        self.text = text.as_bytes(None)  # once, not at each execution

    def values(self, facts: Facts, shift: int) -> list[Any]:
        return [_filled(value, facts, shift) for value in self._values]

    def _insert(self, target: sql.Identifier, table: Table, row: dict[str, Any]) -> sql.Composable:
        values = [self._place(row[column], table.columns[column]) for column in table.given]
        return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            target, sql.SQL(", ").join(map(sql.Identifier, table.given)), sql.SQL(", ").join(values)
        )

    def _change(
        self, target: sql.Identifier, name: str, table: Table, old: dict[str, Any], new: dict[str, Any] | None
    ) -> sql.Composable:
        """An UPDATE of the columns that changed, or a DELETE."""
        if new is None:
            text = sql.SQL("DELETE FROM {} AS w").format(target)
            beside = " USING head"
        else:
            sets = [
                sql.SQL("{} = {}").format(sql.Identifier(column), self._place(new[column], kind))
                for column, kind in table.columns.items()
                if new[column] != old[column]
            ]
            text = sql.SQL("UPDATE {} AS w SET {}").format(target, sql.SQL(", ").join(sets))
            beside = " FROM head"
        if name == self._home:
            found = [sql.SQL("w.{0} = head.{0}").format(sql.Identifier(key)) for key in table.keys]
            found.append(sql.SQL("w.number = {}").format(self._place(old["number"], "bigint")))
            text += sql.SQL(beside)
        else:
            found = [
                sql.SQL("w.{} IS NULL").format(sql.Identifier(key))
                if old[key] is None
                else sql.SQL("w.{} = {}").format(sql.Identifier(key), self._place(old[key], table.columns[key]))
                for key in table.keys
            ]
        return text + sql.SQL(" WHERE ") + sql.SQL(" AND ").join(found)

    def _place(self, value: Any, kind: str) -> sql.Composable:
        """Where the value of another task goes."""
        if isinstance(value, list):
            items = [self._place(item, kind.removesuffix("[]")) for item in value]
            return sql.SQL("ARRAY[{}]::{}").format(sql.SQL(", ").join(items), sql.SQL(kind))
        if value == self._drawn:
            return sql.SQL("(SELECT sequence FROM drawn)")
        if isinstance(value, str):
            text = _MADE.sub(r"\1_%(made)s", value.replace("%", "%%"))
            for name, given in self._texts.items():
                text = text.replace(given, f"%({name})s")
            value = _Blank(text) if text != value or _TIME.search(value) else value
        self._values.append(value)
        return sql.SQL("%s::{}").format(sql.SQL(kind))


class _Blank(str):
    """A text with places for names, or with times in it."""

    __slots__ = ()


def _filled(value: Any, facts: Facts, shift: int) -> Any:
    if isinstance(value, _Blank):
        return _TIME.sub(lambda found: str(_shifted(int(found[0]), shift)), value % facts)
    if isinstance(value, bytes):  # chance, the same wherever the traced task had the same
        return facts.setdefault(value, os.urandom(len(value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return facts[value] if value in facts else _shifted(value, shift)
    return value


def _shifted(value: int, shift: int) -> int:
    return value + shift if abs(value - time.time_ns() // 1000) < _DAY else value
