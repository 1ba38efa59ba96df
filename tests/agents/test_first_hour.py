"""A new user's path, timed: the wheel, an empty environment, a repository, a plan of five, two real agent CLIs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agents.clis import CLIS
from tests.agents.install import ROOT, NotInstalled, installed
from tests.agents.script import Say
from tests.agents.stage import Stage, staged
from tests.servers.fixtures import missing

AGENTS = ("claude", "codex")
SUMMARY = "The treasure lies below the third palm tree."
PLAN = """\
name: treasure
tasks:
  - id: search
    title: Search for the treasure
    constraints: {agent_type: claude}
  - id: dig
    title: Dig it out
    depends_on: [search]
    constraints: {agent_type: codex}
  - id: count
    title: Count the coins
    depends_on: [dig]
    constraints: {agent_type: claude}
  - id: clean
    title: Clean the coins
    depends_on: [dig]
    constraints: {agent_type: codex}
  - id: report
    title: Report
    depends_on: [count, clean]
"""


class Times:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[what] = time.perf_counter() - began


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A repository in which both CLIs use one mock model; `tenure` is what the wheel installed."""
    try:
        programs = [installed(name) for name in AGENTS]
    except NotInstalled as reason:
        missing(str(reason))
    with ExitStack() as ends:
        path = [tmp_path / "venv" / "bin", *programs]
        stage = ends.enter_context(staged(CLIS["claude"], path, tmp_path, [Say(SUMMARY)]))
        stage.variables |= CLIS["codex"].settle(stage.home, stage.model.url)
        for name in AGENTS:
            stage.variables |= CLIS[name].trust(stage.home, stage.folder)
        yield stage


def built(folder: Path) -> Path:
    subprocess.run(
        [ROOT / ".x" / "bin" / "uv", "build", "--wheel", "--quiet", "--out-dir", folder, ROOT], check=True,
        capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path | str, venv: Path) -> None:
    uv = str(ROOT / ".x" / "bin" / "uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, venv], check=True, capture_output=True)
    environ = {**os.environ, "VIRTUAL_ENV": str(venv)}
    words = [uv, "pip", "install", "--quiet", "--constraints", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(words, check=True, capture_output=True, env=environ)


@pytest.mark.agents
@pytest.mark.every_agent
@pytest.mark.nightly
def test_a_new_user_has_two_agents_work_off_a_plan(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = Times()

    def tenure(*words: str) -> str:
        ran = stage.run("tenure", *words)
        assert ran.code == 0, ran.out + ran.err
        return ran.out

    with times.of("build the wheel"):
        wheel = built(tmp_path / "dist")
    with times.of("install it"):
        install(wheel, tmp_path / "venv")
    (metadata,) = (tmp_path / "venv").glob("lib/*/site-packages/tenure-*.dist-info/METADATA")
    assert "tenure demo  " in metadata.read_text()
    assert re.findall(r"\]\((?!https?://)[^)]*\)", metadata.read_text()) == []  # an index cannot follow those
    with times.of("init --agents all"):
        said = tenure("init", "--agents", "all")
    assert len(said.splitlines()) <= 15
    (stage.folder / "plan.yaml").write_text(PLAN)
    with times.of("plan apply"):
        tenure("plan", "apply", "plan.yaml")
    for words in (["git", "add", "-A"], ["git", "commit", "-qm", "Set up agents"]):
        assert stage.run(*words).code == 0
    with times.of("run -n 2, both agents"):
        runs = []
        for name in AGENTS:  # as in two terminals, one after the other
            runs.append(stage.begin("tenure", "run", "-n", "2", "--agent", name, "--until-empty"))
            while f"{name}-2" not in tenure("agents", "--json"):
                assert runs[-1].poll() is None, runs[-1].communicate()
        said_by = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said_by

    tasks: list[dict[str, Any]] = json.loads(tenure("list", "--json"))
    assert {task["state"] for task in tasks} == {"completed"}
    by = {task["title"]: task["result"]["agent"] for task in (_shown(stage, t["key"]) for t in tasks)}
    assert by["Search for the treasure"].startswith("claude")
    assert by["Dig it out"].startswith("codex")
    prompts = {title: words for title in by for asked in stage.model.asked if title in (words := asked.words)}
    assert SUMMARY not in prompts["Search for the treasure"].partition("Search for the treasure")[2]
    assert SUMMARY in prompts["Dig it out"]
    first = next(asked for asked in stage.model.asked if "Dig it out" in asked.words and asked.dialect == "responses")
    assert SUMMARY in first.words, "the second agent's prompt has the first one's summary"
    with capsys.disabled():
        whole = sum(times.seconds.values())
        print("\n" + "\n".join(f"{seconds:7.1f} s  {what}" for what, seconds in times.seconds.items()))
        print(f"{whole:7.1f} s  in all")


def _shown(stage: Stage, key: str) -> dict[str, Any]:
    ran = stage.run("tenure", "show", key, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found
