"""The engine keeps its promises on a store in a PostgreSQL database."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.engine.runtime.work_wait import claim_next_or_wait
from tenure.stores.memory import Memory
from tenure.stores.port import Clock, Store
from tenure.stores.postgres import Postgres
from tenure.testing.clock import FakeClock
from tenure.testing.engine.histories import play, play_in_batches, standing
from tenure.testing.engine_suite import EngineSuite
from tenure.testing.factories import Dice, Scene
from tests.servers.postgres import PostgresServer, open_store, url_of
from tests.servers.restricted import open_restricted


@pytest.mark.sampled(one_in=3)
@pytest.mark.usefixtures("postgres")
class TestOnPostgres(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_store(tmp_path, clock)


@pytest.mark.sampled(one_in=12)
@pytest.mark.usefixtures("restricted")
class TestUnderRowSecurity(EngineSuite):
    """With a role that policies show one tenant at a time, and that may not change the log."""

    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_restricted(tmp_path, clock)


@pytest.mark.sampled(one_in=24)
@pytest.mark.usefixtures("restricted", "pgbouncer")
class TestUnderRowSecurityBehindPgbouncer(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_restricted(tmp_path, clock, pooled=True)


@pytest.mark.sampled
@pytest.mark.usefixtures("postgres")
@pytest.mark.parametrize("seed", range(300, 303))
def test_memory_and_postgres_give_the_same_answers(tmp_path: Path, seed: int) -> None:
    clocks = FakeClock(), FakeClock()
    one = Scene(Memory(clock=clocks[0]), clocks[0])
    other = Scene(open_store(tmp_path, clocks[1]), clocks[1])
    for mine, theirs in zip(play(one, seed, 120), play(other, seed, 120), strict=True):
        assert mine == theirs
    for mine, theirs in zip(
        play_in_batches(one, seed + 50, 80, 8, one_by_one=False),
        play_in_batches(other, seed + 50, 80, 8, one_by_one=False),
        strict=True,
    ):
        assert mine == theirs
    assert standing(one) == standing(other)
    # Among tasks, the results of one batch come in no promised order.
    assert _told(one) == _told(other)
    assert other.engine.verify() == []
    other.store.close()


def _told(scene: Scene) -> list[tuple[Any, ...]]:
    return sorted((e.key or "", e.version or 0, e.kind, e.time) for e in scene.events())


def test_a_waiting_agent_is_woken_by_work_that_another_process_adds(postgres: PostgresServer, tmp_path: Path) -> None:
    asking, adding = (Engine(Postgres(url_of(tmp_path)), Dice(n)) for n in range(2))
    asking.do(c.DefineProject(project="p"))
    command = c.ClaimNext(project="p", agent="ann", session="s")
    assert asking.do(command).outcome == "NO_TASK"  # known from now on: its own first sign of life would wake it
    answers: list[Outcome] = []
    waiting = threading.Thread(
        target=lambda: answers.append(claim_next_or_wait(asking, command, 30.0, time.monotonic)), daemon=True
    )
    waiting.start()
    adding.do(c.Add(project="p", task=c.NewTask(title="at last")))
    waiting.join(30)
    assert [answer.outcome for answer in answers] == ["GRANTED"]
    for engine in (asking, adding):
        engine.store.close()
