"""A copy of an audited project keeps the seals of its source, and goes on from their head."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.log_seals import is_joint, leaf
from tenure.core.records import Archived, Seal, replace
from tenure.engine import Engine, project_copy
from tenure.engine.archive import mover
from tenure.engine.audit.sealer import seal_all
from tenure.engine.reads.query_table import read_query
from tenure.stores.memory import Memory
from tenure.stores.port import Change
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tenure.testing.engine.archive import churning
from tenure.testing.factories import PROJECT, Dice, Scene
from tests.servers.postgres import open_store

CLOCK = FakeClock()


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Any]]:
    stores: list[Any] = []

    def open_one(kind: str) -> Any:
        folder = tmp_path / str(len(stores))
        folder.mkdir()
        if kind == "postgres":
            request.getfixturevalue("postgres")
            stores.append(open_store(folder, CLOCK))
        elif kind == "sqlite":
            stores.append(Sqlite(str(folder / "store.db"), clock=CLOCK))
        else:
            stores.append(Memory(f"memory://{folder}", clock=CLOCK))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def report(engine: Engine, head: str | None = None) -> Any:
    return read_query(engine, q.VerifyAudit(project=PROJECT, head=head))


def moved(source: Scene, target: Any) -> Scene:
    """The scene of the copy."""
    project_copy.copy_project(source.engine, Engine(target, Dice(8)), PROJECT)
    return Scene(target, CLOCK, seed=9)


def worked(scene: Scene) -> None:
    """Tasks archived before the audit, archived under it, and open."""
    churning(scene)
    scene.finish(scene.add("before"))
    mover.move_all(scene.engine, PROJECT)
    scene.do(c.AuditOn)
    scene.finish(scene.add("under"))
    seal_all(scene.engine, PROJECT)
    mover.move_all(scene.engine, PROJECT)
    scene.add("open")
    scene.add("also open")


@pytest.mark.parametrize(("there", "then"), [("sqlite", "postgres"), ("memory", "sqlite"), ("postgres", "memory")])
def test_old_seals_are_evidence_and_the_new_chain_goes_on(opened: Any, there: str, then: str) -> None:
    scene = Scene(opened(there), CLOCK)
    worked(scene)
    head = str(read_query(scene.engine, q.AuditHead(project=PROJECT))["head"])
    other = Engine(opened(then), Dice(7))
    other.do(c.DefineProject(project="q"))  # sequences differ there
    copy = moved(scene, other.store)
    seals = copy.rows(Seal)
    assert [is_joint(seal) for seal in seals] == [False] * (len(seals) - 1) + [True]
    found = report(copy.engine, head)
    assert (found["findings"], found["present"]) == ([], found["sealed"])
    copy.finish("A-003")
    seal_all(copy.engine, PROJECT)
    mover.move_all(copy.engine, PROJECT)
    found = report(copy.engine, head)
    assert (found["findings"], found["present"]) == ([], found["sealed"])
    again = moved(copy, opened("memory"))  # a copy of a copy
    found = report(again.engine, head)
    assert (found["findings"], found["present"]) == ([], found["sealed"])
    assert again.engine.verify() == []


def test_a_change_in_the_copy_is_found(opened: Any) -> None:
    scene = Scene(opened("memory"), CLOCK)
    worked(scene)
    store = opened("memory")
    copy = moved(scene, store)
    head = str(read_query(copy.engine, q.AuditHead(project=PROJECT))["head"])
    log = list(store.log)
    old = [n for n, event in enumerate(log) if event.sequence <= copy.rows(Seal)[-2].last]
    assert len(old) > 5
    for n in (old[0], old[3]):
        store.log = [*log[:n], replace(log[n], message="other"), *log[n + 1 :]]
        assert any(f"event {log[n].sequence}:" in line for line in report(copy.engine, head)["findings"])
        store.log = [*log[:n], *log[n + 1 :]]
        assert [line for line in report(copy.engine, head)["findings"] if "removed" in line]
    first, second = replace(log[old[0]], sequence=log[old[1]].sequence), replace(log[old[1]], sequence=log[0].sequence)
    store.log = [second, first, *log[2:]]
    assert [line for line in report(copy.engine, head)["findings"] if "moved" in line]
    store.log = log
    assert report(copy.engine, head)["findings"] == []
    for row in copy.rows(Archived):
        with store.begin("local", write=True) as tx:
            tx.save([Change(row, None)])
        assert [line for line in report(copy.engine, head)["findings"] if "removed" in line]
        with store.begin("local", write=True) as tx:
            tx.save([Change(None, row)])


def test_a_leaf_has_no_sequence_and_everything_else() -> None:
    from tenure.testing.samples import event_of

    event = event_of()
    assert leaf(replace(event, sequence=event.sequence + 1)) == leaf(event)
    for name in ("id", "project", "kind", "message"):
        assert leaf(replace(event, **{name: "another"})) != leaf(event)
    assert leaf(replace(event, version=77)) != leaf(event)
