"""Several processes at once on one PostgreSQL store: nothing twice, nothing lost, nobody deadlocked."""

import multiprocessing
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.errors import TenureError
from tenure.core.records import Task
from tenure.engine import Engine
from tenure.stores.postgres import Postgres
from tenure.testing.factories import code_of
from tests.servers.postgres import PostgresServer, url_of

PROCESSES = 4
PROJECTS = ("p", "q")


class Chance:
    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def fraction(self) -> float:
        return 0.5


def engine_of(folder: Path) -> Engine:
    return Engine(Postgres(url_of(folder)), Chance())


@pytest.fixture
def engine(postgres: PostgresServer, tmp_path: Path) -> Iterator[Engine]:
    engine = engine_of(tmp_path)
    for project in PROJECTS:
        engine.do(c.DefineProject(project=project))
    yield engine
    engine.store.close()


@pytest.fixture(scope="module")
def pool(postgres: PostgresServer) -> Iterator[Any]:
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        yield pool


def deadlocks(engine: Engine) -> int:
    ((count,),) = engine.store._read("SELECT sum(deadlocks)::bigint FROM pg_stat_database")  # type: ignore[attr-defined]
    return int(count)


def add(engine: Engine, count: int, project: str = "p", **fields: Any) -> list[str]:
    made = engine.do(c.Plan(project=project, tasks=tuple(NewTask(title=f"t{n}", **fields) for n in range(count))))
    return [str(t["key"]) for t in made.tasks or ()]


# --- what the processes do -------------------------------------------------------------------------------------


def claim_all(folder: Path, who: int) -> list[tuple[str, int]]:
    engine = engine_of(folder)
    taken = []
    while True:
        got = engine.do(c.ClaimNext(project="p", agent=f"a{who}", session=f"s{who}", n=3))
        if got.outcome != "GRANTED":
            engine.store.close()
            return taken
        for claim in got.claims or (got,):
            assert claim.task is not None
            taken.append((str(claim.task["key"]), int(claim.generation or 0)))


def finish(folder: Path, keys: list[str]) -> list[str]:
    engine = engine_of(folder)
    answers = []
    for key in keys:
        receipt = engine.do(c.ClaimTask(project="p", task=key, agent="ann", session="s")).receipt
        assert receipt is not None
        answers.append(engine.do(c.Submit(project="p", receipt=receipt, data="done")).outcome)
    engine.store.close()
    return answers


def link(folder: Path, pairs: list[tuple[str, str]]) -> list[str]:
    engine = engine_of(folder)
    answers = [code_of(a) for task, needs in pairs for a in engine.run([c.Link(project="p", task=task, needs=needs)])]
    engine.store.close()
    return answers


def mixed(folder: Path, who: int, rounds: int) -> list[str]:
    """Batches over both projects, in any order; what is refused is part of the game, what fails is not."""
    engine, dice = engine_of(folder), random.Random(who)
    held: list[tuple[str, str]] = []
    wrong = []
    for number in range(rounds):
        batch: list[c.Command] = []
        for project in dice.sample(PROJECTS, 2):
            batch.append(c.Add(project=project, task=NewTask(title=f"w{who}-{number}")))
            batch.append(c.ClaimNext(project=project, agent=f"a{who}", session=f"s{who}", n=2))
        for project, receipt in held[:3]:
            verb = dice.choice([c.Submit, c.Fail, c.Release, c.Renew])
            more: dict[str, Any] = {c.Submit: {"data": 1}, c.Fail: {"error_class": "task"}}.get(verb, {})
            batch.append(verb(project=project, receipt=receipt, **more))
        del held[:3]
        dice.shuffle(batch)
        for command, answer in zip(batch, engine.run(batch), strict=True):
            if isinstance(answer, TenureError):
                wrong.append(f"{type(command).__name__}: {answer.code} {answer.message}")
            elif isinstance(command, c.ClaimNext) and answer.outcome == "GRANTED":
                held += [(command.project, str(one.receipt)) for one in answer.claims or (answer,)]
    engine.store.close()
    return wrong


# --- what must come of it --------------------------------------------------------------------------------------


def test_each_task_is_claimed_once_whoever_asks(engine: Engine, pool: Any, tmp_path: Path) -> None:
    keys = add(engine, 80)
    taken = pool.starmap(claim_all, [(tmp_path, who) for who in range(PROCESSES)], chunksize=1)
    assert sorted(key for one in taken for key, _ in one) == sorted(keys)
    assert {generation for one in taken for _, generation in one} == {1}
    assert engine.verify() == []


def test_a_mixed_load_over_several_projects_neither_fails_nor_deadlocks(
    engine: Engine, pool: Any, tmp_path: Path
) -> None:
    before = deadlocks(engine)
    wrong = pool.starmap(mixed, [(tmp_path, who, 25) for who in range(PROCESSES)], chunksize=1)
    assert wrong == [[]] * PROCESSES
    assert deadlocks(engine) == before
    assert engine.verify() == []


def test_a_dependency_added_while_it_completes_is_never_waited_for_in_vain(
    engine: Engine, pool: Any, tmp_path: Path
) -> None:
    firsts, seconds = add(engine, 30), add(engine, 30)
    pairs = list(zip(seconds, firsts, strict=True))
    runs = [pool.apply_async(finish, (tmp_path, firsts[n::2])) for n in range(2)]
    runs += [pool.apply_async(link, (tmp_path, pairs[n::2])) for n in range(2)]
    answers = [answer for run in runs for answer in run.get(60)]
    assert set(answers) <= {"ACCEPTED", "UPDATED"}
    with engine.store.begin("local", write=False) as tx:
        states = {t.key: (t.state, t.unmet) for t in tx.find(Task, {"project": "p"})}
    assert {states[key] for key in firsts} == {("completed", 0)}
    assert {states[key] for key in seconds} == {("ready", 0)}
    assert engine.verify() == []
