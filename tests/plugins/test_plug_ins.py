"""An installed package brings a verb, an agent type, a store, a validator, artifacts and a sink."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.core.errors import InvalidInput

SAMPLE = Path(__file__).parent / "sample"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SAMPLE))


class Shell:
    """Commands in processes of their own, with the package on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        hidden = ("TENURE_", "CLAUDE", "CODEX", "GEMINI", "OPENCODE", "COPILOT", "ROBOT")
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        self.environ |= {"PYTHONPATH": str(SAMPLE), "HOME": str(folder), "TENURE_STATE": str(folder / "state")}

    def __call__(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "tenure", *words], cwd=self.folder, env=self.environ | environ,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    assert shell("init").returncode == 0
    return shell


def test_a_verb_of_a_plug_in_is_run_and_listed(shell: Shell) -> None:
    assert shell("deploy", "staging").stdout == "deploying to staging\n"
    assert "Deploy to staging" in shell("list").stdout
    assert "\n  deploy\n" in shell("help", "--all").stdout
    assert "to which environment" in shell("deploy", "-h").stdout
    assert "did you mean deploy" in shell("deplyo").stderr


def test_a_plug_in_replaces_no_verb_of_ours(shell: Shell) -> None:
    shell("add", "Work")
    assert "is yours" in shell("claim").stdout


def test_an_agent_type_of_a_plug_in_is_set_up_recognised_and_run(shell: Shell) -> None:
    assert "generic" in shell("whoami", ROBOT="1", TENURE_ROLE="agent").stdout  # nobody has set it up yet
    done = shell("setup", "robot")
    assert done.returncode == 0, done.stderr
    assert "tenure" in (shell.folder / "AGENTS.md").read_text()
    said = shell("whoami", ROBOT="1", ROBOT_SESSION="r-1").stdout
    assert "type robot (ROBOT is set)" in said
    assert "session  r-1 (from ROBOT_SESSION)" in said
    folder = shell.folder / "bin"
    folder.mkdir()
    program = folder / "robot"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho done by a robot\n")
    program.chmod(0o755)
    shell("add", "Work")
    ran = shell("run", "--agent", "robot", "--once", PATH=f"{folder}:{shell.environ['PATH']}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "done by a robot" in shell("show", "A-001").stdout


def test_the_verbs_that_agents_call_all_day_look_for_no_plug_in(shell: Shell) -> None:
    shell("add", "Work")
    script = "import sys; from tenure.cli.main import main; main(['claim', '--json']); "
    script += "sys.exit('importlib.metadata' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=shell.folder, env=shell.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("installed")
def test_stores_validators_artifacts_and_sinks_come_by_their_names(tmp_path: Path) -> None:
    from tenure.artifacts.open_artifacts import open_artifacts
    from tenure.client import Client
    from tenure.sinks.open_sink import open_sink
    from tenure.sinks.port import Message
    from tenure.validators.known import names, validator

    with Client(f"sample://{tmp_path}/s.db", "p", create=True) as client:
        client.init()
        assert client.add("Work").outcome == "CREATED"
    assert "polite" in names()
    assert validator("polite").name == "polite"
    assert type(open_artifacts(f"sample://{tmp_path}/bytes")).__module__ == "tenure_sample"
    sink = open_sink(f"sample://{tmp_path}/sent")
    assert sink.send([Message(id="1", name="evt.task.ready.v1", body=b"{}")], 1.0) == 1
    assert (tmp_path / "sent").read_text() == "evt.task.ready.v1\n"


@pytest.mark.usefixtures("installed")
def test_a_plug_in_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import tenure_sample  # type: ignore[import-not-found]  # on the path of this test alone

    from tenure.agents.agent_types import plugged_in

    monkeypatch.setattr(tenure_sample, "robot", lambda: 1 / 0)
    with pytest.raises(InvalidInput, match="tenure_sample:robot failed: division by zero"):
        plugged_in("robot")
