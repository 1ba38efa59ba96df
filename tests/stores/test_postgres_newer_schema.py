"""A store that a newer program upgrades while processes of an older one work: they are told, and nothing is lost.

Both programs are this one; the newer has a migration more.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.errors import Conflict, SchemaMismatch, StoreUnavailable, TenureError
from tenure.core.records import Result, Task
from tenure.engine import Engine
from tenure.stores.postgres import Postgres, schema
from tenure.stores.postgres.connection import connect
from tests.servers.postgres import PostgresServer

STEP = f"{len(schema.migrations()) + 1:04d}_newer"
# It rewrites what the hot verbs write, in another order than they do.
TEXT = """-- breaking: yes
-- since: 9.8.7

ALTER TABLE session ADD COLUMN newer bigint;
ALTER TABLE event_block ADD COLUMN newer bigint;
ALTER TABLE task_hot ADD COLUMN newer bigint;
UPDATE task_hot SET newer = version;
ALTER TABLE task_base ADD COLUMN newer bigint;
CREATE TABLE newer (tenant text, id text);
"""
THREADS = 4
EACH = 5  # cycles of each thread before the upgrade begins, at least


@pytest.fixture
def url(postgres: PostgresServer, tmp_path: Path) -> Iterator[str]:
    """A schema of this test's own."""
    name = "n_" + re.sub(r"\W", "_", tmp_path.name.lower())[-50:]
    yield f"{postgres.url}?schema={name}"
    postgres.ask(f"DROP SCHEMA IF EXISTS {name} CASCADE")


class Newer:
    """Another version of this program: with a step more than it has. Stores that are open stay the older one's."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.patch, self.folder = patch, folder
        self.known = schema.migrations()

    def begin(self, step: str = TEXT) -> None:
        """From here on this is the newer program."""
        shutil.copytree(schema.FOLDER, self.folder)
        (self.folder / f"{STEP}.sql").write_text(step)
        self.patch.setattr(schema, "FOLDER", self.folder)
        schema.migrations.cache_clear()

    def hurry(self) -> None:
        self.patch.setattr(schema, "PATIENCE", "200ms")


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newer]:
    with monkeypatch.context() as patch:
        yield Newer(patch, tmp_path / "migrations")
    schema.migrations.cache_clear()


class Worker(threading.Thread):
    """Makes, claims, renews and completes tasks in batches until it is refused."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        self.store = Postgres(url, create=False)
        self.engine = Engine(self.store, SystemRandom())
        self.who = {"project": "p", "agent": name, "session": f"s-{name}"}
        self.cycles, self.ready = 0, threading.Event()
        self.accepted: list[str] = []  # receipts
        self.refusals: list[TenureError] = []

    def run(self) -> None:
        for n in range(100_000):
            try:
                self.engine.run([c.Add(project="p", task=NewTask(title=f"t {n}"))] * 4)
                claimed = self._told([c.ClaimNext(**self.who, lease=600)] * 4)
                held = [str(answer.receipt) for answer in claimed if answer.receipt]
                self._told([c.Renew(project="p", receipt=receipt) for receipt in held])
                done = self._told([c.Submit(project="p", receipt=receipt, data=n) for receipt in held])
                self.accepted += [r for r, answer in zip(held, done, strict=True) if answer.outcome == "ACCEPTED"]
            except (StoreUnavailable, Conflict):  # definite: nothing was done, and it may be tried again
                continue
            except TenureError as error:
                self.refusals.append(error)
                if len(self.refusals) == 3:  # it does not come back by itself
                    return
            self.cycles += 1
            if self.cycles >= EACH:
                self.ready.set()

    def _told(self, batch: list[Any]) -> list[Any]:
        answers: list[Any] = self.engine.run(batch)
        for answer in answers:
            if isinstance(answer, TenureError):
                raise answer
        return answers


def test_processes_at_work_are_refused_and_nothing_is_lost_or_written(url: str, newer: Newer) -> None:
    first = Postgres(url)
    Engine(first, SystemRandom()).do(c.DefineProject(project="p"))
    workers = [Worker(url, f"w{n}") for n in range(THREADS)]
    for worker in workers:
        worker.start()
    assert all(worker.ready.wait(60) for worker in workers)
    newer.begin()
    upgraded = Postgres(url, create=False)  # while they work
    with upgraded.begin("local", write=False) as tx:
        end = tx.events({"project": "p"}, limit=1, last=True)[0].sequence
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
        assert {type(error) for error in worker.refusals} == {SchemaMismatch}
        for error in worker.refusals:
            assert (error.code, error.definite) == ("SCHEMA_MISMATCH", True)
            assert f"upgraded while this process ran: it needs schema {upgraded.schema} or later" in error.message
            assert "newer version" in (error.hint or "")
            assert "estore" not in f"{error.message} {error.hint}"
        worker.store.close()
    engine = Engine(upgraded, SystemRandom())
    with upgraded.begin("local", write=False) as tx:
        assert tx.events({"project": "p"}, limit=1, last=True)[0].sequence == end
        results = tx.find(Result, {"project": "p", "accepted": True})
        refs = {task.id: task.ref for task in tx.find(Task, {"project": "p"})}
    told = [receipt.partition("@")[0] for worker in workers for receipt in worker.accepted]
    assert sorted(told) == sorted(refs[result.task] for result in results)
    assert engine.verify() == upgraded.check() == []
    upgraded.close()
    first.close()


def test_an_upgrade_waits_for_whoever_writes_and_gives_up_in_time(url: str, newer: Newer) -> None:
    """Also where it changes no table that the other has touched: what that writes, it decided by the older rules."""
    store = Postgres(url)
    newer.begin("-- breaking: yes\n-- since: 9.8.7\n\nCREATE TABLE newer (tenant text, id text);\n")
    newer.hurry()
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project="p"))

    def decide(work: Any) -> None:
        """One that has begun, and has written nothing yet."""
        with pytest.raises(StoreUnavailable, match="others use it") as refusal:
            Postgres(url, create=False)
        assert "start again" in (refusal.value.hint or "")
        work.record("task.noted", project="p", message="after")

    engine.transact(("p",), decide)
    with store.begin("local", write=False) as tx:
        assert tx.events({"project": "p"}, limit=1, last=True)[0].message == "after"
    upgraded = Postgres(url, create=False)
    assert upgraded.schema == len(newer.known) + 1
    with pytest.raises(SchemaMismatch):
        engine.do(c.Add(project="p", task=NewTask(title="x")))
    for one in (store, upgraded):
        one.close()


def test_a_reader_that_holds_the_tables_ends_the_upgrade_and_leaves_the_store(
    url: str, postgres: PostgresServer, newer: Newer
) -> None:
    store = Postgres(url)
    newer.begin()
    newer.hurry()
    Engine(store, SystemRandom()).do(c.DefineProject(project="p"))
    name = url.rpartition("=")[2]
    link = connect(postgres.url, 30)
    link.run([("BEGIN", ()), (f"SELECT count(*) FROM {name}.task_base", ())])
    with pytest.raises(StoreUnavailable, match="it was left as it is"):
        Postgres(url, create=False)
    assert Engine(store, SystemRandom()).do(c.Add(project="p", task=NewTask(title="x"))).outcome == "CREATED"
    link.close()
    Postgres(url, create=False).close()
    store.close()


def test_whoever_reads_when_it_begins_reads_to_the_end(
    url: str, postgres: PostgresServer, newer: Newer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a deadlock, which would end one of both: the upgrade has no second try here."""
    store = Postgres(url)
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project="p"))
    engine.do(c.Add(project="p", task=NewTask(title="x")))
    newer.begin("-- breaking: yes\n-- since: 9.8.7\n\nALTER TABLE task_base ADD COLUMN newer bigint;\n")
    monkeypatch.setattr(schema, "_TRIES", 1)
    found: list[Any] = []

    def upgrade() -> None:
        try:
            found.append(Postgres(url, create=False))
        except TenureError as error:
            found.append(error)

    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
    thread = threading.Thread(target=upgrade, daemon=True)
    with store.begin("local", write=False) as tx:
        assert tx.now
        thread.start()
        while postgres.ask(waiting) == "0":
            assert thread.is_alive(), found
        assert [task.key for task in tx.find(Task, {"project": "p"})] == ["A-001-x"]
        assert len(tx.find(Result, {"project": "p"})) == 0
    thread.join(60)
    (upgraded,) = found
    assert isinstance(upgraded, Postgres), upgraded
    upgraded.close()
    store.close()


def test_a_step_may_take_longer_than_any_statement(postgres: PostgresServer) -> None:
    link = connect(postgres.url, -4.9)  # the server must answer within a tenth of a second
    link.script("SELECT pg_sleep(0.3)", 5)
    assert link.all("SELECT 1") == [(1,)]
    link.close()


def test_tables_that_a_step_made_have_statistics(url: str, postgres: PostgresServer) -> None:
    """Those that it left empty, as the tables of a new store have; those that it filled, of their rows."""
    known = schema.migrations()
    name = url.rpartition("=")[2]
    with pytest.MonkeyPatch.context() as older:
        older.setattr(schema, "migrations", lambda: known[:7])  # before the layout
        older.setattr(schema.planner_statistics, "statements", lambda *_: ())
        Postgres(url).close()
    Postgres(url).close()
    having = f"SELECT count(DISTINCT tablename) FROM pg_stats WHERE schemaname = '{name}' AND tablename IN "
    assert postgres.ask(having + "('task_hot', 'queue', 'held', 'standing', 'due_block', 'granted', 'done')") == "7"
    for table in ("task_hot", "queue", "done"):
        assert postgres.ask(f"SELECT count(*) FROM {name}.{table}") == "0"
