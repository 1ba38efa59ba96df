"""`--worktree` and `--land`: each claim in a checkout of its own, its commits on the branch they are for."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.runner.conftest import Stage, until


@pytest.fixture(autouse=True)
def _in_a_repository(stage: Stage) -> None:
    stage.repository()


def test_each_claim_has_a_worktree_and_a_branch_with_its_generation(stage: Stage) -> None:
    key = stage.add("Write it")
    stage.do(writes={"made.txt": "by KEY\n"}, tenure=[["progress", "from the worktree"]])
    stage.go()

    stage.run("--worktree", "--once").ends()

    data = stage.client.show(key)["result"]["data"]
    branch = f"tenure/{key}/gen1"
    assert (data["branch"], data["made"]) == (branch, key)
    assert data["commit"] == stage.git("rev-parse", branch)
    assert stage.git("show", f"{branch}:made.txt") == f"by {key}"
    assert not (stage.folder / "made.txt").exists()
    assert stage.git("status", "--porcelain") == ""
    environ = json.loads((stage.control / "environ" / key).read_text())
    assert Path(environ["CWD"]).parent == stage.home / "worktrees"
    assert (stage.control / "calls" / key).read_text().startswith("0 ")
    assert f"on branch {branch}" in (stage.control / "prompts" / key).read_text()


def test_what_lands_is_there_for_the_next_task(stage: Stage) -> None:
    first = stage.add("First")
    second = stage.add("Second", after=[first])
    stage.do(first, writes={"first.txt": "1\n"})
    stage.do(second, writes={"second.txt": "2\n"})
    stage.go()

    stage.run("--land", "--until-empty", "-n", "2").ends()

    assert (stage.folder / "first.txt").read_text() == "1\n"
    assert (stage.folder / "second.txt").read_text() == "2\n"
    assert stage.client.show(second)["result"]["data"]["branch"] == "main"
    assert stage.client.show(second)["landings"][0]["branch"] == "main"
    # landed worktrees are removed with their branches
    assert stage.git("branch", "--list", "tenure/*") == ""
    assert list((stage.home / "worktrees").iterdir()) == []


def test_several_agents_get_worktrees_and_land_without_being_asked(stage: Stage) -> None:
    first = stage.add("First")
    second = stage.add("Second", after=[first])
    stage.do(first, writes={"first.txt": "1\n"})
    stage.do(second, writes={"second.txt": "2\n"})
    stage.go()

    said = stage.run("--until-empty", "-n", "2").ends()

    assert "2 agents, a git worktree for each task, landed on main" in said
    assert (stage.folder / "first.txt").read_text() == "1\n"
    environ = json.loads((stage.control / "environ" / second).read_text())
    assert Path(environ["CWD"]).parent == stage.home / "worktrees"
    assert stage.client.show(second)["landings"][0]["branch"] == "main"


def test_shared_keeps_several_agents_in_one_checkout_and_says_so(stage: Stage) -> None:
    key = stage.add("First")
    stage.go()
    said = stage.run("--until-empty", "-n", "2", "--shared").ends()
    assert f"2 agents, all in {stage.folder}" in said
    assert json.loads((stage.control / "environ" / key).read_text())["CWD"] == str(stage.folder)


def test_several_agents_with_nothing_to_land_on_are_refused(stage: Stage) -> None:
    stage.git("checkout", "-q", "--detach")
    said = stage.run("--until-empty", "-n", "2").ends(2)
    assert "name one with --onto, or give --shared" in said


def test_a_task_without_commits_only_hands_in_its_words(stage: Stage) -> None:
    key = stage.add("Think")
    stage.go()

    stage.run("--land", "--once").ends()

    assert stage.client.show(key)["result"]["data"] == {"made": key}
    assert stage.client.show(key).get("landings", []) == []


def test_work_that_conflicts_is_tried_again_from_the_new_tip(stage: Stage) -> None:
    first, second = stage.add("First"), stage.add("Second")
    for key in (first, second):
        stage.do(key, writes={"README": "KEY\n"})
    runner = stage.run("--land", "--until-empty", "-n", "2")
    stage.started(first)
    stage.started(second)
    stage.go(first)
    assert stage.is_completed(first)

    stage.go(second)

    runner.ends()
    assert stage.is_completed(second)
    lost, landed = stage.client.history(second)
    assert lost["error_class"] == "merge_conflict"
    assert "README" in lost["error"]
    assert landed["result_accepted"]
    assert (stage.folder / "README").read_text() == f"{second}\n"
    assert stage.outbox() == []


def test_an_interrupted_agents_changes_are_on_its_branch(stage: Stage) -> None:
    key = stage.add("Half")
    runner = stage.run("--worktree", agent="sh -c 'echo half > half.txt; echo wrote; sleep 1000'")
    transcript = stage.home / "transcripts" / "default" / key / "gen-1.jsonl"
    until(lambda: transcript.exists() and "wrote" in transcript.read_text(), "the agent to write")

    for said in ("draining", "ending"):
        runner.kill(signal.SIGINT)
        runner.says(said)
    runner.ends(130)

    kept = stage.client.show(key)["checkpoint"]["data"]["notes"]
    assert stage.git("show", f"{kept['branch']}:half.txt") == "half"
    assert kept["commit"] == stage.git("rev-parse", kept["branch"])


def test_a_dirty_worktree_of_a_failed_agent_stays(stage: Stage) -> None:
    key = stage.add("Fails", max_attempts=1)
    stage.do(writes={"precious.txt": "!\n"}, exit=1, says=[])
    stage.go()

    log = stage.run("--worktree", "--once").ends(8)

    (tree,) = (stage.home / "worktrees").iterdir()
    assert (tree / "precious.txt").read_text() == "!\n"
    assert "stays: uncommitted changes" in log
    assert stage.state(key) == "dead_lettered"


def test_without_a_repository_nothing_is_claimed(stage: Stage) -> None:
    key = stage.add("Untouched")
    (stage.folder / ".git").rename(stage.folder.parent / "git-aside")
    log = stage.run("--worktree", "--once").ends(8)
    assert "git" in log
    assert stage.client.history(key) == []


@pytest.mark.parametrize("words", [("--land",), ("--worktree",)])
def test_work_for_an_older_description_is_given_back_with_the_difference(stage: Stage, words: tuple[str, ...]) -> None:
    key = stage.add("Paint it", description="Paint it red.")
    stage.do(writes={"made.txt": "red\n"})
    runner = stage.run(*words, "--once")
    stage.started(key)
    assert stage.client.update(key, description="Paint it blue.").ok
    before = stage.git("rev-parse", "main")
    stage.go()
    runner.ends(None)

    assert (stage.state(key), stage.git("rev-parse", "main")) == ("ready", before)
    assert stage.lineage(key) == [(1, "STOPPED", None)]
    assert "+Paint it blue." in json.dumps(stage.client.show(key)["checkpoint"]["data"])
    assert "its description was changed" in runner.log
