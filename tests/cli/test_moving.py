"""`db archive`, `db copy` and `db restore` from a shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Tenure
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer


@pytest.fixture
def done(tenure: Tenure, add: Callable[..., str]) -> Tenure:
    """A store with one completed task and one that is open."""
    add("first")
    assert tenure("claim", "A-001", "--session", "s").code == 0
    assert tenure("done", "A-001", "--session", "s", "--summary", "it is done").code == 0
    add("second")
    return tenure


def test_finished_tasks_are_put_away_and_still_found(done: Tenure) -> None:
    assert done("db", "archive", "--json").json == {"moved": 0, "bytes": 0, "pruned": 0, "failed": {}, "held_back": 0}
    assert done("db", "archive", "--older-than", "0", "--dry-run").out == "1 task would be moved\n"
    moved = done("db", "archive", "--older-than", "0s", "--json").json
    assert (moved["moved"], moved["bytes"] > 100) == (1, True)
    assert [t["ref"] for t in done("list", "--json").json] == ["A-002"]
    assert [t["ref"] for t in done("list", "--archived", "--json").json] == ["A-001", "A-002"]
    shown = done("show", "A-001")
    assert "it is done" in shown.out
    assert "archived" in shown.out
    assert "archived_at" in done("show", "A-001", "--json").json
    assert done("history", "A-001", "--json").json[0]["release_reason"] == "COMPLETED"
    assert "task.completed" in done("log", "--task", "A-001").out
    assert done("doctor", "--verify").code == 0
    assert done("reset", "A-001").code == 0
    assert [t["ref"] for t in done("list", "--json").json] == ["A-001", "A-002"]
    assert done("doctor", "--verify").code == 0


def test_a_project_moves_to_postgres_and_back(done: Tenure, postgres: PostgresServer, tmp_path: Path) -> None:
    server = f"{postgres.url}?schema=moving"
    copied = done.process("db", "copy", ".tenure/tenure.db", server)
    assert copied.code == 0, copied.err
    assert "default: 2 tasks" in copied.out
    assert "export TENURE_URL=" in copied.out
    assert "both stores were verified" in copied.out
    there = {"TENURE_URL": server, "TENURE_PROJECT": "default"}
    assert [t["ref"] for t in done.process("list", "--json", **there).json] == ["A-001", "A-002"]
    assert done.process("claim", "--session", "x", "--json", **there).json["outcome"] == "GRANTED"
    refused = done.process("db", "copy", server, str(tmp_path / "back.db"), "--json")
    assert (refused.code, refused.json["error"]["code"]) == (7, "COPY_REFUSED")
    assert "A-002" in refused.json["error"]["message"]
    assert done.process("release", "A-002", "--session", "x", **there).code == 0
    back = done.process("db", "copy", server, "back.db", "--project", "default", "--no-verify", "--json").json
    assert back["projects"][0]["rows"]["task"] == 2
    assert done.process("claim", "A-002", "--session", "y", TENURE_URL=str(tmp_path / "back.db")).code == 0
    assert done.process("db", "copy", server, "back.db").code == 7
    assert done("claim", "A-002", "--session", "z").code == 7  # where it was the line is stopped


def test_a_project_moves_to_mariadb_whose_settings_doctor_checks(done: Tenure, mariadb: MariadbServer) -> None:
    server = mariadb.place("moving")
    copied = done.process("db", "copy", ".tenure/tenure.db", server)
    assert copied.code == 0, copied.err
    assert "both stores were verified" in copied.out
    there = {"TENURE_URL": server, "TENURE_PROJECT": "default"}
    assert done.process("claim", "--session", "x", "--json", **there).json["outcome"] == "GRANTED"
    assert done.process("doctor", "--verify", **there).code == 0
    backup = done.process("db", "backup", "b.db", "--json", **there)
    assert "mariadb-dump" in backup.json["error"]["hint"]
    mariadb.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
    try:
        found = done.process("doctor", "--json", **there)
    finally:
        mariadb.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    assert found.code == 10
    (store,) = (finding for finding in found.json if finding["level"] == "error")
    assert "innodb_flush_log_at_trx_commit = 1" in store["fix"]


def test_a_copy_from_nowhere_makes_nothing(bare: Tenure, tmp_path: Path) -> None:
    assert bare("db", "copy", "none.db", "new.db").code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_backup_comes_back_and_the_store_stays_beside_it(done: Tenure, tmp_path: Path) -> None:
    assert done("db", "backup", "b.db").code == 0
    assert done("cancel", "A-002").code == 0
    restored = done.process("db", "restore", "b.db", "--json").json
    assert Path(restored["aside"]).is_file()
    assert restored["ended"] == []
    assert done.process("show", "A-002", "--json").json["state"] == "ready"
    old = done.process("show", "A-002", "--json", TENURE_URL=restored["aside"], TENURE_PROJECT="default")
    assert old.json["state"] == "cancelled"
    told = done.process("db", "restore", "b.db", "--to", "elsewhere/tenure.db")
    assert (told.code, "is restored" in told.out) == (0, True)
    assert done.process("db", "restore", "none.db").code == 8
    assert done.process("db", "check").out == "no errors found\n"


def test_agents_may_do_none_of_it(done: Tenure) -> None:
    for words in (("archive",), ("copy", "a", "b"), ("restore", "b.db")):
        said = done.process("db", *words, "--json", CLAUDECODE="1")
        assert (said.code, said.json["error"]["code"]) == (7, "NOT_ALLOWED")


def test_a_server_s_store_is_not_restored_by_us(done: Tenure) -> None:
    assert done("db", "backup", "b.db").code == 0
    said = done.process("db", "restore", "b.db", TENURE_URL="postgresql://tenure@127.0.0.1:1/work")
    assert said.code == 8
    assert "pg_restore" in said.err
