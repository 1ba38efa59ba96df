"""Under a runner that lands, the agent's own submission has its commits; and nothing is landed before its verdict."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.client import Client
from tests.runner.conftest import Stage, until
from tests.runner.test_usage import JSON

DONE = ["done", "-s", "b.py is committed"]
WRITE = "printf 'def b(): return 2\n' > b.py; git add -A; git -c user.name=a -c user.email=a@b commit -qm b"


@pytest.fixture(autouse=True)
def _in_a_repository(stage: Stage) -> None:
    stage.repository()


def calls(stage: Stage, key: str) -> str:
    return (stage.control / "calls" / key).read_text()


def on_main(stage: Stage) -> list[str]:
    return stage.git("ls-tree", "--name-only", "main").split()


def tenure(stage: Stage, *words: str) -> str:
    """What a person sees."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tenure", *words],
        cwd=stage.folder, env=stage.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


# --- the agent's own submission ---


@pytest.mark.parametrize("words", [("--land", "--until-empty"), ("-n", "2", "--until-empty")], ids=["land", "default"])
def test_an_agent_that_calls_done_submits_its_commits_and_they_are_on_main_for_the_next_task(
    stage: Stage, words: tuple[str, ...]
) -> None:
    first = stage.add("Write module")
    second = stage.add("Use module", after=[first])
    stage.do(first, shell=[WRITE, "echo more > c.py"], tenure=[["land"], DONE, DONE])
    stage.do(second, shell=["python3 -c 'import b' > used.txt 2>&1"])
    stage.go()

    said = stage.run(*words).ends()

    answers = [line.split()[:2] for line in calls(stage, first).splitlines() if line[:1].isdigit()]
    assert answers[0][0] == "7", answers
    assert [code for code, _ in answers[1:]] == ["0", "0"], answers
    assert f"{first}: landed on main as" in said
    assert {"b.py", "c.py", "used.txt"} <= set(on_main(stage))  # what it had not committed, too
    assert (stage.folder / "used.txt").read_text() == ""
    result = stage.client.show(first)["result"]
    assert result["summary"] == "b.py is committed"
    assert result["data"]["branch"] == "main"
    assert stage.lineage(first) == [(1, "SUBMITTED", True)]


def test_an_agent_that_calls_the_tool_finish_submits_its_commits(stage: Stage) -> None:
    key = stage.add("Write module")
    stage.do(key, shell=[WRITE], finish={"outcome": "done", "summary": "b.py is committed"})
    stage.go()

    stage.run("--land", "--once").ends()

    assert "DENIED_RUNNER" not in calls(stage, key)
    assert "b.py" in on_main(stage)
    assert stage.client.show(key)["result"]["summary"] == "b.py is committed"


def test_an_agent_that_hides_its_environment_submits_its_commits_too(stage: Stage) -> None:
    key = stage.add("Write module")
    hidden = "env -u TENURE_PROMPT_FILE -u TENURE_TASK python3 -P -m tenure done -s mine"
    stage.do(key, shell=[WRITE, hidden.replace("python3", sys.executable)])
    stage.go()
    stage.run("--land", "--once").ends()
    assert stage.client.show(key)["result"]["summary"] == "mine"
    assert "b.py" in on_main(stage)


def test_a_claim_that_was_lost_and_taken_again_submits_the_commits_of_the_same_worktree(stage: Stage) -> None:
    key = stage.add("Write module")
    stage.do(key, shell=[WRITE], tenure=[DONE])
    runner = stage.run("--land", "--once", "--lease", "1")
    stage.started(key)
    runner.kill(signal.SIGSTOP)
    until(lambda: stage.state(key) == "ready", "its lease to run out")
    runner.kill(signal.SIGCONT)
    runner.says("claimed again as generation 2")
    stage.go()
    runner.ends()
    assert stage.client.show(key)["result"]["generation"] == 2
    assert "b.py" in on_main(stage)


def test_without_landing_an_agent_may_submit_itself(stage: Stage) -> None:
    key = stage.add("Say it")
    stage.do(key, tenure=[["done", "-s", "its own words"]])
    stage.go()
    said = stage.run("--once").ends()
    assert "submitted with its receipt while the agent ran" in said
    assert stage.client.show(key)["result"]["summary"] == "its own words"


@pytest.mark.parametrize("words", [("--land",), ("--shared",)], ids=["lands", "does not land"])
def test_an_agent_claims_no_other_task_but_subtasks_of_its_own(stage: Stage, words: tuple[str, ...]) -> None:
    first, other = stage.add("First"), stage.add("Other")
    ref = stage.client.show(first)["ref"]
    stage.do(
        first,
        tenure=[["claim"], ["claim", other], ["spawn", "a part"], ["claim", f"{ref}::1"], ["release", f"{ref}::1"]],
    )
    stage.go()

    stage.run("--task", first, "--once", *words).ends()

    codes = [line.split()[:2] for line in calls(stage, first).splitlines() if line[:1].isdigit()]
    assert codes[:2] == [["7", "DENIED_RUNNER:"]] * 2, calls(stage, first)
    assert [code for code, _ in codes[2:]] == ["0", "0", "0"], calls(stage, first)
    assert stage.client.show(other)["generation"] == 0


def test_the_brief_of_a_session_below_a_runner_teaches_neither_claim_nor_done(stage: Stage) -> None:
    key, other = stage.add("First"), stage.add("Not for it")
    stage.do(key, tenure=[["prime"]])
    stage.go()
    stage.run("--task", key, "--once").ends()
    said = calls(stage, key)
    assert "submits your last message" in said
    assert "`tenure claim" not in said
    assert "end with" not in said
    assert other not in said


# --- the verdict comes first ---


def test_work_that_waits_for_a_review_stays_on_its_branch_and_everything_says_so(stage: Stage) -> None:
    key = stage.add("Reviewed", output={"validation": "review"})
    stage.do(key, writes={"made.txt": "1\n"})
    stage.go()

    said = stage.run("--land", "--once").ends()

    branch = f"tenure/{key}/gen1"
    assert f"submitted; waiting for review: approve or reject it; 1 commit on {branch} until then" in said
    assert stage.state(key) == "validating"
    assert "made.txt" not in on_main(stage)
    assert stage.git("show", f"{branch}:made.txt") == "1"
    assert not stage.client.show(key).get("landings")
    assert tenure(stage, "land", key).startswith("tenure: ")  # nobody lands it before its verdict

    with Client(str(stage.home / "tenure.db"), "default", agent="ann") as ann:
        ann.approve(key)
    assert stage.state(key) == "validating"
    assert f"{key}: landed on main as" in tenure(stage, "land", key)
    assert stage.state(key) == "completed"
    assert (stage.folder / "made.txt").read_text() == "1\n"
    assert tenure(stage, "todo") == "nothing waits for a person\n"
    assert tenure(stage, "worktree", "remove", "--ended").startswith("removed ")


def test_a_later_run_lands_what_was_approved_when_its_runner_had_gone(stage: Stage) -> None:
    key = stage.add("Reviewed", output={"validation": "review"})
    stage.do(key, writes={"made.txt": "1\n"})
    stage.go()
    stage.run("--land", "--once").ends()
    with Client(str(stage.home / "tenure.db"), "default", agent="ann") as ann:
        ann.approve(key)

    said = stage.run("--until-empty").ends()

    assert f"{key}: landed on main as" in said
    assert stage.state(key) == "completed"
    assert "made.txt" in on_main(stage)


def test_a_dirty_checkout_blocks_the_landing_and_runs_no_agent_again(stage: Stage) -> None:
    key = stage.add("Blocked")
    stage.do(key, writes={"README": "theirs\n"})
    stage.go()
    (stage.folder / "README").write_text("mine\n")

    said = stage.run("--land", "--once").ends(None)

    assert "waits to be landed on main" in said
    assert "README" in said
    assert stage.state(key) == "validating"
    assert tenure(stage, "land").startswith(f"{key}: waits to be landed on main")
    stage.git("checkout", "README")
    assert f"{key}: landed on main" in tenure(stage, "land")
    assert (stage.folder / "README").read_text() == "theirs\n"
    assert stage.lineage(key) == [(1, "SUBMITTED", True)]
    assert tenure(stage, "land") == "nothing waits to be landed in this repository\n"


@pytest.mark.parametrize(("program", "state"), [("true", "completed"), ("false", "dead_lettered")])
def test_a_test_that_runs_later_decides_what_comes_to_main(stage: Stage, program: str, state: str) -> None:
    (stage.folder / "tenure.toml").write_text(f'[commands.unit]\nargv = ["{program}"]\n')
    stage.git("add", "-A")
    stage.git("commit", "-qm", "tests")
    tenure(stage, "trust")
    output = {"validation": "test-pass", "settings": {"command": "unit"}}
    key = stage.add("Tested", output=output, max_attempts=1)
    stage.do(key, writes={"made.txt": "1\n"})
    stage.go()

    stage.run("--land", "--once").ends(0 if state == "completed" else 8)

    assert stage.state(key) == state
    assert ("made.txt" in on_main(stage)) == (state == "completed")


def test_an_output_that_the_contract_refuses_is_not_landed(stage: Stage) -> None:
    key = stage.add("Schema", output=JSON, max_attempts=1)
    stage.do(key, writes={"made.txt": "1\n"}, says=["not JSON"])
    stage.go()
    stage.run("--land", "--once").ends(8)
    assert stage.state(key) == "dead_lettered"
    assert "made.txt" not in on_main(stage)


def test_an_output_that_the_contract_accepts_is_landed(stage: Stage) -> None:
    key = stage.add("Schema", output=JSON)
    stage.do(key, writes={"made.txt": "1\n"}, says=['{"answer": 42}'])
    stage.go()
    stage.run("--land", "--once").ends()
    assert stage.state(key) == "completed"
    assert "made.txt" in on_main(stage)


# --- budgets ---


def test_work_that_was_finished_when_its_budget_paused_it_is_landed_and_accepted(stage: Stage) -> None:
    key = stage.add("Costs")
    stage.client.set_budget("project", usd="0.20", default_estimate="0.04")
    usage = ["usage", "add", "--model", "x", "--cost", "0.21"]
    stage.do(key, writes={"made.txt": "1\n"}, stubborn=True, tenure_first=[usage])
    runner = stage.run("--land", "--once", "--grace", "60")
    runner.says("pause: ")
    stage.go()
    said = runner.ends()

    assert "refused" not in said
    assert "made.txt" in on_main(stage)
    assert stage.lineage(key) == [(1, "PAUSED", True)]
    assert stage.state(key) == "completed"
    assert "finished work" not in tenure(stage, "todo")
    assert key not in tenure(stage, "todo")


def test_a_person_who_pauses_finished_work_holds_the_branch_and_keeps_its_commits(stage: Stage) -> None:
    key = stage.add("Held")
    stage.do(key, writes={"made.txt": "1\n"}, stubborn=True)
    runner = stage.run("--land", "--once", "--grace", "60")
    stage.started(key)
    stage.client.pause(key)
    runner.says("pause: ")
    stage.go()
    runner.ends(8)

    assert stage.state(key) == "paused"
    assert "made.txt" not in on_main(stage)
    kept = stage.client.show(key)["checkpoint"]["data"]["notes"]
    assert kept["branch"] == f"tenure/{key}/gen1"
    assert stage.git("show", f"{kept['commit']}:made.txt") == "1"
    assert Path(stage.home / "worktrees").exists()
