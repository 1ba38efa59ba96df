"""The archive fills while work goes on: sweeps of several threads, claims, results and late ones at the same time."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.outcomes import Outcome
from tenure.core.records import Archived, Task, Track
from tenure.engine import Engine
from tenure.engine.archive import mover
from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.stores.sqlite import Sqlite
from tenure.testing.factories import PROJECT
from tests.servers.postgres import open_store

WORKERS, EACH = 3, 25


class Chance:
    """Real chance: ids that several threads make must differ."""

    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def fraction(self) -> float:
        return 0.5


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_no_task_is_lost_or_there_twice(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    store: Store
    if kind == "postgres":
        request.getfixturevalue("postgres")
        store = open_store(tmp_path, None)
    else:
        store = Memory() if kind == "memory" else Sqlite(str(tmp_path / "store.db"))
    engine = Engine(store, Chance())
    engine.do(c.DefineProject(project=PROJECT, limits={"archive_after": 0}))
    done: list[str] = []
    failures: list[BaseException] = []
    ended = threading.Event()

    def work(name: str) -> None:
        for n in range(EACH):
            added = engine.do(c.Add(project=PROJECT, task=NewTask(title="x", idempotency_key=f"{name}-{n}")))
            key = (added.task or {})["key"]
            granted = engine.do(c.ClaimTask(project=PROJECT, task=key, agent=name, session=name))
            receipt = granted.receipt or ""
            first = engine.do(c.Submit(project=PROJECT, receipt=receipt, data=n))
            assert (first.outcome, _again(engine, receipt, n)) == ("ACCEPTED", "ACCEPTED")
            if n % 5 == 0:  # brings it back, wherever it is by now
                refused = engine.do(c.Submit(project=PROJECT, receipt=receipt, data="other"))
                assert (refused.outcome, refused.result is not None) == ("TASK_ALREADY_COMPLETED", True)
            done.append(key)

    def sweep() -> None:
        while not ended.is_set():
            assert mover.sweep(engine, PROJECT).failed == {}

    def told(run: Callable[..., None], *args: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                run(*args)
            except BaseException as error:  # noqa: BLE001 - told to the test, which raises it
                failures.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    sweepers = [told(sweep) for _ in range(2)]
    workers = [told(work, f"w{n}") for n in range(WORKERS)]
    for thread in workers:
        thread.join(120)
    ended.set()
    for thread in sweepers:
        thread.join(120)
    assert failures == []
    mover.move_all(engine, PROJECT)
    with store.begin("local", write=False) as tx:
        assert {row.key for row in tx.find(Archived, {"out": False})} == set(done)
        assert tx.find(Task, {}) == []
        (track,) = tx.find(Track, {"id": "A"})
    assert len(set(done)) == track.completed == track.last_sequence == WORKERS * EACH
    assert engine.verify() == []
    store.close()


def _again(engine: Engine, receipt: str, data: int) -> str:
    answer = engine.do(c.Submit(project=PROJECT, receipt=receipt, data=data))
    assert isinstance(answer, Outcome)
    return answer.outcome
