"""The page about running agents: each of its commands, with the real CLIs and the mock model."""

from __future__ import annotations

import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agents.clis import CLIS
from tests.agents.install import ROOT, NotInstalled, installed
from tests.agents.script import Say
from tests.agents.stage import Stage, staged
from tests.docs import sessions
from tests.servers.fixtures import missing

PAGE = ROOT / "docs" / "how-to" / "run-agents.md"
AGENTS = ("claude", "codex", "gemini")
PATIENCE = 240.0
WORKER = f"""#!{sys.executable}
import json
print(json.dumps({{"result": "worked", "summary": "by a command"}}))
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    try:
        programs = [installed(name) for name in AGENTS]
    except NotInstalled as reason:
        missing(str(reason))
    sessions.environment(tmp_path)  # writes bin/tenure
    with ExitStack() as ends:
        stage = ends.enter_context(
            staged(CLIS["claude"], [tmp_path / "bin", *programs], tmp_path, [Say("It is done.")])
        )
        for name in AGENTS:
            stage.variables |= CLIS[name].settle(stage.home, stage.model.url)
            stage.variables |= CLIS[name].trust(stage.home, stage.folder)
        yield stage


def tenure(stage: Stage, *words: str) -> str:
    ran = stage.run("tenure", *words)
    assert ran.code == 0, ran.out + ran.err
    return ran.out


@pytest.mark.agents
@pytest.mark.every_agent
@pytest.mark.nightly
def test_every_command_of_the_page_works_off_tasks(stage: Stage) -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    worker = stage.folder / "worker.py"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    tenure(stage, "init")
    stage.run("git", "add", "-A")
    assert stage.run("git", "commit", "-qm", "a worker").code == 0
    lines = [line.partition("  #")[0] for line in block.splitlines()]
    assert len(lines) == 5
    added = done = 0
    for line in lines:
        for title in ("One", "Two"):
            tenure(stage, "add", title, "--track", "B")
        added += 2
        done = done + 1 if "--once" in line else added
        run = stage.begin(*shlex.split(line))
        ends = "--once" in line or "--until-empty" in line
        end = time.monotonic() + PATIENCE
        while f"✓ {done} completed" not in tenure(stage, "status"):
            assert run.poll() is None or ends, (line, run.communicate())
            assert time.monotonic() < end, (line, tenure(stage, "list"), stage.kill(run))
            time.sleep(0.2)
        if not ends:
            run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=60)
        assert run.returncode in (0, 130), (line, said)
