"""What a person sees while `tenure run` works: a line for each agent on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys

from tenure.agents.runner.activity import wait_of
from tenure.core.outcomes import Outcome
from tests.cli.terminal import Terminal
from tests.runner.conftest import AGENT, Stage, until


def terminal(stage: Stage, *words: str, columns: int = 100, lines: int = 30) -> Terminal:
    command = f"{sys.executable} {AGENT} {stage.control}"
    run = [sys.executable, "-P", "-m", "tenure", "run", "--agent", command, "--name", "ann", *words]
    return Terminal(run, environ=stage.environ, columns=columns, lines=lines, cwd=stage.folder)


def last_lines(screen: str) -> list[str]:
    return [line for line in screen.split("\n") if line.strip()]


def test_each_agent_has_a_line_with_its_task_and_its_last_words(stage: Stage) -> None:
    first, second = stage.add("Paint the door"), stage.add("Oil the hinges")
    stage.do(says=["reading the plan", "all set"])
    with terminal(stage, "-n", "3") as shown:
        shown.until(lambda screen: re.search(r"^ann-\d  A-001  Paint the door  \d+ s", screen, re.MULTILINE))
        shown.until(lambda screen: re.search(r"^ann-\d  A-002  Oil the hinges  \d+ s", screen, re.MULTILINE))
        screen = shown.until(lambda screen: "waits: 2 tasks are held by agents" in screen)
        # The lines of the agents are the last ones, and each is there once.
        assert sorted(line.split()[0] for line in last_lines(screen)[-3:]) == ["ann-1", "ann-2", "ann-3"]
        stage.go()
        screen = shown.until(lambda screen: screen.count("completed after") == 2)
        screen = shown.until(lambda screen: screen.count("waits: the queue is empty") == 3)
        assert [line.split()[0] for line in last_lines(screen)[-3:]] == ["ann-1", "ann-2", "ann-3"]
        shown.press("\x03")
        shown.until(lambda screen: "2 completed in" in screen)
    assert "waits:" not in shown.screen.text  # removed at the end; what was said stays
    assert stage.state(first) == stage.state(second) == "completed"


def test_a_small_terminal_shows_as_many_agents_as_fit(stage: Stage) -> None:
    with terminal(stage, "-n", "9", columns=40, lines=8) as shown:
        screen = shown.until(lambda screen: "… and 3 more" in screen)
        assert all(len(line) < 40 for line in screen.split("\n"))


def test_without_a_terminal_a_waiting_agent_says_once_what_it_waits_for(stage: Stage) -> None:
    runner = stage.run("--name", "ann", "-n", "2")
    runner.says("ann-1 waits for a task: the queue is empty; `tenure add` and `tenure plan apply` create tasks")
    runner.says("ann-2 waits for a task: the queue is empty")
    key = stage.add("Work")
    stage.started(key)
    runner.says("waits for a task: 1 task is held by an agent")
    stage.go()
    assert stage.is_completed(key)
    until(lambda: runner.log.count("the queue is empty") == 4, "both to wait again")
    assert "\x1b" not in runner.log


def test_it_says_what_it_waits_for() -> None:
    def text(**fields: object) -> str:
        return wait_of(Outcome(outcome="NO_TASK", message="nothing to claim for agent ann", **fields)).text  # type: ignore[arg-type]

    assert text(counts={"waiting": 3, "held": 1, "ready_for_others": 0}, retry_in=90.0) == (
        "3 tasks wait for others, a retry or their time, 1 task is held by an agent; "
        "the next change is due in 1 min 30 s"
    )
    assert text(counts={"ready_for_others": 2}) == "2 ready tasks are not for this agent"
    assert text() == "nothing to claim for agent ann"  # while the agent cools off
    stopped = Outcome(outcome="NO_TASK", counts={}, message="nothing to claim; claiming is stopped", hint="go")
    assert wait_of(stopped).text == "nothing to claim; claiming is stopped"
