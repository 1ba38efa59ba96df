"""Agents, supervisors and runners that are killed: nothing is left of them, and the work goes on."""

from __future__ import annotations

import os
import signal

from tenure import process_table
from tests.runner.conftest import Stage, until


def test_nothing_of_an_agent_outlives_its_runner(stage: Stage) -> None:
    key = stage.add("Doomed")
    stage.do(brood=True, stubborn=True)
    runner = stage.run("--grace", "0.2")
    agent = stage.started(key)
    assert len(stage.processes()) >= 3  # the agent, a child, and one in its own session
    supervisors = stage.supervisors()
    assert len(supervisors) == 2

    runner.kill(signal.SIGKILL)

    assert stage.nothing_left()
    until(lambda: not any(map(process_table.look_up, supervisors)), "the supervisor to end")
    assert process_table.look_up(agent) is None


def test_the_task_of_a_killed_runner_is_taken_over_long_before_its_lease_is_over(stage: Stage) -> None:
    key = stage.add("Handed over")
    runner = stage.run("--lease", "300")
    stage.started(key, 1)

    runner.kill(signal.SIGKILL)
    stage.run("--lease", "300")
    stage.started(key, 2)
    stage.go()

    assert stage.is_completed(key)
    assert stage.lineage(key) == [(1, "EXPIRED", None), (2, "COMPLETED", True)]
    (gone,) = stage.client.log(kind="task.process_gone")
    assert gone["key"] == key


def test_a_claim_is_not_proven_gone_while_anything_of_its_agent_is_left(stage: Stage) -> None:
    key = stage.add("Slow to die")
    stage.do(stubborn=True)
    first = stage.run("--grace", "0.5")
    agent = stage.started(key, 1)
    supervisors = stage.supervisors()
    first.kill(signal.SIGKILL)
    stage.run()

    stage.started(key, 2)

    assert process_table.look_up(agent) is None
    assert not any(map(process_table.look_up, supervisors))


def test_a_killed_agent_is_a_crash_and_its_task_is_tried_again(stage: Stage) -> None:
    key = stage.add("Killed")
    stage.do(brood=True)
    stage.run()
    os.kill(stage.started(key, 1), signal.SIGKILL)

    stage.started(key, 2)
    stage.go()

    assert stage.is_completed(key)
    first, second = stage.client.history(key)
    assert (first["error_class"], first["release_reason"]) == ("crash", "FAILED")
    assert "SIGKILL" in first["error"]
    assert second["attempt"] == 2


def test_an_agent_does_not_outlive_its_supervisor(stage: Stage) -> None:
    key = stage.add("Unsupervised")
    stage.do(brood=True, stubborn=True)
    stage.run()
    agent = process_table.look_up(stage.started(key, 1))
    assert agent is not None
    before = stage.processes()

    os.kill(agent.parent, signal.SIGKILL)

    stage.started(key, 2)
    until(lambda: not before & stage.processes(), "all of the first run to be gone")
    stage.go()
    assert stage.is_completed(key)
    assert stage.client.history(key)[0]["error_class"] in ("crash", None)  # or proven gone by another look


def test_an_agent_whose_supervisor_is_killed_ends_without_help_of_the_runner(stage: Stage) -> None:
    key = stage.add("Alone")
    stage.do(stubborn=True)
    runner = stage.run()
    agent = process_table.look_up(stage.started(key))
    assert agent is not None
    runner.kill(signal.SIGSTOP)  # so that nobody else can

    os.kill(agent.parent, signal.SIGKILL)

    until(lambda: process_table.look_up(agent.pid) is None, "the agent to be gone")
    runner.kill(signal.SIGKILL)


def test_what_an_agent_leaves_running_is_ended_with_it(stage: Stage) -> None:
    key = stage.add("Untidy")
    stage.do(brood=True)
    stage.go()

    stage.run("--once").ends()

    assert stage.is_completed(key)
    assert stage.processes() == set()


def test_with_bwrap_nothing_is_left_even_where_the_supervisor_is_killed_too(stage: Stage, bwrap: str) -> None:
    key = stage.add("Walled in")
    stage.do(brood=True, stubborn=True)
    runner = stage.run("--bwrap")
    stage.started(key)
    supervisors = stage.supervisors()
    assert len(supervisors) == 2

    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)  # so that neither can act
    runner.kill(signal.SIGKILL)
    for pid in supervisors:
        os.kill(pid, signal.SIGKILL)

    assert stage.nothing_left()


def test_with_bwrap_an_agent_works_as_without(stage: Stage, bwrap: str) -> None:
    key = stage.add("Walled in")
    stage.do(tenure=[["progress", "from inside"]])
    stage.go()

    stage.run("--bwrap", "--once").ends()

    assert stage.is_completed(key)
    assert (stage.control / "calls" / key).read_text().startswith("0 ")


def test_with_bwrap_a_killed_agent_is_a_crash(stage: Stage, bwrap: str) -> None:
    key = stage.add("Killed inside", max_attempts=1)
    stage.do(says=[], exit=137)
    stage.go()

    stage.run("--bwrap", "--once").ends(8)

    assert stage.client.history(key)[0]["error_class"] == "crash"
