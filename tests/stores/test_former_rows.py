"""Rows of schema 0001 after the upgrade, and its log as replay reads it: both say the same."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.core import archive, former_names
from tenure.core.records import Task, replace
from tenure.stores.postgres import Postgres
from tenure.stores.postgres import schema as postgres_schema
from tenure.stores.postgres.connection import connect
from tenure.stores.sql.codec import Codec
from tenure.stores.sqlite import schema as sqlite_schema
from tenure.stores.sqlite.store import Sqlite
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import stored
from tests.servers.postgres import PostgresServer

FORMER_NAMES = {"late_submit_open": "answerable", "set_aside_for": "parked"}
NEW = (
    "pauses",
    "cancelled",
    "failures",
    "losses",
    "brief_number",
    "reserved",
    "sealed",
    "unseen_since",
    "agent_type",
    "estimate",
    "length",
    "order_turn",
    "offer_term",
)
REASONS = [
    "lunch", "budget exceeded", "budget project: $10.01 of $10", "budget track:B: 5 of 4", "budget talk on Monday",
    "question: Which?", "review: 1 changed lines for 20,000 tokens", "llm-judge could not be decided, 5 times: away",
    "drained: paused when its holder let go", "lease lost; on_lost = hold", 'with "quotes" and ümlauts \\ too',
]  # fmt: skip
CANCELLED = ["cascade:task_1", "parent:task_2", "undo", "pruned", "not needed", None]
ROWS = [
    *({"state": "paused", "reason": reason, "resume_at": 77, "state_before": "ready"} for reason in REASONS),
    *({"state": "cancelled", "reason": reason, "state_before": "ready"} for reason in CANCELLED),
    {"state": "running", "wanted": "pause"},
    {"state": "ready", "resume_at": 5},
    {"state": "ready", "answerable": True, "parked": "task_9"},
    {"state": "dead_lettered", "reason": "drained: paused when its holder let go"},
]  # fmt: skip


def old_rows() -> Iterator[dict[str, object]]:
    codec = Codec(Task)
    for number, fields in enumerate(ROWS):
        known = {now: fields[former] for now, former in FORMER_NAMES.items() if former in fields}
        known |= {name: fields[name] for name in ("state", "state_before", "wanted") if name in fields}
        task = replace(row_of(Task), project="p", id=f"t{number:02d}", ref=f"A-{number}", key=f"A-{number}-x", **known)
        row = dict(zip((column.name for column in codec.columns), codec.encode(task), strict=True))
        yield {FORMER_NAMES.get(name, name): value for name, value in row.items() if name not in NEW} | {
            "tenant": "local", "reason": fields.get("reason"), "resume_at": fields.get("resume_at"),
        }  # fmt: skip


def check(upgraded: dict[tuple[str, str], Task]) -> None:
    sample = row_of(Task)
    for number, fields in enumerate(ROWS):
        task = upgraded["p", f"t{number:02d}"]
        said = former_names.task_of(fields)
        assert task.pauses == tuple(said.get("pauses", ())), fields
        assert task.cancelled == said.get("cancelled"), fields
        assert (task.late_submit_open, task.set_aside_for) == (
            said.get("late_submit_open", sample.late_submit_open), said.get("set_aside_for", sample.set_aside_for)
        ), fields  # fmt: skip
        assert (task.failures, task.losses, task.brief_number) == ((), 0, 1)
        assert (task.reserved, task.unseen_since) == (False, None)


def test_an_archived_task_is_read_by_the_names_it_was_written_with() -> None:
    task = row_of(Task, late_submit_open=True, set_aside_for="task_9", state="completed")
    now = archive.archived(task, [task], (), 5)
    text = archive.inflated(now.document)
    for name, former in FORMER_NAMES.items():
        assert name.encode() in text
        text = text.replace(name.encode(), former.encode())
    assert archive.rows_in(replace(now, document=archive.deflated(text))) == [task]


def test_on_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    known = sqlite_schema.migrations()
    with monkeypatch.context() as older:
        older.setattr(sqlite_schema, "migrations", lambda: known[:1])
        Sqlite(str(path)).close()
    with sqlite3.connect(path) as link:
        for row in old_rows():
            names = ", ".join(f'"{name}"' for name in row)
            link.execute(f"INSERT INTO task ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    link.close()
    store = Sqlite(str(path))
    check(stored(store, Task))
    store.close()


COLUMNS = "SELECT column_name::text FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2"


def literal(value: object) -> str:
    if isinstance(value, (bool, int)):
        return str(value).lower()
    return "'" + str(value).replace("'", "''") + "'"


def test_on_postgres(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = "s_" + re.sub(r"\W", "_", tmp_path.name.lower())[-50:]
    url = f"{postgres.url}?schema={place}"
    known = postgres_schema.migrations()
    with monkeypatch.context() as older:
        older.setattr(postgres_schema, "migrations", lambda: known[:1])
        older.setattr(postgres_schema.planner_statistics, "statements", lambda: ())  # they name later columns
        Postgres(url).close()
    link = connect(postgres.url, 30)
    try:
        for row in old_rows():
            for table in ("task_hot", "task_base"):
                (answer,) = link.run([(COLUMNS, [place, table])])
                names = [name for (name,) in answer.rows() if name in row]
                values = ", ".join("NULL" if row[name] is None else literal(row[name]) for name in names)
                columns = ", ".join(f'"{name}"' for name in names)
                link.script(f"INSERT INTO {place}.{table} ({columns}) VALUES ({values})")
        store = Postgres(url)
        check(stored(store, Task))
        store.close()
    finally:
        link.script(f"DROP SCHEMA IF EXISTS {place} CASCADE")
        link.close()
