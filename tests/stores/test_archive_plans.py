"""What the archive asks goes by indexes: a sweep must not walk tables, nor must a receipt of long ago."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.core.filters import Prefix, Range
from tenure.core.records import Archived, Claim, Edge, Result, Row, Task, Usage
from tenure.stores.postgres import Postgres, log_statements
from tenure.stores.postgres.connection import numbered
from tenure.stores.postgres.planner_statistics import made_up
from tenure.stores.postgres.statement_texts import BEGIN_WRITE, BY_KEYS, queries_of
from tenure.stores.sql.codec import tables
from tenure.stores.sql.statements import Dialect, event_table, table_of
from tenure.stores.sqlite import Sqlite
from tenure.stores.sqlite.transaction import DIALECT
from tests.servers.postgres import PostgresServer

IDS = tuple(f"t{n}" for n in range(100))
SCHEMA = "archive_plans"
ON_POSTGRES = {"task_state": "standing_pkey"}  # where an index has another name there
ASKED: dict[str, tuple[type[Row], dict[str, Any], str, Any, int | None, str]] = {
    "candidates": (Task, {"state": "completed", "id": Range(high="x")}, "id", ("a", "a"), 100, "task_state"),
    "claims of a page": (Claim, {"task": IDS}, "id", None, None, "claim_generation"),
    "results of a page": (Result, {"task": IDS}, "id", None, None, "result_"),
    "usage of a page": (Usage, {"task": IDS}, "id", None, None, "usage_task"),
    "what waits for a page": (Edge, {"needs": IDS}, "id", None, None, "edge_needs"),
    "a short key": (Archived, {"out": False, "ref": "1", "key": Prefix("1-")}, "id", None, None, "archived_key"),
    "an idempotency key": (Archived, {"out": False, "idempotency_key": "1"}, "id", None, None, "archived_idempotency"),
    "a lineage": (Archived, {"dag": "1", "root": "1", "out": False}, "id", None, None, "archived_dag"),
    "a page of the archive": (Archived, {"out": False}, "created_at", (5, "x"), 50, "archived_created"),
    "what is old": (Archived, {"created_at": Range(high=5)}, "created_at", None, 100, "archived_created"),
}


def statement(what: str, dialect: Dialect) -> tuple[tuple[str, list[Any]], str]:
    if what == "events of a page":
        found = log_statements.finding("local", {"project": "1", "task": IDS}, 0, 5000, False, dialect)
        assert found is not None
        return found, "event_version"
    if what == "dropping":
        return next(event_table(dialect).dropping("local", "1", IDS)), "event_version"
    kind, where, order, after, limit, index = ASKED[what]
    found = table_of(kind, dialect).finding("local", {"project": "1", **where}, order, after, limit)
    assert found is not None
    return found, index


every_question = pytest.mark.parametrize("what", [*ASKED, "events of a page", "dropping"])


@every_question
def test_on_sqlite_nothing_is_walked(tmp_path: Path, what: str) -> None:
    store = Sqlite(str(tmp_path / "store.db"))
    (text, values), index = statement(what, DIALECT)
    link = store.connections.take()
    steps = [str(row[3]) for row in link.all(f"EXPLAIN QUERY PLAN {text}", values)]
    assert any(f"INDEX {index}" in step for step in steps), steps
    # the project's last event is looked for from the end of the log, where it lies
    assert [s for s in steps if s.startswith("SCAN ")] == (["SCAN event"] if what == "dropping" else []), steps
    store.connections.give(link)
    store.close()


@pytest.fixture(scope="module")
def explained(postgres: PostgresServer) -> Any:
    store = Postgres(f"{postgres.url}?schema={SCHEMA}")
    link = store.connections.take()
    link.run([("BEGIN", ()), (f"SELECT set_config('search_path', '{SCHEMA}', true)", ())])
    link.run([(text, ()) for table, struct in tables() for text in made_up(table, struct, 3000, 3)])
    link.run([("COMMIT", ())])

    def explain(text: str, values: Sequence[Any]) -> str:
        link.run([(BEGIN_WRITE, ()), (BY_KEYS, ())])
        try:
            link.script("PREPARE asked AS " + numbered(text).decode())
            given = ", ".join("NULL" for _ in values)
            told = "\n".join(str(line) for (line,) in link.all(f"EXPLAIN EXECUTE asked({given})"))
            link.script("DEALLOCATE asked")
        finally:
            link.run([("ROLLBACK", ())])
        return told

    yield explain
    link.script(f"DROP SCHEMA {SCHEMA} CASCADE")
    store.connections.give(link)
    store.close()


@every_question
def test_on_postgres_nothing_is_walked(explained: Any, what: str) -> None:
    (text, values), index = statement(what, queries_of(SCHEMA).dialect)
    plan = explained(text, values)
    assert ON_POSTGRES.get(index, index) in plan, plan
    assert "Seq Scan" not in plan, plan
