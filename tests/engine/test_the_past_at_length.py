"""The past on every store, at 500 instants of long random histories; and what a log of 100,000 events costs."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core import lifecycle
from tenure.core import queries as q
from tenure.core.commands import NewTask
from tenure.core.records import Archived, Task, replace
from tenure.core.written_times import spell_instant
from tenure.engine import Engine
from tenure.engine.project_copy import copy_project
from tenure.engine.reads.query_table import read_query
from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.engine.past import known, snapshots
from tenure.testing.factories import PROJECT, SECRETS, Dice, Scene
from tests.reliability import past
from tests.servers.store_servers import SERVERS

P = "shop"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", past.STORES)
def test_the_past_at_500_instants_is_what_was_there(request: pytest.FixtureRequest, kind: str) -> None:
    if kind in SERVERS:
        request.getfixturevalue(kind)
    wrong: list[str] = []
    past.compared(kind, 100, 500, wrong.append)
    assert wrong[:5] == []


@pytest.mark.parametrize("events_before", [0, 40])
def test_a_project_that_was_copied_keeps_its_past(tmp_path: Path, events_before: int) -> None:
    """Its events have new sequences, but those of archived tasks have the old ones."""
    clock = FakeClock()
    scene = Scene(Memory(clock=clock), clock, 1)
    for n in range(5):
        scene.add(f"before {n}")
    taken = list(snapshots(scene, 5, 120, 0.2))
    clock.advance(seconds=100_000)
    scene.engine.sweep()
    for task in scene.rows(Task, state=lifecycle.HELD):
        scene.do(c.Recover, task=task.id)
    other = Sqlite(str(tmp_path / "other.db"), clock=clock)
    target = Engine(other, Dice(2), SECRETS)
    target.do(c.DefineProject(project="other"))
    for n in range(events_before):
        target.do(c.Add(project="other", task=NewTask(title=str(n))))
    copy_project(scene.engine, target, PROJECT)
    assert any(one.rows[Archived] for one in taken)
    for then in taken:
        for query, answer in then.answers:
            said = read_query(target, replace(query, at=spell_instant(then.instant)))
            assert known(said) == known(answer), (then.instant, query)
    other.close()


def filled(store: Store, cycles: int) -> Engine:
    """Each cycle is a task with four events: created, claimed, progress, completed."""
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project=P))
    for start in range(0, cycles, 250):
        engine.run([c.Add(project=P, task=NewTask(title=f"Task {start + n}")) for n in range(250)])
        claims = [c.ClaimNext(project=P, agent=f"ann{n}", session=f"s{n}") for n in range(250)]
        receipts = [str(answer.receipt) for answer in engine.run(claims)]  # type: ignore[union-attr]
        engine.run([c.Progress(project=P, receipt=receipt, percent=50) for receipt in receipts])
        engine.run([c.Submit(project=P, receipt=receipt, data={"n": 1}) for receipt in receipts])
    return engine


@pytest.mark.nightly
def test_100_000_events_are_read_within_seconds(tmp_path: Path) -> None:
    engine = filled(Sqlite(str(tmp_path / "store.db")), 25_000)
    last = engine.read(lambda tx: tx.events({}, limit=1, last=True))[0].sequence
    assert last > 100_000
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = read_query(engine, q.Status(project=P, at=str(last)))
    spent, grown = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{last} events: {spent:.1f} s of processor time, {grown / 1024:.0f} MiB more")
    assert status["tasks"] == {"completed": 25_000}
    assert spent < 15
    engine.store.close()
