"""What the hooks of an agent do at each event, on a real store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.agents import hooks
from tenure.client import Client
from tests.agents_setup.claude_code import ENVIRON, SESSION, Agent
from tests.cli.conftest import Tenure

# --- start --------------------------------------------------------------------------------------------------


def test_a_session_is_primed_and_known_from_its_start(agent: Agent, owner: Client) -> None:
    owner.add("Write the parser")
    text = agent.text_of("SessionStart", source="startup")
    assert "You are agent claude-5555" in text
    assert "A-001 (normal) Write the parser" in text
    assert [(a["name"], a["type"]) for a in owner.agents()] == [("claude-5555", "claude")]


def test_after_a_compaction_the_brief_is_repeated_with_its_checkpoint(agent: Agent, owner: Client) -> None:
    owner.add("Write the parser")
    agent("SessionStart", source="startup")
    agent.client().checkpoint(agent.claim(), {"next_action": "write the tests"})
    assert "next action: write the tests" in agent.text_of("SessionStart", source="compact")


def test_what_an_agent_has_registered_is_not_overwritten(agent: Agent, owner: Client) -> None:
    agent("SessionStart", source="startup")
    agent.client().register(type="claude", capabilities=("python",))
    agent("SessionStart", source="compact")
    assert owner.agents()[0]["capabilities"] == ("python",)


def test_without_a_store_nothing_is_said(tmp_path: Path) -> None:
    payload = json.dumps({"hook_event_name": "SessionStart", "session_id": SESSION, "cwd": str(tmp_path)}).encode()
    assert hooks.answer(payload, hooks.HookOptions(), ENVIRON, str(tmp_path), time.time) == {}
    assert list(tmp_path.iterdir()) == []


# --- after a tool -------------------------------------------------------------------------------------------


def lease_until(client: Client, task: str) -> int:
    return int(client.show(task)["lease_until"])


def test_a_tool_call_renews_the_sessions_claims(agent: Agent, owner: Client) -> None:
    for title in ("one", "two", "theirs"):
        owner.add(title)
    agent.claim("A-001")
    agent.claim("A-002")
    agent.client(session="another").claim("A-003")
    before = [lease_until(owner, f"A-00{n}") for n in (1, 2, 3)]
    agent("PostToolUse")
    after = [lease_until(owner, f"A-00{n}") for n in (1, 2, 3)]
    assert after[0] > before[0]
    assert after[1] > before[1]
    assert after[2] == before[2]


@pytest.fixture
def hours_pass(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """From then on the hooks' store is so many seconds ahead."""

    def pass_by(seconds: float) -> None:
        def later(_: hooks.Call) -> Client:
            return agent.client(clock=lambda: round((time.time() + seconds) * 1e6))

        monkeypatch.setattr(hooks.Call, "client", later)

    return pass_by


def test_a_renewal_by_a_hook_is_one_in_the_background(
    agent: Agent, owner: Client, hours_pass: Callable[[float], None]
) -> None:
    """Nobody presented the receipt: the engine bounds how long that goes on."""
    owner.add("one")
    agent.claim(lease=6500)
    began = time.time()
    hours_pass(6000)
    agent("PostToolUse")
    assert lease_until(owner, "A-001") / 1e6 - began < 7300  # two hours after the claim, and not 6500 s from now


def test_soon_after_one_renewal_there_is_no_other(agent: Agent, owner: Client) -> None:
    owner.add("one")
    agent.claim()
    agent("PostToolUse")
    first = lease_until(owner, "A-001")
    agent.later(hooks.QUIET - 1)
    agent("PostToolUse")
    assert lease_until(owner, "A-001") == first
    agent.later(2)
    agent("PostToolUse")
    assert lease_until(owner, "A-001") > first


def test_the_same_call_counts_once(agent: Agent, owner: Client) -> None:
    owner.add("one")
    agent.claim()
    agent("PostToolUse", tool_use_id="same")
    first = lease_until(owner, "A-001")
    agent.later(3600)
    agent("PostToolUse", tool_use_id="same")
    assert lease_until(owner, "A-001") == first


def test_an_event_without_an_id_counts_once_at_a_time(agent: Agent, owner: Client) -> None:
    assert agent("SessionStart", source="startup")
    assert agent("SessionStart", source="startup") == {}  # fired by another settings file
    agent.later(60)
    assert agent("SessionStart", source="startup")


def test_mail_is_reported_once_and_more_mail_again(agent: Agent, owner: Client) -> None:
    agent("SessionStart", source="startup")
    owner.send("hello", "claude-5555")
    assert agent.text_of("PostToolUse") == "tenure: 1 unread message; read with `tenure inbox`."
    agent.later(60)
    assert agent("PostToolUse") == {}
    owner.send("again", "claude-5555")
    agent.later(60)
    assert agent.text_of("PostToolUse").startswith("tenure: 2 unread messages")
    agent.client().read()
    agent.later(60)
    assert agent("PostToolUse") == {}
    owner.send("third", "claude-5555")
    agent.later(60)
    assert agent.text_of("PostToolUse").startswith("tenure: 1 unread message;")


def test_a_stale_generation_is_reported_once_and_its_receipt_has_ended(agent: Agent, owner: Client) -> None:
    owner.add("Write the parser")
    agent.claim()
    agent.taken_over("A-001")
    text = agent.text_of("PostToolUse")
    assert text.startswith("tenure: your generation 1 of A-001-write-the-parser is stale: another agent holds it now.")
    assert "do not commit" in text
    assert agent.receipts.live() == []
    agent.later(60)
    assert agent("PostToolUse") == {}


@pytest.mark.parametrize("verb", ["submit", "release", "fail"])
def test_a_claim_that_the_session_is_about_to_put_away_is_not_called_stale(
    agent: Agent, owner: Client, verb: str
) -> None:
    """The command has its answer, and its process has not yet written that down when the hook renews."""
    owner.add("Write the parser")
    receipt = agent.claim()
    getattr(agent.client(), verb)(receipt, *(["x"] if verb != "release" else []))
    assert len(agent.receipts.live()) == 1
    assert "stale" not in json.dumps(agent("PostToolUse"))


def test_an_expired_lease_is_reported_once_with_the_next_step(
    agent: Agent, owner: Client, hours_pass: Callable[[float], None]
) -> None:
    owner.add("one")
    agent.claim(lease=30)
    hours_pass(3600)
    assert "your lease ran out. If you still work on it, `tenure claim A-001`" in agent.text_of("PostToolUse")
    assert len(agent.receipts.live()) == 1  # a finished result may still be submitted
    agent.later(60)
    assert agent("PostToolUse") == {}


@pytest.mark.parametrize(
    ("do", "text"),
    [
        (lambda owner: owner.cancel("A-001"), "it was cancelled"),
        (lambda owner: owner.pause("A-001"), "Save a checkpoint"),
        (lambda owner: owner.pause("A-001", drain=True), "a person asks you to pause"),
    ],
)
def test_what_a_person_does_to_the_task_is_reported(
    agent: Agent, owner: Client, do: Callable[[Client], object], text: str
) -> None:
    owner.add("one")
    agent.claim()
    do(owner)
    assert text in agent.text_of("PostToolUse")


def test_an_agent_that_starts_no_session_after_a_compaction_is_primed_with_its_next_tool(agent: Agent) -> None:
    agent("SessionStart", source="startup")
    agent("PostToolUse")
    assert agent("PreCompact") == {}
    assert "You are agent claude-5555" in agent.text_of("PostToolUse")
    agent.later(60)
    assert agent("PostToolUse") == {}


def test_a_hook_renews_the_claims_of_every_agent_in_its_session(agent: Agent, owner: Client) -> None:
    """Sub-agents that go by names of their own share the session, and its hooks."""
    owner.add("one")
    owner.add("two")
    agent.claim("A-001", lease=60)
    granted = agent.client(agent="kit").claim("A-002", lease=60)
    assert granted.task
    agent.receipts_of("kit").keep(granted.task["id"], granted.task["key"], str(granted.receipt))
    before = [owner.show(key)["lease_until"] for key in ("A-001", "A-002")]
    agent.later(60)
    assert agent("PostToolUse") == {}
    after = [owner.show(key)["lease_until"] for key in ("A-001", "A-002")]
    assert all(new > old for old, new in zip(before, after, strict=True))


# --- stop and end -------------------------------------------------------------------------------------------


def test_an_agent_that_stops_with_a_task_is_asked_to_go_on_once(agent: Agent, owner: Client) -> None:
    owner.add("Write the parser")
    agent.claim()
    assert agent("Stop") == {}  # nobody has asked for that
    agent.wants("keep_working")
    agent.later(60)
    answer = agent("Stop")
    assert answer["decision"] == "block"
    assert "you still hold A-001-write-the-parser" in answer["reason"]
    agent.later(60)
    assert agent("Stop", stop_hook_active=True) == {}
    agent.later(60)
    assert agent("Stop") == {}  # for agents that do not say so: at most every other time


def test_an_agent_below_a_runner_is_not_asked_to_go_on_since_its_end_submits(agent: Agent, owner: Client) -> None:
    owner.add("Write the parser")
    agent.claim()
    agent.wants("keep_working")
    agent.environ["TENURE_PROMPT_FILE"] = "/some/prompt.md"
    assert agent("Stop") == {}


def test_an_agent_without_a_live_claim_may_stop(agent: Agent, owner: Client) -> None:
    agent.wants("keep_working")
    assert agent("Stop") == {}
    owner.add("one")
    agent.claim()
    agent.taken_over("A-001")
    agent.later(60)
    assert agent("Stop") == {}


def test_the_end_of_a_session_gives_its_tasks_back(agent: Agent, owner: Client) -> None:
    owner.add("one")
    agent("SessionStart", source="startup")
    agent.claim()
    assert agent("SessionEnd", reason="other") == {}
    assert owner.show("A-001")["state"] == "ready"
    assert owner.history("A-001")[0]["release_reason"] == "VOLUNTARY"
    assert list(agent.receipts.all()) == []
    assert list((agent.home / "hooks").iterdir()) == []


def test_a_session_that_somebody_else_has_named_is_theirs_to_end(agent: Agent, owner: Client) -> None:
    """`tenure run` claims for the agent, and submits its result."""
    owner.add("one")
    agent.environ["TENURE_SESSION"] = "runner-1"
    assert agent.client(session="runner-1").claim().ok
    agent("SessionStart", source="startup")
    agent("SessionEnd", reason="other")
    assert owner.show("A-001")["state"] == "claimed"


def test_the_end_of_an_idle_session_is_not_an_error(agent: Agent) -> None:
    assert agent("SessionEnd", reason="other") == {}


# --- whatever comes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Notification", "UserPromptSubmit", "SubagentStop", "", "Nonsense"])
def test_events_that_do_not_concern_us_are_passed_over(agent: Agent, name: str) -> None:
    assert agent(name) == {}
    assert not (agent.home / "hooks").exists()


def test_hooks_at_the_same_time_lose_nothing(tenure: Tenure, agent: Agent, owner: Client) -> None:
    owner.add("one")
    agent.claim()
    owner.send("hello", "claude-5555")
    said = {"session_id": SESSION, "cwd": str(agent.folder), "hook_event_name": "PostToolUse", "tool_name": "Bash"}
    started = [
        tenure_hook(tenure, json.dumps({**said, "tool_use_id": f"parallel_{number}"})) for number in range(6)
    ]  # fmt: skip
    answers = [process.communicate(timeout=60) for process in started]
    assert [process.returncode for process in started] == [0] * 6
    assert {err for _, err in answers} == {""}
    kept = json.loads((agent.home / "hooks" / SESSION).read_text())
    assert {f"after Bash parallel_{number}" for number in range(6)} == set(kept["seen"])
    assert 1 <= sum("1 unread" in out for out, _ in answers) <= 6
    assert not (agent.home / "hook.log").exists()


def tenure_hook(tenure: Tenure, payload: str) -> Any:
    import subprocess

    process = subprocess.Popen(
        tenure.command("hook"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tenure.folder,
        env=tenure.environ | ENVIRON,
    )
    assert process.stdin
    process.stdin.write(payload)
    process.stdin.close()
    process.stdin = None
    return process


def test_what_the_command_line_says_goes_before_what_the_hook_finds(
    tenure: Tenure, agent: Agent, owner: Client
) -> None:
    owner.add("one")
    assert agent.client(agent="bo", session="mine").claim().ok
    payload = json.dumps({"session_id": SESSION, "cwd": "/", "hook_event_name": "SessionStart"})
    said = tenure("hook", "--agent", "bo", "--session", "mine", "--from", "claude", "--json", stdin=payload)
    assert "You are agent bo" in said.out
    assert "A-001-one (generation 1" in said.out
    ended = payload.replace("SessionStart", "SessionEnd")
    assert tenure("hook", "--session", "mine", "--from", "claude", "--json", stdin=ended).json == {}
    assert owner.show("A-001")["state"] == "claimed"  # the process that named the session ends it
    assert tenure("hook", "--project", "none", "--json", stdin=payload).json == {}  # which is noted, and no failure
