"""Who is a person: nobody in a process below a runner, a hook or an agent CLI, whatever its environment says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.processes import bounded_run
from tests.cli.conftest import Tenure

EMPTY = ("env", "-i", f"PATH={os.environ['PATH']}", f"PYTHONPATH={os.pathsep.join(sys.path)}")


def below_a_supervisor(tenure: Tenure, *words: str) -> str:
    done = bounded_run.run(list(words), cwd=tenure.folder, env=tenure.environ, seconds=60.0)
    return done.output.decode()


def emptied(tenure: Tenure, *words: object) -> list[str]:
    return [*EMPTY, f"HOME={os.environ['HOME']}", *tenure.command(*words)]


@pytest.mark.parametrize("around", [(), ("setsid", "--wait"), ("script", "--quiet", "--return", "--command")])
def test_no_person_speaks_below_a_supervisor(tenure: Tenure, around: tuple[str, ...]) -> None:
    """With an empty environment, in a new session, at a new terminal."""
    if around and not shutil.which(around[0]):
        pytest.skip(f"{around[0]} is not installed")
    words = emptied(tenure, "whoami", "--json")
    if around[:1] == ("script",):
        words = [" ".join(words), os.devnull]
    said = below_a_supervisor(tenure, *around, *words)
    assert '"role":"agent"' in said, said
    assert "supervisor_script, started this command" in said


def test_no_verdict_and_no_key_is_given_below_a_supervisor(tenure: Tenure) -> None:
    assert tenure("add", "Write the parser", "--validate", "review").code == 0
    assert tenure("claim", "A-001", "--agent", "ann", "--session", "s").code == 0
    assert tenure("done", "A-001", "--agent", "ann", "--session", "s").code == 0
    for words in (("approve", "A-001"), ("reject", "A-001", "-m", "no"), ("key", "create", "x", "--role", "owner")):
        said = below_a_supervisor(tenure, *emptied(tenure, *words, "--json"))
        assert '"code":"NOT_ALLOWED"' in said, said
    assert tenure("approve", "A-001").code == 0, "the person beside it may"


def test_an_agent_cli_is_known_once_one_of_its_commands_was_seen(tenure: Tenure, tmp_path: Path) -> None:
    """By its process, which later commands below it cannot hide."""
    cli = tmp_path / "bin" / "claude"
    cli.parent.mkdir()
    cli.write_text(
        '#!/bin/sh\nif [ "$1" = seen ]; then CLAUDECODE=1 "$2" -P -m tenure list >/dev/null; fi\nshift 2\n"$@"\n'
    )
    cli.chmod(0o755)
    asked = [sys.executable, *emptied(tenure, "whoami", "--json")]
    for mark, role in (("unseen", "owner"), ("seen", "agent")):
        done = subprocess.run(
            [str(cli), mark, *asked], cwd=tenure.folder, env=tenure.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert f'"role":"{role}"' in done.stdout, done
    assert tenure.process("whoami", "--json").json["role"] == "owner"
