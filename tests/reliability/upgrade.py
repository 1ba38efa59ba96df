"""A large PostgreSQL store of the release before is upgraded: how long that takes, and that nothing is lost.

The fixture of `tests/upgrades` (every kind of row, tasks in every state, claims that are held) is copied inside the
server, one tenant a copy, until there are so many tasks. Then the store is opened by this program, while somebody asks
every few milliseconds whether its tables can be read. Afterwards: as many tasks in each state and as many rows as
before, every place in line with its task, verify and replay of the first tenants, and of these every receipt and every
request of before answered as it must be.
"""

from __future__ import annotations

import argparse
import resource
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from tenure.core import commands as c
from tenure.core import lifecycle
from tenure.core.commands import AnyCommand, Principal
from tenure.engine import Context, Engine
from tenure.stores.postgres import Postgres, schema
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.servers.postgres import PostgresServer
from tests.upgrades.old_stores import FOLDER, OldPostgres
from tests.upgrades.world import Dice

PLACE = "large"
_COLUMNS = """
SELECT table_name, string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position)
  FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
 WHERE table_schema = %s AND table_type = 'BASE TABLE' AND column_name NOT IN ('tenant', 'xid')
   AND table_name IN (SELECT table_name FROM information_schema.columns
                      WHERE table_schema = %s AND column_name = 'tenant')
 GROUP BY table_name
"""
# Views in this layout, tables in the one before.
_COUNTED = ("task", "claim", "result", "brief", "edge", "event", "event_block", "message", "agent", "session")
MEGABYTE = 1 << 20


class Watcher(threading.Thread):
    """Reads the tables again and again: the longest wait is how long nobody could work."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.ended, self.longest = url, threading.Event(), 0.0

    def run(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as link:
            while not self.ended.wait(0.005):
                began = time.monotonic()
                link.execute(f"SELECT FROM {PLACE}.task_base LIMIT 1".encode())
                self.longest = max(self.longest, time.monotonic() - began)


def release() -> str:
    """The newest fixture that this program has to upgrade."""
    return sorted(path.name for path in FOLDER.glob("[0-9]*") if int(path.name) < len(schema.migrations()))[-1]


def multiply(link: psycopg.Connection[Any], tasks: int) -> list[str]:
    """Copy all rows of a tenant under other names until there are so many tasks; the tenants."""
    (own,) = link.execute(f"SELECT count(*) FROM {PLACE}.task WHERE tenant = 'local'".encode()).fetchone() or (1,)
    copies = max(1, -(-tasks // own) - 1)
    for table, columns in link.execute(_COLUMNS, (PLACE, PLACE)).fetchall():
        over = "OVERRIDING SYSTEM VALUE" if table == "event" else ""
        text = (
            f"INSERT INTO {PLACE}.{table} (tenant, {columns}) {over} SELECT 'copy-' || n, {columns}"
            f" FROM {PLACE}.{table}, generate_series(1, {copies}) AS n WHERE tenant = 'local'"
        )
        link.execute(text.encode())
    for (table,) in link.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (PLACE,)).fetchall():
        link.execute(f"VACUUM (ANALYZE) {PLACE}.{table}".encode())
    return ["local", *(f"copy-{n}" for n in range(1, copies + 1))]


def counted(link: psycopg.Connection[Any]) -> dict[str, Any]:
    """Rows of each kind, and tasks by state and holder."""
    found: dict[str, Any] = {}
    for table in _COUNTED:
        found[table] = link.execute(f"SELECT count(*) FROM {PLACE}.{table}".encode()).fetchone()
    by = f"SELECT state, agent IS NOT NULL, due_at IS NOT NULL, count(*) FROM {PLACE}.task GROUP BY 1, 2, 3"
    return found | {"states": Counter({row[:3]: row[3] for row in link.execute(by.encode())})}


def size(link: psycopg.Connection[Any]) -> int:
    asked = (
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
    )
    return int((link.execute(asked.encode(), (PLACE,)).fetchone() or (0,))[0])


def answered(engine: Engine, told: dict[str, Any]) -> list[str]:
    """Receipts and requests of before that are not answered as they must be."""
    wrong = []
    for name, one in told["receipts"].items():
        if "receipt" in one:
            asked = c.Submit(project=one["project"], receipt=one["receipt"], data=one.get("data", "after"))
            answer = engine.do(asked)
            if answer.outcome != one["answer"]:
                wrong.append(f"{engine.tenant}: {name}: {answer.outcome}, not {one['answer']}")
    for one in told["repeats"]:
        command = msgspec.convert(one["command"], AnyCommand)
        if not engine.do(command, msgspec.convert(one["principal"], Principal)).again:
            wrong.append(f"{engine.tenant}: {command.request_id} was done again")
    return wrong


def upgrade(server: PostgresServer, tasks: int, verified: int) -> list[str]:
    old = OldPostgres(release(), server, PLACE)
    old.settle()
    with psycopg.connect(server.url, autocommit=True) as link:
        tenants = multiply(link, tasks)
        before, bytes_before = counted(link), size(link)
        (log,) = link.execute("SELECT pg_current_wal_lsn()").fetchone() or ("0/0",)
        watcher = Watcher(server.url)
        watcher.start()
        began, used = time.monotonic(), time.process_time()
        store = Postgres(old.url, clock=old.clock, create=False)
        seconds, used = time.monotonic() - began, time.process_time() - used
        watcher.ended.set()
        watcher.join()
        (written,) = link.execute("SELECT pg_current_wal_lsn() - %s::pg_lsn", (log,)).fetchone() or (0,)
        after = counted(link)
        wrong = [
            f"{what}: {before[what]} before, {after[what]} after" for what in before if before[what] != after[what]
        ]
        bytes_after = size(link)
    held = sum(n for (state, *_), n in before["states"].items() if state in lifecycle.HELD)
    looked = time.monotonic()
    wrong += store.check()
    looked = time.monotonic() - looked
    proven = time.monotonic()
    for tenant in tenants[:verified]:
        engine = Engine(store, Dice(tenant), Context(tenant=tenant))
        wrong += engine.verify()
        wrong += answered(engine, old.told)
        wrong += engine.verify()
    proven = time.monotonic() - proven
    wrong += store.check()
    store.close()
    figures: dict[str, results.Figure] = {
        "tasks": sum(before["states"].values()), "states": len({state for state, *_ in before["states"]}),
        "held": held, "from_schema": old.steps, "to_schema": len(schema.migrations()),
        "seconds": round(seconds, 1), "longest_wait_s": round(watcher.longest, 1),
        "log_mb": round(int(written) / MEGABYTE), "mb_before": round(bytes_before / MEGABYTE),
        "mb_after": round(bytes_after / MEGABYTE), "check_s": round(looked, 1),
        "tenants_verified": min(verified, len(tenants)), "verify_s": round(proven, 1),
        "client_cpu_s": round(used, 2), "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "wrong": len(wrong),
    }  # fmt: skip
    results.tell("upgrade", figures)
    return wrong


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="upgrade", description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--verified", type=int, default=20, help="tenants that are verified and worked on afterwards")
    wanted = parser.parse_args(argv)
    end_when_told()
    with PostgresServer.measured(Path("/tmp")) as server:
        wrong = upgrade(server, wanted.tasks, wanted.verified)
    for line in wrong[:20]:
        print(line)
    return 1 if wrong else 0
