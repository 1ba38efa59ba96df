"""Usage that hooks read from the transcripts of agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tenure.agents.dialects import read
from tenure.agents.own_usage import unnamed_transcript
from tenure.agents.transcript_usage import totals_between
from tenure.client import Client
from tests.agents.record import SAMPLES
from tests.agents_setup.claude_code import Agent


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def said(id: str, at: float, output: int, fresh: int = 10) -> str:
    """A line of Claude Code: a block of the message `id`."""
    usage = {"input_tokens": fresh, "cache_read_input_tokens": 5, "output_tokens": output}
    message = {"id": id, "model": "claude-sonnet-4-5", "usage": usage}
    return json.dumps({"type": "assistant", "sessionId": "s", "timestamp": stamp(at), "message": message}) + "\n"


def test_a_message_counts_once_by_its_id_and_only_in_its_period(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(said("m0", 50, 100) + said("m1", 100, 1) + said("m1", 100, 7) + said("m2", 200, 3) + "{half a li")
    (total,) = totals_between(str(path), 100)
    assert (total.model, total.fresh, total.cached, total.output) == ("claude-sonnet-4-5", 20, 10, 10)
    (total,) = totals_between(str(path), 100, 200)
    assert total.output == 7
    assert totals_between(str(tmp_path / "none"), 0) == ()
    assert totals_between(str(tmp_path), 0) == ()


def test_the_running_totals_of_codex_are_taken_apart(tmp_path: Path) -> None:
    def line(at: float, **payload: Any) -> str:
        return json.dumps({"timestamp": stamp(at), "type": "event_msg", "payload": payload}) + "\n"

    def count(at: float, input: int, cached: int, output: int) -> str:
        total = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output}
        return line(at, type="token_count", info={"total_token_usage": total})

    path = tmp_path / "rollout.jsonl"
    path.write_text(line(1, model="gpt-5.1-codex") + count(10, 100, 20, 5) + count(20, 300, 120, 15))
    (total,) = totals_between(str(path), 15)
    assert (total.model, total.fresh, total.cached, total.output) == ("gpt-5.1-codex", 100, 100, 10)


@pytest.mark.parametrize(("agent", "model"), [("gemini", "gemini-2.5-pro"), ("copilot", "gpt-4.1")])
def test_recorded_transcripts_of_others_are_read(agent: str, model: str) -> None:
    path = SAMPLES / agent / "transcript.jsonl"
    (total,) = totals_between(str(path), 0)  # of two calls: 140 tokens in, 40 of them cached, 20 out
    assert (total.model, total.fresh, total.cached, total.output) == (model, 200, 80, 40)
    assert totals_between(str(path), 1e11) == ()


def test_recorded_messages_of_opencode_are_read_as_its_plug_in_writes_them(tmp_path: Path) -> None:
    calls = [json.loads(line)["payload"] for line in (SAMPLES / "opencode" / "hooks.jsonl").read_text().splitlines()]
    kinds = [call.get("type") for call in calls]
    told = [(n, call["properties"]["info"]) for n, call in enumerate(calls) if call.get("type") == "message.updated"]
    path = tmp_path / "usage.jsonl"
    path.write_text("".join(json.dumps({"type": "message.updated", "info": info}) + "\n" for _, info in told))
    (total,) = (one for one in totals_between(str(path), 0) if one.model != "unknown")
    assert (total.model, total.fresh, total.cached, total.output) == ("m1", 200, 80, 40)
    assert max(number for number, _ in told) < kinds.index("session.idle")  # so it is complete when the agent stops


@pytest.mark.parametrize("agent", ["gemini", "copilot"])
def test_the_hooks_of_others_name_their_transcript(agent: str) -> None:
    calls = [json.loads(line) for line in (SAMPLES / agent / "hooks.jsonl").read_text().splitlines()]
    named = {read(json.dumps(call["payload"]).encode()).transcript for call in calls} - {""}
    assert named
    assert all(path.endswith(".jsonl") for path in named)


def test_the_transcript_of_copilot_is_found_by_its_session(tmp_path: Path) -> None:
    calls = [json.loads(line)["payload"] for line in (SAMPLES / "copilot" / "hooks.jsonl").read_text().splitlines()]
    session, named = next((c["session_id"], c["transcript_path"]) for c in calls if c.get("transcript_path"))
    path = tmp_path / Path(named).relative_to("/home/agent")
    environ = {"HOME": str(tmp_path)}
    assert unnamed_transcript("copilot", session, environ) == ""
    path.parent.mkdir(parents=True)
    path.touch()
    assert unnamed_transcript("copilot", session, environ) == str(path)
    assert unnamed_transcript("claude", session, environ) == ""
    assert unnamed_transcript("copilot", f"../session-state/{session}", environ) == ""


def usage_of(owner: Client, task: str) -> int:
    return int((owner.show(task).get("usage") or {"output": 0})["output"])


def test_a_tool_call_books_the_usage_since_the_claim_once(agent: Agent, owner: Client, tmp_path: Path) -> None:
    owner.add("one")
    agent.claim("A-001")
    now = owner.now() / 1e6
    path = tmp_path / "t.jsonl"
    path.write_text(said("before", now - 3600, 1000) + said("m1", now + 1, 7))
    for _ in range(2):
        agent("Stop", transcript_path=str(path))
    assert usage_of(owner, "A-001") == 7
    path.write_text(path.read_text() + said("m2", now + 2, 3))
    agent("PostToolUse", tool_name="Bash", transcript_path=str(path))
    assert usage_of(owner, "A-001") == 10


def test_a_message_counts_for_the_claim_before_it(agent: Agent, owner: Client, tmp_path: Path) -> None:
    owner.add("one"), owner.add("two")
    agent.claim("A-001")
    agent.claim("A-002")
    first, second = (owner.show(name)["claimed_at"] / 1e6 for name in ("A-001", "A-002"))
    path = tmp_path / "t.jsonl"
    path.write_text(said("m1", (first + second) / 2, 7) + said("m2", second + 1, 3))
    agent("Stop", transcript_path=str(path))
    assert (usage_of(owner, "A-001"), usage_of(owner, "A-002")) == (7, 3)


def test_the_runner_s_own_total_wins(agent: Agent, owner: Client, tmp_path: Path) -> None:
    owner.add("one")
    agent.claim("A-001")
    path = tmp_path / "t.jsonl"
    path.write_text(said("m1", owner.now() / 1e6 + 1, 7))
    agent.environ = agent.environ | {"TENURE_PROMPT_FILE": "/prompt"}
    agent("Stop", transcript_path=str(path))
    assert usage_of(owner, "A-001") == 0


@pytest.mark.parametrize("words", [("done", "-s", "x"), ("fail", "-m", "x"), ("release",), ("ask", "red or blue?")])
def test_a_command_that_ends_a_short_claim_books_its_usage_before(
    agent: Agent, owner: Client, tmp_path: Path, words: tuple[str, ...]
) -> None:
    owner.add("one")
    path = tmp_path / "t.jsonl"
    path.write_text(said("m0", 0, 100))
    agent("PostToolUse", tool_name="Bash", transcript_path=str(path))  # renews and books at most every 30 s
    agent.claim("A-001")
    path.write_text(path.read_text() + said("m1", owner.now() / 1e6 + 1, 7))
    agent("PostToolUse", tool_name="Bash", transcript_path=str(path))
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "tenure", *words], cwd=agent.folder, env={**os.environ, **agent.environ},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert usage_of(owner, "A-001") == 7
    assert "late" not in owner.show("A-001")["usage"]
