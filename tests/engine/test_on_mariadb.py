"""The engine keeps its promises on a store in a MariaDB database."""

import threading
import time
from pathlib import Path

import pytest

from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.engine.runtime.work_wait import claim_next_or_wait
from tenure.stores.mariadb import Mariadb
from tenure.stores.memory import Memory
from tenure.stores.port import Clock, Store
from tenure.testing.clock import FakeClock
from tenure.testing.engine.histories import play, play_in_batches, standing
from tenure.testing.engine_suite import EngineSuite
from tenure.testing.factories import Dice, Scene
from tests.servers.mariadb import MariadbServer, open_store, url_of


@pytest.mark.sampled(one_in=48)
@pytest.mark.usefixtures("mariadb")
class TestOnMariadb(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_store(tmp_path, clock)


@pytest.mark.sampled
@pytest.mark.usefixtures("mariadb")
@pytest.mark.parametrize("seed", range(300, 303))
def test_memory_and_mariadb_give_the_same_answers(tmp_path: Path, seed: int) -> None:
    clocks = FakeClock(), FakeClock()
    one = Scene(Memory(clock=clocks[0]), clocks[0])
    other = Scene(open_store(tmp_path, clocks[1]), clocks[1])
    assert list(play(one, seed, 120)) == list(play(other, seed, 120))
    batches = [list(play_in_batches(scene, seed + 50, 80, 8, one_by_one=False)) for scene in (one, other)]
    assert batches[0] == batches[1]
    assert standing(one) == standing(other)
    assert [(e.key, e.version, e.kind, e.time) for e in one.events()] == [
        (e.key, e.version, e.kind, e.time) for e in other.events()
    ]
    assert other.engine.verify() == []
    other.store.close()


def test_a_waiting_agent_is_woken_by_work_that_another_process_adds(mariadb: MariadbServer, tmp_path: Path) -> None:
    asking, adding = (Engine(Mariadb(url_of(tmp_path)), Dice(n)) for n in range(2))
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
