"""Two runners in one checkout: the second leaves the first its files, and no two agents have one name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenure.agents.runner.neighbours import joining
from tenure.process_table import described
from tests.runner.conftest import Stage, until


@pytest.fixture(autouse=True)
def _in_a_repository(stage: Stage) -> None:
    stage.repository()


def folder_of(stage: Stage, key: str) -> Path:
    return Path(json.loads((stage.control / "environ" / key).read_text())["CWD"])


def test_the_second_runner_uses_worktrees_and_other_names_and_says_so(stage: Stage) -> None:
    first, second = stage.add("First"), stage.add("Second")
    stage.do(first, writes={"first.txt": "1\n"})
    stage.do(second, writes={"second.txt": "2\n"})
    alone = stage.run("--until-empty", "--name", "claude")
    stage.started(first)
    beside = stage.run("--until-empty", "--name", "claude")
    stage.started(second)

    assert folder_of(stage, first) == stage.folder
    assert folder_of(stage, first) == stage.folder
    assert folder_of(stage, second).parent == stage.home / "worktrees"
    assert (stage.client.show(first)["agent"], stage.client.show(second)["agent"]) == ("claude-1", "claude-2")
    line = (
        f"another runner (pid {alone.pid}, claude-1) works in this checkout: claude-2 gets a git worktree for each task"
    )
    assert beside.log.count(line) == 1
    assert "works in this checkout" not in alone.log

    stage.go()
    alone.ends()
    beside.ends()
    assert stage.git("show", "main:second.txt") == "2"
    assert (stage.folder / "first.txt").read_text() == "1\n"
    assert [file.name for file in (stage.home / "runners").iterdir()] == ["lock"]


def test_runners_that_begin_at_once_share_neither_checkout_nor_name(stage: Stage) -> None:
    keys = [stage.add(f"Task {number}") for number in range(3)]
    for _ in keys:
        stage.run("--once", "--name", "claude")
    for key in keys:
        stage.started(key)
    assert sorted(str(stage.client.show(key)["agent"]) for key in keys) == ["claude-1", "claude-2", "claude-3"]
    assert [folder_of(stage, key) for key in keys].count(stage.folder) == 1
    stage.go()
    for run in stage.runs:
        run.ends()


def test_nobody_joins_while_another_does(tmp_path: Path) -> None:
    joined = threading.Event()

    def join() -> None:
        with joining(str(tmp_path)):
            joined.set()

    thread = threading.Thread(target=join)
    with joining(str(tmp_path)):
        thread.start()
        assert not joined.wait(0.3)
    thread.join(30)
    assert joined.is_set()


def test_a_runner_that_was_killed_leaves_checkout_and_name_to_the_next(stage: Stage) -> None:
    key = stage.add("First")
    killed = stage.run("--once", "--name", "claude")
    stage.started(key)
    killed.kill()
    stage.nothing_left()
    stage.go()
    said = stage.run("--once", "--name", "claude").ends()
    assert "works in this checkout" not in said
    assert folder_of(stage, key) == stage.folder
    assert stage.client.history(key)[-1]["agent"] == "claude-1"


def test_a_second_runner_that_shall_share_the_checkout_does(stage: Stage) -> None:
    first, second = stage.add("First"), stage.add("Second")
    stage.run("--once", "--name", "claude")
    stage.started(first)
    beside = stage.run("--once", "--name", "codex", "--shared")
    stage.started(second)
    assert folder_of(stage, second) == stage.folder
    assert "works in this checkout: codex-1 works there too" in beside.log
    stage.go()
    for run in stage.runs:
        run.ends()


def test_a_runner_gives_the_checkout_to_an_agent_that_claims_there(stage: Stage) -> None:
    first = stage.add("First")
    theirs, second = stage.add("Theirs"), stage.add("Second", after=[first])
    stage.do(second, writes={"second.txt": "2\n"})
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=stage.folder) as other:
        until(lambda: os.path.realpath(f"/proc/{other.pid}/cwd") == os.path.realpath(stage.folder), "it to be there")
        runner = stage.run("--name", "claude", "--max-tasks", "2")
        stage.started(first)
        stage.client.claim(theirs, process=described(other.pid))
        stage.go()
        said = runner.ends()
        assert other.stdin is not None
        other.stdin.close()
    assert folder_of(stage, second).parent == stage.home / "worktrees"
    assert said.count("works in this checkout: the next task gets a git worktree, landed on main") == 1
    assert stage.git("show", "main:second.txt") == "2"
