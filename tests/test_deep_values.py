"""JSON from outside that is nested too deep is refused or skipped; it ends no command, runner or server."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.agents import transcript_text, transcript_usage
from tenure.agents.runner import agent_output, conclusion
from tenure.cli import option_kinds, sources
from tenure.client.transports import http_messages
from tenure.core.errors import InvalidInput
from tenure.server import gateway
from tenure.spawners import gateway_wire

LEVELS = 100_000
LIST = "[" * LEVELS + "]" * LEVELS
OBJECT = '{"task":' * LEVELS + "1" + "}" * LEVELS

SKIPPED: dict[str, Callable[[], Any]] = {
    "an agent's line": lambda: agent_output.event_of(OBJECT),
    "a line of a transcript": lambda: transcript_text.readable(OBJECT),
    "an answer to a spawn": lambda: gateway_wire.session_of(LIST.encode()),
    "a server's answer": lambda: http_messages._decoded(http_messages.Reply(200, LIST.encode(), {})),
}
TEXT: dict[str, Callable[[], Any]] = {
    "an agent's last message": lambda: conclusion._json(LIST),
    "a sample of a trigger": lambda: sources._value(LIST),
}
REFUSED: dict[str, Callable[[], Any]] = {
    "a result of the command line": lambda: option_kinds.json_value(LIST),
    "a request to a gateway": lambda: gateway._decoded(f'{{"x": {LIST}}}'.encode(), gateway_wire.SpawnRequest, "spawn"),
    "a spawn": lambda: gateway_wire.spawn_request(f'{{"x": {OBJECT}}}'.encode()),
}


@pytest.mark.parametrize("reads", SKIPPED.values(), ids=SKIPPED)
def test_what_is_nested_too_deep_is_skipped(reads: Callable[[], Any]) -> None:
    assert reads() is None


@pytest.mark.parametrize("reads", TEXT.values(), ids=TEXT)
def test_what_is_nested_too_deep_is_text(reads: Callable[[], Any]) -> None:
    assert reads() == LIST


@pytest.mark.parametrize("reads", REFUSED.values(), ids=REFUSED)
def test_what_is_nested_too_deep_is_refused(reads: Callable[[], Any]) -> None:
    with pytest.raises((InvalidInput, ArgumentTypeError)):
        reads()


def test_a_transcript_is_read_past_a_line_that_is_nested_too_deep(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_text(f'{OBJECT}\n{{"type": "assistant"}}\n')
    assert list(transcript_usage._lines(str(path))) == [{"type": "assistant"}]
