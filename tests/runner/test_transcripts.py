"""`tenure logs`: what an agent said, for people; live while it runs, and from the store afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.agents.runner.clis import KNOWN
from tenure.agents.transcript_text import readable
from tests.runner.conftest import Stage

SAMPLES = Path(__file__).parents[1] / "agents" / "samples"


@pytest.mark.parametrize("agent", [name for name in KNOWN if name != "command"])
def test_the_words_and_tool_calls_of_each_cli_are_shown(agent: str) -> None:
    lines = (SAMPLES / agent / "done.jsonl").read_text().splitlines()
    said = [readable(json.dumps({"at": 0, "from": "agent", "text": line})) for line in lines]
    shown = "\n".join(text for text in said if text)
    assert shown.count("All done.") == 1
    assert "echo hello > written.txt" in shown if agent != "codex" else shown  # that sample of Codex calls no tool


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"from": "agent", "text": "plain words"}', "plain words"),
        ('{"from": "runner", "text": "it starts"}', "[runner] it starts"),
        ('{"from": "agent", "text": "{\\"type\\": \\"assistant\\", \\"message\\": 3}"}', None),
        ('{"from": "agent", "text": "{\\"type\\": \\"unheard-of\\"}"}', None),
        ("half a li", None),
    ],
)
def test_what_is_not_known_is_left_out_and_never_an_error(line: str, text: str | None) -> None:
    assert readable(line) == text


def logs(stage: Stage, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "tenure", "logs", *words]
    return subprocess.Popen(command, cwd=stage.folder, env=stage.environ, stdout=subprocess.PIPE, text=True)


def test_a_transcript_is_followed_until_its_claim_ends(stage: Stage) -> None:
    key = stage.add("Talk")
    stage.do(key, says=["the last words"])
    runner = stage.run("--once")
    stage.started(key)
    with logs(stage, key, "-f") as follower:
        assert follower.stdout is not None
        give_up = threading.Timer(60, follower.kill)
        give_up.start()
        lines: Iterator[str] = iter(follower.stdout.readline, "")
        assert "generation 1: Talk" in next(lines)  # while the agent works
        stage.go()
        runner.ends()
        rest = "".join(lines)
        give_up.cancel()
    assert follower.returncode == 0
    assert "the last words" in rest


def test_the_transcript_comes_from_the_store_where_the_file_is_gone(stage: Stage) -> None:
    key = stage.add("Talk")
    stage.do(key, says=["the last words"])
    stage.go()
    stage.run("--once").ends()
    (stage.home / "transcripts" / "default" / key / "gen-1.jsonl").unlink()
    assert "the last words" in logs(stage, key).communicate(timeout=60)[0]
    missing = logs(stage, key, "--generation", "7")
    missing.communicate(timeout=60)
    assert missing.returncode == 4
