"""Where the time goes: processor time of both sides, Python's functions by their own, statements by theirs."""

from __future__ import annotations

import cProfile
import pstats
import re
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Any

from bench.ground import check
from bench.postgres.costs import Meter
from bench.postgres.ground import Board, Ground, claim_next, submit
from bench.postgres.scale import Scale
from tenure.core import commands
from tenure.core.commands import Command

VERBS = ("claim", "start", "renew", "submit")  # the first renewal makes a claimed task a running one
ANSWERS = {"claim": "GRANTED", "start": "RENEWED", "renew": "RENEWED", "submit": "ACCEPTED"}
SETTINGS = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all"}
FUNCTIONS = 30
STATEMENTS = 15
MOST = 40  # slices
_SPENT = """
SELECT query, calls, total_exec_time * 1000, rows, wal_bytes::bigint FROM pg_stat_statements
 WHERE query NOT LIKE '%pg_stat_statements%'
"""


class Play:
    """Slices of claims, renewals and submits by one thread; what the verb that is asked for took."""

    def __init__(self, board: Board, verb: str, crew: Sequence[str], batch: int) -> None:
        self._board, self._verb, self._crew, self._batch = board, verb, crew, batch
        self.count, self.seconds = 0, 0.0
        self.statements: dict[str, list[float]] = {}

    def slice(self, link: Any = None, profiler: cProfile.Profile | None = None, meter: Meter | None = None) -> None:
        """Every agent of the crew claims one task, renews it twice and submits it."""
        grants: list[Any] = []
        for verb in VERBS:
            if verb == "claim":
                asked: list[Command] = [claim_next("bench", agent) for agent in self._crew]
            elif verb in ("start", "renew"):
                asked = [commands.Renew(project="bench", receipt=str(g.receipt)) for g in grants]
            else:
                asked = [submit("bench", str(g.receipt)) for g in grants]
            is_wanted = verb == self._verb
            if is_wanted and link is not None:
                link.execute("SELECT pg_stat_statements_reset()")
            with meter.measuring(len(asked)) if is_wanted and meter is not None else nullcontext():
                answers, seconds = self._run(asked, profiler if is_wanted else None)
            check(answers, ANSWERS[verb])
            if is_wanted:
                self.count, self.seconds = self.count + len(answers), self.seconds + seconds
                self._note(link)
            if verb == "claim":
                grants = answers
        tasks = [g.task["id"] for g in grants]
        self._board.granted += tasks
        self._board.accepted += tasks

    def _run(self, asked: Sequence[Command], profiler: cProfile.Profile | None) -> tuple[list[Any], float]:
        run, batch, answers = self._board.engine.run, self._batch, []
        if profiler is not None:
            profiler.enable()
        began = time.perf_counter()
        for start in range(0, len(asked), batch):
            answers += run(asked[start : start + batch])
        seconds = time.perf_counter() - began
        if profiler is not None:
            profiler.disable()
        return answers, seconds

    def _note(self, link: Any) -> None:
        for query, *figures in link.execute(_SPENT).fetchall() if link is not None else ():
            kept = self.statements.setdefault(query, [0.0] * len(figures))
            kept[:] = [a + float(b) for a, b in zip(kept, figures, strict=True)]


def profile(ground: Ground, scale: Scale, verb: str, *, is_single: bool) -> int:
    """Prints where the time of one verb goes: as it is, and then under Python's profiler."""
    board = ground.board()
    crew = board.register("bench", scale.batch)
    batch = 1 if is_single else scale.batch
    board.fill(3 * scale.batch)
    first = Play(board, verb, crew, batch)
    first.slice()  # statements are prepared
    expected = Play(board, verb, crew, batch)
    expected.slice()
    slices = max(1, min(MOST, int(scale.seconds / expected.seconds)))
    board.fill(3 * slices * scale.batch)
    plain, slowed, profiler = Play(board, verb, crew, batch), Play(board, verb, crew, batch), cProfile.Profile()
    with ground.connect() as link:
        link.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        meter = Meter(link)
        with meter.counting():
            for _ in range(slices):
                Play(board, verb, crew, batch).slice(meter=meter)
        for _ in range(slices):
            plain.slice(link)
        for _ in range(slices):
            slowed.slice(profiler=profiler)
    board.verify()
    board.close()
    each = plain.seconds / plain.count * 1e6
    with suppress(BrokenPipeError):  # who reads may have seen enough
        print(f"{verb}, {batch} a transaction, one thread: {1e6 / each:,.0f} a second, {each:.0f} µs a task")
        cost = meter.median()
        print(
            f"in processor time: Python {cost.client:.1f} µs a task, the server {cost.server:.1f};"
            f" {cost.log:,.0f} bytes of log; {cost.round_trips:.0f} round trips for {len(crew)}"
        )
        _tell_statements(plain)
        print(f"\nPython, by own time, under its profiler: {slowed.seconds / slowed.count * 1e6:.0f} µs a task")
        tell_functions(profiler, slowed.count)
    return 0


def _tell_statements(play: Play) -> None:
    rows = sorted(play.statements.items(), key=lambda item: -item[1][1])
    server = sum(figures[1] for _, figures in rows) / play.count
    print(f"\nthe server's statements, commits left out: {server:.1f} µs a task")
    print(f"  {'µs a task':>9}  {'calls':>7}  {'µs a call':>9}  {'rows':>7}  {'WAL a task':>10}  statement")
    for query, (calls, total, touched, wal) in rows[:STATEMENTS]:
        text = re.sub(r"\s+", " ", query)[:150]
        figures = f"{total / play.count:9.1f}  {calls:7.0f}  {total / calls:9.0f}  {touched:7.0f}"
        print(f"  {figures}  {wal / play.count:10.0f}  {text}")


def tell_functions(profiler: cProfile.Profile, count: int) -> None:
    stats: Any = pstats.Stats(profiler)
    rows = [(own, total, calls, *where) for where, (_, calls, own, total, _) in stats.stats.items()]
    print(f"  {'own µs':>7}  {'all µs':>7}  {'calls':>7}  function")
    for own, total, calls, path, line, name in sorted(rows, reverse=True)[:FUNCTIONS]:
        function = name if path == "~" else f"{re.sub('.*/(?:site-packages|src)/', '', path)}:{line} {name}"
        print(f"  {own / count * 1e6:7.1f}  {total / count * 1e6:7.1f}  {calls / count:7.2f}  {function}")
