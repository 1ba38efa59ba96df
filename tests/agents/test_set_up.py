"""After `tenure setup` the agent knows what to do: instructions, skill, tools and hooks reach the real CLI."""

import json
import re
from collections.abc import Callable, Sequence

import pytest

from tests.agents.clis import Cli
from tests.agents.script import Mcp, Say, Shell, Usage, Wait
from tests.agents.stage import Stage
from tests.agents.views import looked_up, session_of, set_up

TOOLS = ("claim", "show", "update", "finish", "add", "message", "reserve")
RECEIPT = re.compile(r"[A-Z]+-\d+@\d+:[0-9a-f]{40}")


def last_receipt(results: Sequence[str]) -> str:
    found = RECEIPT.findall("\n".join(results))
    assert found, results
    return found[-1]


@pytest.mark.every_agent
def test_instructions_skill_tools_and_what_there_is_to_do_reach_the_model(stage: Callable[..., Stage]) -> None:
    agent = stage(Say("Understood."))
    set_up(agent, "Write a haiku about herons")

    ran = agent.start("Say hello.")

    assert ran.code == 0, ran.err
    first = agent.model.asked[0]
    shown = json.dumps(first.body)
    assert "claim a task before you work on it" in first.words
    assert "hippopotamus" in first.words, "the rules that were there before"
    assert "Claim, work on and submit shared tasks" in shown, "the skill"
    names = shown if agent.cli.name == "claude" else " ".join(first.tool_names)
    for tool in TOOLS:
        assert re.search(rf"tenure[_-]*{tool}\b", names), (tool, first.tool_names)
    assert "Write a haiku about herons" in first.words, "the hook at the session's start"


def test_tasks_are_claimed_over_mcp_and_finished_there_or_in_the_shell(stage: Callable[..., Stage], cli: Cli) -> None:
    agent = stage(
        *looked_up(cli.name, "claim", "finish"),
        Mcp("claim"),
        Mcp("finish", lambda results: {"receipt": last_receipt(results), "outcome": "done", "summary": "by tool"}),
        Mcp("claim"),
        Shell("tenure done -s 'by command'"),
        Say("All done."),
    )
    tenure = set_up(agent, "Write a haiku", "Write a sonnet")

    ran = agent.start("Work on the tasks.")

    assert ran.code == 0, ran.err
    (first,), (second,) = tenure("history", "A-001"), tenure("history", "A-002")
    for held in (first, second):
        assert (held["generation"], held["result_accepted"]) == (1, True), agent.model.last.results
        assert held["agent"].startswith(f"{agent.cli.name}-")
    assert first["session"] == second["session"]
    assert session_of(agent.cli.name, ran) in {first["session"], None}
    summaries = [tenure("show", key)["result"]["summary"] for key in ("A-001", "A-002")]
    assert summaries == ["by tool", "by command"]


@pytest.mark.every_agent
def test_hooks_renew_the_lease_and_give_back_what_is_held_at_the_end(stage: Callable[..., Stage]) -> None:
    agent = stage(Shell("tenure claim"), Shell("true"), Say("That is enough."))
    tenure = set_up(agent, "Write a haiku")

    agent.start("Work on the next task.")

    (held,) = tenure("history", "A-001")
    assert held["renewals"] >= 1, (held, agent.model.last.results)
    assert held["released_at"], (held, agent.model.last.results)
    assert tenure("show", "A-001")["state"] == "ready"


@pytest.mark.every_agent
@pytest.mark.every_agent
def test_what_a_short_claim_used_is_booked_before_it_ends(stage: Callable[..., Stage]) -> None:
    steps = ("tenure claim", "echo one", "echo two", "tenure done -s short")
    agent = stage(*map(Shell, steps), Say("Done."), usage=Usage(fresh=100, cached=40, output=20))
    tenure = set_up(agent, "Write a haiku")

    ran = agent.start("Work on the task.")

    assert ran.code == 0, ran.err
    used = tenure("show", "A-001").get("usage") or {}
    assert used.get("output") in (40, 60), (
        used
    )  # the answers after the claim; whether the last counts, the agent decides
    assert "late" not in used


def test_the_task_of_a_killed_agent_is_taken_over_at_once(stage: Callable[..., Stage], cli: Cli) -> None:
    agent = stage(*looked_up(cli.name, "claim"), Mcp("claim"), Wait())
    tenure = set_up(agent, "Write a haiku")

    child = agent.begin(*agent.cli.words("Work on the next task.", agent.folder))
    has_claimed = agent.model.is_waiting.wait(60)
    said = agent.kill(child)
    assert has_claimed, said
    agent.run("tenure", "run", "--agent", "echo a haiku", "--once")

    dead, living = tenure("history", "A-001")
    assert dead["agent"].startswith(f"{agent.cli.name}-")
    assert dead["release_reason"] == "EXPIRED", "not its lease: that lasts half an hour"
    assert (living["generation"], living["result_accepted"]) == (2, True)


@pytest.mark.every_agent
def test_after_the_clicks_of_a_person_nothing_is_missing(stage: Callable[..., Stage]) -> None:
    agent = stage()
    tenure = set_up(agent)

    answer = tenure("setup", "--check", agent.cli.name)

    assert [gate["text"] for gate in answer["gates"] if not gate["is_open"]] == []


@pytest.mark.every_agent
def test_what_set_up_wrote_is_taken_out_to_the_byte(stage: Callable[..., Stage]) -> None:
    agent = stage()
    tenure = set_up(agent)
    assert agent.run("git", "status", "--short").out != ""

    tenure("setup", "--remove", agent.cli.name)

    assert agent.run("git", "status", "--short").out == ""
