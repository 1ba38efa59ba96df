"""A store of the layout before, upgraded and worked on: copied to other stores, archived, its log followed.

Its log then has events one by one, and blocks of both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.artifacts.memory import MemoryArtifacts
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask
from tenure.core.records import (
    KINDS,
    Cursor,
    Cycles,
    DataKey,
    Project,
    Reservation,
    Sink,
    Spawn,
    Task,
    Trigger,
    Webhook,
)
from tenure.engine import Context, Engine, project_copy
from tenure.engine.archive import mover
from tenure.engine.duties.election import LeaderEngine, stand
from tenure.engine.reads.query_table import read_query
from tenure.engine.relay.relay import Relay, Settings
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import KeySource
from tenure.stores.port import Store
from tenure.stores.postgres import Postgres
from tenure.stores.sqlite import Sqlite
from tenure.testing.memory_sink import MemorySink
from tests.servers.postgres import PostgresServer
from tests.upgrades.old_stores import OldPostgres, OldStore, old_store
from tests.upgrades.world import MASTER_KEY, Dice

RELEASE = "0007"  # the last one before the layout
# What a copy rewrites: it begins anew there, is sealed anew, or names places in a log whose sequences are others.
_OWN = {Reservation, Project, Spawn, Cursor, Trigger, Webhook, DataKey}
_OF_CLAIM = ("generation", "agent", "session", "state", "release_reason", "renewals", "work_product_ref")


def engine_of(store: Store, seed: str, tenant: str = "local") -> Engine:
    sealer: Any = Cipher(KeySource({"TENURE_MASTER_KEY": MASTER_KEY}))
    place = MemoryArtifacts()
    return Engine(store, Dice(seed), Context(tenant=tenant, sealer=sealer, artifacts=lambda _: place))


@pytest.fixture
def upgraded(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], tuple[OldStore, Store]]]:
    """Opens a store of the release; several of them are closed at the end."""
    opened: list[tuple[Any, Store]] = []

    def open_one(kind: str) -> tuple[OldStore, Store]:
        folder = tmp_path / f"{kind}-{len(opened)}"
        folder.mkdir()
        lent = old_store(kind, RELEASE, folder, request)
        old = lent.__enter__()
        old.settle()
        store = old.open(create=False)
        opened.append((lent, store))
        return old, store

    yield open_one
    for lent, store in reversed(opened):
        store.close()
        lent.__exit__(None, None, None)


def unlimited(engine: Engine) -> None:
    """Without the tenant's budget, which keeps claims from the fast path."""
    assert engine.do(c.RemoveBudget(project="money", scope="tenant")).ok


def work(engine: Engine, project: str, tasks: int = 6) -> list[str]:
    """Claim and complete new tasks in batches; the receipts. The first batch may go the long way."""
    done: list[str] = []
    for _ in range(3):
        made: list[Any] = engine.run([c.Add(project=project, task=NewTask(title=f"new {n}")) for n in range(tasks)])
        assert {answer.outcome for answer in made} == {"CREATED"}
        claims = [c.ClaimNext(project=project, agent=f"new{n}", session=f"s-new{n}", lease=60) for n in range(tasks)]
        receipts = [str(answer.receipt) for answer in engine.run(claims)]  # type: ignore[union-attr]
        engine.run([c.Renew(project=project, receipt=r, lease=60) for r in receipts[::2]])
        answers: list[Any] = engine.run([c.Submit(project=project, receipt=r, data={"new": r}) for r in receipts])
        assert {answer.outcome for answer in answers} == {"ACCEPTED"}
        done += receipts
    return done


def forms(old: OldStore, tenant: str) -> set[int]:
    assert isinstance(old, OldPostgres)
    return {form for (form,) in old.ask(f"SELECT DISTINCT form FROM {old.name}.event_block WHERE tenant = %s", tenant)}


def told(store: Store, project: str) -> dict[str, list[Any]]:
    """All that a copy must have, sequences aside."""
    with store.begin("local", write=False) as tx:
        rows: dict[str, list[Any]] = {
            kind.table: tx.find(row, {"project": project}) for row, kind in KINDS.items() if row not in _OWN
        }
        events = tx.events({"project": project}, limit=1_000_000)
    return rows | {"event": [(e.id, e.time, e.kind, e.task, e.version, msgspec.json.encode(e.patch)) for e in events]}


@pytest.mark.parametrize(
    "kinds", [("sqlite", "postgres"), ("postgres", "sqlite"), ("postgres", "postgres")], ids="→".join
)
def test_every_project_is_copied_whole(
    kinds: tuple[str, str], upgraded: Any, tmp_path: Path, postgres: PostgresServer
) -> None:
    old, store = upgraded(kinds[0])
    source = engine_of(store, "source")
    unlimited(source)
    for project in ("fast", "short"):
        work(source, project)
    assert kinds[0] == "sqlite" or forms(old, "local") == {1, 2}
    old.clock.advance(seconds=14 * 3600)  # nobody holds anything any more
    place = f"s_copied_{kinds[0]}"
    if kinds[1] == "sqlite":
        there: Store = Sqlite(str(tmp_path / "target.db"), clock=old.clock)
    else:
        there = Postgres(f"{postgres.url}?schema={place}", clock=old.clock)
    try:
        target = engine_of(there, "target")
        with store.begin("local", write=False) as tx:
            projects = [row.id for row in tx.find(Project, {})]
        assert len(projects) > 8
        for project in projects:
            source.sweep(project)
            before = told(store, project)
            project_copy.copy_project(source, target, project)
            after = told(there, project)
            # the last events there tell of the arrival
            after["event"] = after["event"][: len(before["event"])]
            assert {name for name in before if after[name] != before[name]} == set(), project
        for engine in (source, target):
            assert engine.verify() == engine.store.check() == []
        assert len(work(target, "fast")) == 18  # and there it goes on
        assert target.verify() == there.check() == []
    finally:
        there.close()
        if kinds[1] == "postgres":
            postgres.ask(f"DROP SCHEMA {place} CASCADE")


def followed(engine: Engine, project: str, size: int) -> list[tuple[Any, ...]]:
    """The log from the start, in pages of `size`."""
    found: list[tuple[Any, ...]] = []
    while True:
        after = found[-1][0] if found else 0
        page = read_query(engine, q.Log(project=project, after=after, last=False, limit=size))
        found += [(e["sequence"], e["id"], e["kind"], e.get("task"), e.get("version")) for e in page]
        if not page:
            return found


def test_a_cursor_passes_every_event_once_whatever_form_its_block_has(upgraded: Any) -> None:
    old, store = upgraded("postgres")
    engine = engine_of(store, "cursor", "acme")
    work(engine, "fast")
    assert forms(old, "acme") == {1, 2}
    whole = followed(engine, "fast", 1000)
    assert len({sequence for sequence, *_ in whole}) == len(whole)
    assert [row[0] for row in whole] == sorted(row[0] for row in whole)
    for size in (1, 2, 5, 7, 100):
        assert followed(engine, "fast", size) == whole
    for place, (sequence, *_) in list(enumerate(whole))[::3]:  # also from within a block
        page = read_query(engine, q.Log(project="fast", after=sequence, last=False, limit=4))
        assert [event["id"] for event in page] == [row[1] for row in whole[place + 1 : place + 5]]


def test_a_sink_goes_on_from_its_place(upgraded: Any) -> None:
    old, store = upgraded("postgres")
    engine = engine_of(store, "sink")
    unlimited(engine)
    work(engine, "fast")
    assert forms(old, "local") == {1, 2}
    with store.begin("local", write=False) as tx:
        (place,) = [row.sequence for row in tx.find(Sink, {}) if row.id == "broker"]
        wanted = [event.id for event in tx.events({"project": "fast"}, after=place, limit=1000)]
        earlier = tx.events({"project": "fast", "kind": "task.claimed"}, after=place, limit=1)
    assert (len(wanted) > 100, earlier[0].agent) == (True, "f0")  # some of before, in blocks of the first form
    old.clock.advance(seconds=7200)  # the leader of then is gone
    led = LeaderEngine(engine, "new", stand(engine, "new", 3600, None, Cycles()).term or 0, lambda: None)
    sink = MemorySink()
    settings = Settings("broker", "nats://broker:4222", projects=("fast",))
    relay = Relay(engine, settings, lambda: sink, lambda: led, _zero)
    while relay.step() == 0.0:
        pass
    assert [m.id for m in sink.sent if m.id in set(wanted)] == wanted


def _zero() -> float:
    return 0.0


def test_tasks_of_before_and_of_now_are_archived_and_brought_back(upgraded: Any) -> None:
    old, store = upgraded("postgres")
    engine = engine_of(store, "archive", "acme")
    work(engine, "fast")
    old.clock.advance(seconds=14 * 3600)
    engine.sweep("fast")
    with store.begin("acme", write=False) as tx:
        finished = tx.find(Task, {"project": "fast", "state": "completed"})
        others = tx.find(Task, {"project": "fast", "state": ("ready", "retrying")})
    of_before, of_now = finished[0].key, finished[-1].key
    assert (len(finished), bool(others), forms(old, "acme")) == (30, True, {1, 2})
    keys = [task.key for task in (*finished, *others)]
    before = {key: _in_full(engine, key) for key in keys}
    moved = mover.move_all(engine, "fast", older=0)
    assert (moved.tasks, moved.failed) == (30, {})
    assert engine.verify() == store.check() == []
    assert {key for key in keys if _in_full(engine, key) != before[key]} == set()
    left = {task for *_, task, _ in followed(engine, "fast", 3)} - {None}
    last = followed(engine, "fast", 1000)[-1]
    assert left - {last[3]} <= {task.id for task in others}
    for key in (of_before, of_now):
        engine.do(c.Note(project="fast", task=key, text="once more"))
        claims, log = _in_full(engine, key)
        assert (claims, log[:-1]) == before[key]
    assert engine.verify() == store.check() == []


def _in_full(engine: Engine, key: str) -> tuple[list[Any], list[Any]]:
    claims = read_query(engine, q.History(project="fast", task=key))
    log = read_query(engine, q.TaskLog(project="fast", task=key, limit=1000))
    return [[entry.get(name) for name in _OF_CLAIM] for entry in claims], [event["id"] for event in log]
