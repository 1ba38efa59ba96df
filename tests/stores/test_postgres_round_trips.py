"""How often a command goes to the server and back: that, and not its statements, is what one at a time costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import Command, NewTask
from tenure.engine import Engine
from tenure.stores.postgres import Postgres
from tenure.stores.postgres.connection import Connection
from tests.servers.postgres import PostgresServer, url_of

P = "shop"
_numbers = count(1000)


class Counted:
    """An engine, and how many round trips its last batch took."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.round_trips = 0

    def due_blocks(self) -> int:
        store = self._engine.store
        assert isinstance(store, Postgres)
        ((count,),) = store._read(f"SELECT count(*) FROM {store.queries.dialect.schema}due_block")
        return int(count)

    def __call__(self, *batch: Command) -> list[Any]:
        self.round_trips = 0
        return self._engine.run(batch)


@pytest.fixture
def run(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    store = Postgres(url_of(tmp_path))
    counted = Counted(Engine(store, SystemRandom()))
    real = Connection.run

    def noted(self: Connection, statements: Sequence[Any], aside: Any = None) -> Any:
        counted.round_trips += 1
        return real(self, statements, aside)

    monkeypatch.setattr(Connection, "run", noted)
    counted(c.DefineProject(project=P))
    counted(c.Register(project=P, agent="ann", session="s-ann"))
    yield counted
    store.close()


def claim(number: int = 0, agent: str = "ann") -> c.ClaimNext:
    return c.ClaimNext(project=P, agent=agent, session=f"s-{agent}", request_id=f"r{number}")


def held(run: Counted, **task: Any) -> str:
    run(c.Add(project=P, task=NewTask(title="one", **task)))
    (granted,) = run(claim(next(_numbers)))
    return str(granted.receipt)


def test_hot_commands_take_three_round_trips_at_most(run: Counted) -> None:
    run(c.Add(project=P, task=NewTask(title="one")))
    assert run.round_trips <= 3
    ((granted,), round_trips) = run(claim()), run.round_trips
    assert (granted.outcome, round_trips) == ("GRANTED", 2)  # the first looks at the project before
    receipt = str(granted.receipt)
    for command, most in (
        (c.Start(project=P, receipt=receipt), 3),  # it counts mail too
        (c.Progress(project=P, receipt=receipt, percent=10), 3),
        (c.Renew(project=P, receipt=receipt), 3),
        (c.Submit(project=P, receipt=receipt, data="done"), 3),
        (claim(1), 4),  # there is none: it is looked for before the counts are asked
    ):
        run(command)
        assert run.round_trips <= most, command
    run(c.Release(project=P, receipt=held(run)))
    assert run.round_trips <= 2
    run(c.Fail(project=P, receipt=held(run), message="no"))
    assert run.round_trips <= 3


def test_claims_that_cannot_take_the_fast_path_share_their_round_trips(run: Counted) -> None:
    run(*[c.Add(project=P, task=NewTask(title="long", constraints={"max_duration": 900})) for _ in range(60)])
    crew = [f"a{number}" for number in range(60)]
    run(*[c.Register(project=P, agent=agent, session=f"s-{agent}") for agent in crew])
    answers = run(*[claim(number, agent) for number, agent in enumerate(crew)])
    assert {answer.outcome for answer in answers} == {"GRANTED"}
    assert run.round_trips < 60


def test_what_is_usual_takes_one_round_trip(run: Counted) -> None:
    held(run)
    receipt = held(run)
    assert run.round_trips == 1
    for command in (c.Renew(project=P, receipt=receipt), c.Submit(project=P, receipt=receipt, data="done")):
        run(command)
        assert run.round_trips == 1, command


def test_due_times_that_outlived_their_tasks_are_passed_once(run: Counted) -> None:
    """By a claim that finds nothing, though it writes nothing else."""
    for _ in range(5):
        run(c.Submit(project=P, receipt=held(run), data="done"))
    assert run.due_blocks() == 5
    assert run(claim(1))[0].outcome == "NO_TASK"
    assert run.due_blocks() == 0
    receipt = held(run)
    (nothing,) = run(claim(2))
    assert (run.due_blocks(), nothing.retry_in > 100) == (1, True)
    assert run(c.Renew(project=P, receipt=receipt))[0].outcome == "RENEWED"


def test_what_is_not_usual_is_tried_less_and_less(run: Counted) -> None:
    (last,) = run(c.Add(project=P, task=NewTask(title="first")))
    twice = []
    for number in range(24):
        (after,) = run(c.Add(project=P, task=NewTask(title="next", depends_on=(last.task["key"],))))
        (granted,) = run(claim(number))
        (done,) = run(c.Submit(project=P, receipt=str(granted.receipt), data="done"))
        assert (granted.task["key"], done.outcome) == (last.task["key"], "ACCEPTED")
        twice.append(run.round_trips)
        last = after
    assert 1 <= sum(n > min(twice) for n in twice[1:]) <= 5, twice  # the first waits for nothing, the others do


def test_named_claims_and_results_that_others_wait_for_share_their_round_trips(run: Counted) -> None:
    """However many: their rows are read together, and so are those of the tasks that wait for them."""
    round_trips = []
    for size in (3, 12):
        for _ in range(3):  # results of such tasks are tried alone first, and less and less
            added = run(*[c.Add(project=P, task=NewTask(title="first")) for _ in range(size)])
            keys = [answer.task["key"] for answer in added]
            run(*[c.Add(project=P, task=NewTask(title="then", depends_on=(key,))) for key in keys])
            granted = run(*[c.ClaimTask(project=P, task=key, agent="ann", session="s-ann") for key in keys])
            claiming = run.round_trips
            done = run(*[c.Submit(project=P, receipt=str(answer.receipt), data="done") for answer in granted])
            assert {answer.outcome for answer in done} == {"ACCEPTED"}
            submitting = run.round_trips
        round_trips.append((claiming, submitting))
    assert round_trips[0] == round_trips[1]
    assert max(round_trips[1]) <= 8


def test_a_worker_that_waited_claims_in_one_round_trip(run: Counted) -> None:
    """Also one that has never seen a task, that wants more than there are, or whose lane nobody knew."""
    for number in range(6):
        ((nothing,), empty) = run(claim(10 * number)), run.round_trips
        assert (nothing.outcome, empty <= 5) == ("NO_TASK", True)
        run(c.Add(project=P, task=NewTask(title="one")))
        assert run.round_trips <= 2 or number == 0
        ((granted,), found) = (
            run(msgspec.structs.replace(claim(10 * number + 1), n=50 if number % 2 else 1)),
            run.round_trips,
        )
        assert (granted.outcome, found) == ("GRANTED", 1 if number else 2)
    run(c.Register(project=P, agent="web", session="s-web", capabilities=("web",)))
    run(c.Add(project=P, task=NewTask(title="page", constraints={"required_capabilities": ["web"]})))
    assert run(claim(91))[0].outcome == "NO_TASK"
    for number in range(100, 103):
        assert run(claim(number, "web"))[0].outcome == "GRANTED"
        assert run.round_trips <= (3 if number == 100 else 1)
        run(c.Add(project=P, task=NewTask(title="page", constraints={"required_capabilities": ["web"]})))
