"""`tenure run --once --spawn`: a runner that a pool has started, for one task and under one agent's name."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tests.runner.conftest import AGENT, Stage, until
from tests.servers.tenure import TenureServer
from tests.spawners.on_a_store import record

ONCE = ("--once", "--name", "coders-1", "--spawn", "s-1")


def spawned(stage: Stage, key: str, **fields: Any) -> None:
    record(stage.client, "s-1", "coders-1", key, **fields)


def row(stage: Stage) -> dict[str, Any]:
    (found,) = stage.client.query(q.Spawns(project="default"))
    return dict(found)


def test_a_spawned_runner_claims_its_task_under_its_full_name_and_ends(stage: Stage) -> None:
    stage.add("Better", priority=1)
    key = stage.add("Mine")
    spawned(stage, key)
    stage.go()
    stage.run(*ONCE, "--task", key).ends(0)
    assert stage.state(key) == "completed"
    (claim,) = stage.client.history(key)
    assert claim["agent"] == "coders-1"
    assert row(stage)["session"] == claim["session"]


@pytest.mark.parametrize("state", ["lost", "ended"])
def test_a_runner_whose_spawn_is_over_ends_without_a_claim(stage: Stage, state: str) -> None:
    key = stage.add("Mine")
    spawned(stage, key, state=state, why="it did not claim in time")
    said = stage.run(*ONCE, "--task", key).ends(7)
    assert f"spawn s-1 is {state}: it did not claim in time" in said
    assert stage.client.history(key) == []


def test_a_runner_whose_spawn_is_unknown_ends_without_a_claim(stage: Stage) -> None:
    key = stage.add("Mine")
    assert "spawn s-1 is not known here" in stage.run(*ONCE).ends(7)
    assert stage.state(key) == "ready"


def test_the_second_process_of_one_spawn_ends_without_a_claim(stage: Stage) -> None:
    key, other = stage.add("Mine"), stage.add("Other")
    spawned(stage, key)
    first = stage.run(*ONCE, "--task", key)
    stage.started(key)
    assert "started twice" in stage.run(*ONCE, "--task", other).ends(7)
    assert stage.client.history(other) == []
    stage.go()
    first.ends(0)


def test_a_task_that_cannot_be_claimed_ends_the_runner(stage: Stage) -> None:
    key = stage.add("Mine")
    spawned(stage, key)
    stage.client.pause(key)
    stage.run(*ONCE, "--task", key).ends(3)
    assert stage.client.history(key) == []


def test_a_lost_claim_is_not_taken_again_once_the_spawn_is_over(stage: Stage) -> None:
    key = stage.add("Mine")
    spawned(stage, key)
    runner = stage.run(*ONCE, "--task", key)
    stage.started(key)
    end_spawn(stage)
    stage.client.recover(key)
    said = runner.ends(None)
    assert "spawn s-1 is ended" in said
    assert [generation for generation, *_ in stage.lineage(key)] == [1]
    assert stage.nothing_left()


def end_spawn(stage: Stage) -> None:
    from tenure.core import pools
    from tenure.core.records import Spawn
    from tenure.engine.runtime.unit_of_work import UnitOfWork

    def decide(work: UnitOfWork) -> None:
        work.put(pools.over(work.require(Spawn, "default", "s-1"), pools.ENDED, "over", work.now))

    stage.client.engine.transact(("default",), decide)


def test_terminating_its_agent_ends_a_spawned_runner_with_9(stage: Stage) -> None:
    key = stage.add("Mine")
    spawned(stage, key)
    runner = stage.run(*ONCE, "--task", key)
    stage.started(key)
    stage.client.terminate("coders-1", graceful=False, reason="enough")
    assert "terminated by an operator: coders-1" in runner.ends(9)
    assert stage.nothing_left()


def test_a_graceful_terminate_lets_it_finish_and_ends_with_9(stage: Stage) -> None:
    key = stage.add("Mine")
    spawned(stage, key)
    runner = stage.run(*ONCE, "--task", key, "--lease", "2")
    stage.started(key)
    stage.client.terminate("coders-1", reason="enough")
    runner.says("enough")
    stage.go()
    runner.ends(9)
    assert stage.state(key) == "completed"


@pytest.mark.parametrize("words", [("--spawn", "s"), ("--task", "A-1"), ("--once", "-n", "2", "--spawn", "s")])
def test_a_spawn_and_a_task_are_for_one_agent_and_one_task(stage: Stage, words: tuple[str, ...]) -> None:
    assert "are for one agent and one task" in stage.run(*words).ends(2)


def test_the_key_may_come_on_stdin(stage: Stage) -> None:
    """As over ssh, which forwards no environment."""
    key = stage.add("Mine")
    secret = stage.client.do(c.CreateKey(name="bot", role="agent", agent="coders-1")).secret
    assert secret is not None
    stage.go()
    with TenureServer(str(stage.home / "tenure.db"), settings={"TENURE_SERVE_AUTH": "required"}) as server:
        words = [sys.executable, "-P", "-m", "tenure", "run", "--once", "--key-stdin", "--name", "coders"]
        environ = {**stage.environ, "TENURE_URL": server.url, "TENURE_PROJECT": "default"}
        done = subprocess.run(
            [*words, "--agent", f"{sys.executable} {AGENT} {stage.control}"], input=f"{secret}\n", text=True,
            capture_output=True, cwd=stage.folder, env=environ, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    until(lambda: stage.state(key) == "completed", "the task")


def test_a_spawned_runner_waits_for_a_server_that_is_restarted(stage: Stage) -> None:
    """The server that started it may be killed before its agent has claimed."""
    key = stage.add("Mine")
    spawned(stage, key)
    stage.go()
    server = TenureServer(str(stage.home / "tenure.db"))
    runner = stage.run(*ONCE, "--task", key, TENURE_URL=server.url, TENURE_PROJECT="default")
    runner.says("the store is unavailable, trying again")
    with server:
        runner.ends(0)
    assert stage.state(key) == "completed"
