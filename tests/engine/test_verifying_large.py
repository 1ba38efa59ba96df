"""Verify reads in pages and keeps rows in a file: it finds the same, and needs little memory for a task."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.records import Task, replace
from tenure.engine import Engine
from tenure.engine.runtime import rows
from tenure.engine.verify import spill
from tenure.stores.port import Change
from tenure.stores.sqlite import Sqlite
from tenure.testing.samples import row_of

P = "shop"
A_TASK = 7_000  # bytes at most; it was 17,000


def worked(path: Path, tasks: int) -> Engine:
    """A third of the tasks is completed."""
    engine = Engine(Sqlite(str(path)), SystemRandom())
    engine.do(c.DefineProject(project=P))
    for start in range(0, tasks, 300):
        engine.run([c.Add(project=P, task=NewTask(title=f"Task {start + n}")) for n in range(300)])
        claims = [c.ClaimNext(project=P, agent=f"ann{n}", session=f"s{start}-{n}") for n in range(100)]
        receipts = [str(answer.receipt) for answer in engine.run(claims)]  # type: ignore[union-attr]
        engine.run([c.Submit(project=P, receipt=receipt, data={"n": 1}) for receipt in receipts])
    return engine


@pytest.fixture
def spills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "IN_MEMORY", 10)
    monkeypatch.setattr(rows, "ROWS_A_PAGE", 50)


def test_what_is_wrong_is_found_in_rows_that_lie_in_the_file(spills: None, tmp_path: Path) -> None:
    engine = worked(tmp_path / "store.db", 300)
    assert engine.verify() == []
    with engine.store.begin("local", write=True) as tx:
        task = tx.find(Task, {"project": P, "state": "completed"}, limit=60)[-1]
        tx.save([Change(task, replace(task, unmet=3, version=task.version + 1))])
    found = " ".join(engine.verify())
    assert f"{task.key}: counts (3, 0, 0), edges say (0, 0, 0)" in found
    assert f"{task.key}: version {task.version + 1}, {task.version} events" in found
    assert f"task ('{P}', '{task.id}').version: log {task.version}, table {task.version + 1}" in found
    engine.store.close()


def test_a_row_comes_back_from_the_file_as_it_was(spills: None) -> None:
    usual, damaged = (
        row_of(Task),
        replace(row_of(Task), priority="high", last_error={1: "a key that JSON makes a text"}),
    )
    with spill.Spill() as file:
        file.room = 0
        kept: spill.Spilled[str, Task] = spill.Spilled(file, Task)
        kept.update(usual=usual, damaged=damaged)
        assert (kept["usual"], kept["damaged"]) == (usual, damaged)
        kept["damaged"] = usual
        assert kept["damaged"] == usual


@pytest.mark.nightly
def test_memory_grows_little_with_the_tasks(spills: None, tmp_path: Path) -> None:
    peaks = []
    for tasks in (300, 1200):
        engine = worked(tmp_path / f"{tasks}.db", tasks)
        engine.verify()  # what is read once for all is read by now
        tracemalloc.start()
        assert engine.verify() == []
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        engine.store.close()
    assert (peaks[1] - peaks[0]) / 900 < A_TASK
