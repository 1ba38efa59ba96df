"""What a single claim and a single submit on a file consist of: statements, processor time, functions.

Processor time is the thread's own, so a busy machine adds little. Functions are those of Python's profiler, which makes
small ones look larger than they are.
"""

from __future__ import annotations

import argparse
import cProfile
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.ground import AGENTS, check, claim_next, fill, open_engine, submit
from bench.postgres.profiling import tell_functions
from bench.raw import trace, traced_connections
from tenure.core.commands import Command
from tenure.engine import Engine


class Part:
    """One kind of command: what the measured ones took, and then the profiled ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seconds: list[float] = []
        self._profiler, self._profiled = cProfile.Profile(), 0

    def run(self, command: Command, *, is_profiled: bool) -> Any:
        if is_profiled:
            self._profiled += 1
            return self._profiler.runcall(self._engine.do, command)
        began = time.thread_time()
        answer = self._engine.do(command)
        self._seconds.append(time.thread_time() - began)
        return answer

    def tell(self, what: str, texts: list[str]) -> None:
        spent = statistics.median(self._seconds) * 1e6
        print(f"\n{what}: {spent:.0f} µs of processor time, {len(texts)} statements")
        for text in texts:
            print(f"  {' '.join(text.split())[:150]}")
        tell_functions(self._profiler, self._profiled)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench parts", description=__doc__)
    parser.add_argument("--ready", type=int, default=10_000, help="ready tasks")
    parser.add_argument("--count", type=int, default=1000, help="claims and submits, by turns as they are and profiled")
    parser.add_argument("--folder", type=Path, help="where the file goes; /dev/shm leaves the disk out")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=given.folder) as folder:
        path = Path(folder) / "parts.db"
        engine = open_engine(path)
        fill(engine, given.ready, "rows")
        claims, submits = Part(engine), Part(engine)
        for number in range(-2 * AGENTS, 2 * given.count):  # the first ones make agents known
            of_agent, is_profiled = number // 2 % AGENTS, number % 2 == 1
            kept = (claims, submits) if number >= 0 else (Part(engine), Part(engine))
            grant = kept[0].run(claim_next(of_agent), is_profiled=is_profiled)
            check([kept[1].run(submit(grant.receipt or ""), is_profiled=is_profiled)], "ACCEPTED")
        engine.store.close()
        with traced_connections() as lines:
            engine = open_engine(path)
            trace(engine, lines, claim_next(0))
            claimed, grant = trace(engine, lines, claim_next(0))
            submitted, _ = trace(engine, lines, submit(grant.receipt or ""))
            engine.store.close()
    claims.tell("claim", [text for text, _ in claimed.statements])
    submits.tell("submit", [text for text, _ in submitted.statements])
    return 0
