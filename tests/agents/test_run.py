"""`tenure run` starts the real CLI: the task is done by its first generation, and what it cost is booked."""

import re
from collections.abc import Callable
from decimal import Decimal

import pytest

from tests.agents.clis import DOLLARS_A_MILLION, Cli
from tests.agents.script import Mcp, Refuse, Results, Say, Shell, Usage
from tests.agents.stage import Stage
from tests.agents.views import at_work, looked_up, set_up

ONE_ANSWER = Usage(fresh=120, cached=30, output=25)
TELL_MONEY = {"claude", "opencode"}


def test_a_task_is_done_by_the_agent_that_run_started_and_what_it_used_is_booked(stage: Callable[..., Stage]) -> None:
    agent = stage(Shell("tenure progress 'half way' --percent 50"), Say("A haiku."), usage=ONE_ANSWER)
    tenure = at_work(agent, "Write a haiku")

    ran = agent.run("tenure", "run", "--agent", agent.cli.name, "--once")

    assert ran.code == 0, ran.err + ran.out
    assert "Write a haiku" in agent.model.last.words
    task = tenure("show", "A-001")
    assert task["state"] == "completed"
    assert task["result"]["summary"] == "A haiku."
    (held,) = tenure("history", "A-001")
    assert (held["generation"], held["result_accepted"]) == (1, True)
    reported = [event for event in tenure("log", "--task", "A-001") if "half way" in str(event)]
    assert reported, ("its shell did not report for the task", agent.model.last.results)

    used = {"fresh": 2 * ONE_ANSWER.fresh, "cached": 2 * ONE_ANSWER.cached, "output": 2 * ONE_ANSWER.output}
    assert {name: task["usage"][name] for name in used} == used
    if agent.cli.name in TELL_MONEY:
        dollars = sum(used[name] * price for name, price in DOLLARS_A_MILLION.items()) / 1_000_000
        assert Decimal(task["usage"]["cost_usd"]) == dollars


def test_from_a_shell_in_the_checkout_the_agent_works_in_its_worktree_and_its_own_submission_is_landed(
    stage: Callable[..., Stage],
) -> None:
    agent = stage(Shell("pwd > where.txt; echo 1 > made.txt"), Shell("tenure done -s mine"), Say("It is made."))
    tenure = set_up(agent, "Make it")
    for words in (["add", "-A"], ["commit", "-qm", "set up"]):
        assert agent.run("git", *words).code == 0

    ran = agent.run("tenure", "run", "--agent", agent.cli.name, "--land", "--once")

    said = (ran.out + ran.err, agent.model.last.results)
    assert ran.code == 0, said
    assert (agent.folder / "made.txt").exists(), said
    assert (agent.folder / "where.txt").read_text().strip().endswith("/.tenure/worktrees/A-001-gen1")
    assert "DENIED_RUNNER" not in "".join(agent.model.last.results), said
    # Codex cannot commit inside its sandbox: its last message is submitted, with the same files.
    assert tenure("show", "A-001")["result"]["summary"] == ("It is made." if agent.cli.name == "codex" else "mine")
    landed = agent.run("git", "diff", "--name-only", "HEAD^1", "HEAD").out.split()
    assert landed == ["made.txt", "where.txt"], "a file that nobody changed was committed"
    assert agent.run("git", "status", "--porcelain").out == ""


def test_a_tool_call_of_the_agent_submits_its_commits_too(stage: Callable[..., Stage], cli: Cli) -> None:
    """Its shell tells the receipt: Codex does not hand the runner's session on to MCP servers."""
    held = Shell("tenure whoami --receipt --json")

    def finish(results: Results) -> dict[str, str]:
        found = re.search(r"A-001@1:[0-9a-f]+", results[-1])
        assert found is not None, results
        return {"receipt": found[0], "outcome": "done", "summary": "mine"}

    lookup = looked_up(cli.name, "finish")
    agent = stage(*lookup, Shell("echo 1 > made.txt"), held, Mcp("finish", finish), Say("It is made."))
    tenure = set_up(agent, "Make it")
    for words in (["add", "-A"], ["commit", "-qm", "set up"]):
        assert agent.run("git", *words).code == 0

    ran = agent.run("tenure", "run", "--agent", agent.cli.name, "--land", "--once")

    said = (ran.out + ran.err, agent.model.last.results)
    assert "DENIED_RUNNER" not in "".join(agent.model.last.results), said
    assert (agent.folder / "made.txt").exists(), said
    assert tenure("show", "A-001")["result"]["summary"] == "mine"


@pytest.mark.every_agent
def test_a_rate_limit_gives_the_attempt_back(stage: Callable[..., Stage]) -> None:
    agent = stage(Refuse(429, retry_after=1))
    tenure = at_work(agent, "Write a haiku")

    agent.run("tenure", "run", "--agent", agent.cli.name, "--once")

    (held,) = tenure("history", "A-001")
    assert held["error_class"] == "rate_limit", held
    assert held["counted"] is False


@pytest.mark.every_agent
def test_a_refused_key_stops_the_runner_and_costs_the_task_nothing(stage: Callable[..., Stage]) -> None:
    agent = stage(Refuse(401))
    tenure = at_work(agent, "Write a haiku")

    ran = agent.run("tenure", "run", "--agent", agent.cli.name, "--until-empty")

    assert ran.code == 12, ran.out + ran.err
    (held,) = tenure("history", "A-001")
    assert held["error_class"] == "auth_failure"
    assert held["counted"] is False
    assert tenure("show", "A-001")["state"] == "ready"
