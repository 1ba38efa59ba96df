"""Ctrl-C once, twice, three times; SIGTERM."""

from __future__ import annotations

import signal

from tests.runner.conftest import Stage, until


def test_ctrl_c_lets_running_agents_finish_and_begins_nothing_new(stage: Stage) -> None:
    first, second = stage.add("First", priority=1), stage.add("Second")
    runner = stage.run()
    stage.started(first)

    runner.kill(signal.SIGINT)
    runner.says("draining")
    stage.go()

    assert "1 completed" in runner.ends(0)
    assert stage.state(first) == "completed"
    assert stage.client.history(second) == []


def test_ctrl_c_ends_an_idle_runner(stage: Stage) -> None:
    runner = stage.run("-n", "2")
    until(lambda: len(stage.supervisors()) == 2, "two supervisors to wait")

    runner.kill(signal.SIGINT)

    assert "no task" in runner.ends(0)
    assert stage.nothing_left()
    assert {a["status"] for a in stage.client.agents()} == {"offline"}


def test_ctrl_c_twice_gives_the_tasks_back(stage: Stage) -> None:
    key = stage.add("Interrupted")
    stage.do(brood=True)
    runner = stage.run()
    stage.started(key)

    runner.kill(signal.SIGINT)
    runner.says("draining")
    runner.kill(signal.SIGINT)

    runner.ends(130)
    assert stage.nothing_left()
    assert stage.state(key) == "ready"
    assert stage.lineage(key) == [(1, "STOPPED", None)]
    assert stage.client.show(key)["attempts"] == 0
    assert stage.client.show(key)["checkpoint"]["data"]["notes"]["why"] == "the runner was stopped"


def test_ctrl_c_three_times_leaves_the_rest_to_the_supervisors(stage: Stage) -> None:
    key = stage.add("Stubborn")
    stage.do(brood=True, stubborn=True)
    runner = stage.run("--grace", "1")
    stage.started(key)

    for said in ("draining", "ending the agents", ""):
        runner.kill(signal.SIGINT)
        runner.says(said)

    runner.ends(130)
    assert stage.nothing_left()


def test_sigterm_ends_agents_that_do_not_finish(stage: Stage) -> None:
    key = stage.add("Terminated")
    runner = stage.run("--grace", "0.2")
    stage.started(key)

    runner.kill(signal.SIGTERM)

    runner.ends(130)
    assert stage.state(key) == "ready"
    assert stage.nothing_left()


def test_a_runner_whose_agent_is_terminated_ends_by_itself_and_says_so(stage: Stage) -> None:
    first, second = stage.add("First", priority=1), stage.add("Second")
    runner = stage.run("--name", "bot")
    stage.started(first)

    stage.client.terminate("bot-1", reason="enough")
    stage.go()

    assert "terminated by an operator: bot-1" in runner.ends(9)
    assert stage.state(first) == "completed"
    assert stage.client.history(second) == []
    (agent,) = [a for a in stage.client.agents() if a["name"] == "bot-1"]
    assert agent["status"] == "offline"


def test_a_runner_whose_agent_is_ended_at_once_does_not_claim_the_task_again(stage: Stage) -> None:
    key = stage.add("First")
    runner = stage.run("--name", "bot")
    stage.started(key)

    stage.client.terminate("bot-1", graceful=False)

    runner.ends(9)
    assert [(g, reason) for g, reason, _ in stage.lineage(key)] == [(1, "SUPERSEDED")]
    assert stage.nothing_left()
