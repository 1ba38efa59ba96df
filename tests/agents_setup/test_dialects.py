"""Each agent's payloads are read, and each is answered in the shape that it was seen to act upon."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tenure.agents import dialects, hooks
from tenure.agents.hook_memory import hook_state
from tenure.agents.recipes.setup_record import inserted

PASCAL = dialects.read(b'{"hook_event_name": "PreToolUse", "session_id": "U"}')
CAMEL = dialects.read(b'{"sessionId": "U"}', "preToolUse")
GEMINI = dialects.read(b'{"hook_event_name": "BeforeTool", "session_id": "U"}')
NESTED = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "why"}


NESTED_TOLD = {"hookEventName": "PreToolUse", "additionalContext": "x"}
FLAT = {"permissionDecision": "deny", "permissionDecisionReason": "why"}


@pytest.mark.parametrize(
    ("agent", "event", "text", "denied"),
    [
        ("claude", PASCAL, {"hookSpecificOutput": NESTED_TOLD}, {"hookSpecificOutput": NESTED}),
        ("codex", PASCAL, {"hookSpecificOutput": NESTED_TOLD}, {"hookSpecificOutput": NESTED}),
        (
            "gemini", GEMINI, {"hookSpecificOutput": {**NESTED_TOLD, "hookEventName": "BeforeTool"}},
            {"decision": "deny", "reason": "why"},
        ),
        ("copilot", CAMEL, {"additionalContext": "x"}, FLAT),
        ("copilot", PASCAL, {"additionalContext": "x"}, {"hookSpecificOutput": NESTED}),
    ],
)  # fmt: skip
def test_each_agent_is_answered_in_its_own_shape(
    agent: str, event: dialects.Event, text: dict[str, Any], denied: dict[str, Any]
) -> None:
    assert dialects.text_for(agent, event, "x") == text
    assert dialects.deny(agent, event, "why") == denied


@pytest.mark.parametrize(
    ("agent", "word"), [("claude", "block"), ("codex", "block"), ("gemini", "deny"), ("copilot", "block")]
)
def test_each_agent_is_asked_to_go_on_in_its_own_word(agent: str, word: str) -> None:
    assert dialects.go_on(agent, "why") == {"decision": word, "reason": "why"}


def test_a_payload_is_read_however_its_fields_are_spelt() -> None:
    snake = {
        "hook_event_name": "AfterTool",
        "session_id": "U",
        "cwd": "/x",
        "tool_name": "write_file",
        "tool_input": {"a": 1},
    }
    camel = {
        "sessionId": "U",
        "cwd": "/x",
        "toolName": "create",
        "toolArgs": {"a": 1},
        "toolResult": {"big": "y" * 9000},
    }
    one, two = dialects.read(json.dumps(snake).encode()), dialects.read(json.dumps(camel).encode(), "postToolUse")
    assert (one.kind, one.session, one.folder, one.tool, json.loads(one.input)) == (
        "after",
        "U",
        "/x",
        "write_file",
        {"a": 1},
    )
    assert (two.kind, two.session, two.folder, two.tool, json.loads(two.input)) == (
        "after",
        "U",
        "/x",
        "create",
        {"a": 1},
    )


def test_a_hook_that_says_whose_it_is_is_believed_against_inherited_variables() -> None:
    """Codex, started from the shell of Claude Code by a program that hides its name."""
    environ = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "outer", "USER": "ann"}
    agent, who = hooks.recognise(environ, PASCAL, hooks.HookOptions(caller="codex"))
    assert (agent, who.type, who.session, who.role) == ("codex", "codex", "U", "agent")


# --- what hooks remember ------------------------------------------------------------------------------------


def together(count: int, work: Any) -> None:
    """Run `work(n)` in so many threads at once, switching as often as can be."""
    begin = threading.Barrier(count)

    def run(number: int) -> None:
        begin.wait(30)
        work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)


def is_first(path: str, event: str) -> bool:
    with hook_state(path) as state:
        return state.is_first(event, 0.0, has_id=True)


def test_of_hooks_at_the_same_time_none_forgets_what_another_has_seen(tmp_path: Path) -> None:
    path = str(tmp_path / "hooks" / "session")
    first = is_first(path, "made")
    together(6, lambda n: [is_first(path, f"event {n} {m}") for m in range(10)])
    seen = set(json.loads(Path(path).read_text())["seen"])
    assert first
    assert seen == {"made", *(f"event {n} {m}" for n in range(6) for m in range(10))}


def test_of_hooks_for_one_event_exactly_one_is_the_first(tmp_path: Path) -> None:
    answers: list[bool] = []
    path = str(tmp_path / "hooks" / "session")
    together(8, lambda _: answers.append(is_first(path, "the event")))
    assert sorted(answers) == [False] * 7 + [True]


def test_a_torn_or_foreign_memory_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_text('{"seen": ')
    assert is_first(str(path), "x")
    assert not is_first(str(path), "x")


def test_what_was_no_insertion_is_not_remembered_as_one() -> None:
    assert inserted("abc", ["axc"]) is None
    assert inserted("abc", ["ab"]) is None
    assert inserted("abc", ["abXc", "abXYc"]) is not None


# --- as recorded from the CLIs themselves -------------------------------------------------------------------

SAMPLES = Path(__file__).parents[1] / "agents" / "samples"
RECORDED = [
    (path.parent.name, json.loads(line))
    for path in sorted(SAMPLES.glob("*/hooks.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]


def test_every_recorded_payload_is_read() -> None:
    kinds: dict[str, set[str | None]] = {}
    for agent, call in RECORDED:
        if agent == "opencode":  # its plugin makes payloads of its own
            continue
        event = dialects.read(json.dumps(call["payload"]).encode())
        kinds.setdefault(agent, set()).add(event.kind)
        assert event.session
        assert event.folder
        if event.kind in (dialects.BEFORE_EDIT, dialects.AFTER_TOOL):
            assert event.tool
            assert event.id
    wanted = {dialects.START, dialects.BEFORE_EDIT, dialects.AFTER_TOOL, dialects.STOP, dialects.END}
    assert set(kinds) == {"claude", "codex", "copilot", "gemini"}
    assert [agent for agent, found in kinds.items() if wanted - found] == []
