"""`./x bench archive [TASKS]`: bytes that a finished task takes, before and after it went into the archive.

Each is added with a brief of 600 bytes, claimed, reported on, and submitted with a result of 300 bytes and its usage.
Bytes are those of tables and indexes without free pages: the growth of a store in use for each further task.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import psycopg

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask, Totals
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.engine.archive import mover
from tenure.stores.port import Store
from tenure.stores.postgres import Postgres
from tenure.stores.sqlite import Sqlite
from tests.servers.postgres import PostgresServer

PROJECT = "shop"
BATCH = 100


def fill(engine: Engine, tasks: int) -> None:
    engine.do(c.DefineProject(project=PROJECT))
    for start in range(0, tasks, BATCH):
        numbers = range(start, min(tasks, start + BATCH))
        engine.run([c.Add(project=PROJECT, task=_new(n)) for n in numbers])
        claims = engine.run(
            [c.ClaimNext(project=PROJECT, agent=f"agent-{n % 8}", session=f"agent-{n % 8}-1") for n in numbers]
        )
        receipts = [claim.receipt for claim in claims if isinstance(claim, Outcome) and claim.receipt]
        engine.run([c.Progress(project=PROJECT, receipt=r, percent=50, step="tests") for r in receipts])
        usage = (Totals(model="opus", fresh=12_000, cached=80_000, output=900, cost_usd="0.21"),)
        data = {"commit": "0123456789abcdef" * 2, "notes": "x" * 220}
        engine.run([c.Submit(project=PROJECT, receipt=r, data=data, summary="done", usage=usage) for r in receipts])


def _new(n: int) -> NewTask:
    words = f"Task {n} of many: read the words of module {n % 97}, write missing parts, and run its tests. "
    return NewTask(title=f"Write module {n}", description=(words * 6)[:500], tags=("code",), spec={"prompt": words})


def sqlite_bytes(path: Path) -> int:
    link = apsw.Connection(str(path))
    try:
        ((pages,),) = link.execute("PRAGMA page_count").fetchall()
        ((free,),) = link.execute("PRAGMA freelist_count").fetchall()
        ((size,),) = link.execute("PRAGMA page_size").fetchall()
    finally:
        link.close()
    return int((pages - free) * size)


def postgres_bytes(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as link:
        tables = [name for (name,) in link.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'tenure'")]
        for name in tables:
            link.execute(f'VACUUM FULL "tenure"."{name}"'.encode())
        row = link.execute(
            "SELECT sum(pg_total_relation_size(format('tenure.%I', tablename)::regclass))"
            " FROM pg_tables WHERE schemaname = 'tenure'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def measured(name: str, store: Store, taken: Callable[[], int], tasks: int) -> None:
    engine = Engine(store, SystemRandom())
    empty = taken()
    fill(engine, tasks)
    before = taken()
    began = time.perf_counter()
    moved = mover.move_all(engine, PROJECT, older=0)
    seconds = time.perf_counter() - began
    after = taken()
    assert moved.tasks == tasks, moved.failed
    print(
        f"{name}: {(before - empty) / tasks:.0f} bytes a finished task before, {(after - empty) / tasks:.0f} after"
        f" ({(before - empty) / (after - empty):.1f} times less; documents {moved.bytes / tasks:.0f});"
        f" {tasks / seconds:.0f} tasks/s moved"
    )
    store.close()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench archive", description=__doc__)
    parser.add_argument("tasks", nargs="?", type=int, default=5000)
    tasks = parser.parse_args(argv).tasks
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = Sqlite(str(path))
        measured("SQLite", store, lambda: sqlite_bytes(path), tasks)
    server = PostgresServer.measured()
    try:
        server.start()
        measured("PostgreSQL", Postgres(server.url), lambda: postgres_bytes(server.url), tasks)
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
