"""The command line for tests: in process, and in processes of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import pytest

from tenure.agents.identity import KNOWN
from tenure.cli.main import main
from tenure.locations import find_folder
from tests.servers import forking

# What would make a test depend on who runs it.
IDENTITY = {m for agent in KNOWN.values() for m in (*agent.markers, agent.session) if m}


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout; anything else there is a failure."""
        return json.loads(self.out)


class Tenure:
    """`tenure(...)` runs a command in this process, `tenure.process(...)` in one of its own.

    `process` forks, unless it is given a variable of the interpreter (PYTHON…): a start takes longer than
    most commands. A test about parent processes sets `is_forked = False`.
    """

    is_forked = forking.is_possible

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.environ = environ

    def __call__(self, *words: object, stdin: str = "") -> Said:
        out, err = io.StringIO(), io.StringIO()
        before = sys.stdin
        sys.stdin = io.StringIO(stdin)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = main(["-C", str(self.folder), *(str(word) for word in words)])
        except SystemExit as end:  # argparse's own help
            code = int(end.code or 0)
        finally:
            sys.stdin = before
        return Said(code, out.getvalue(), err.getvalue())

    def command(self, *words: object) -> list[str]:
        return [sys.executable, "-P", "-m", "tenure", *(str(word) for word in words)]

    def process(self, *words: object, stdin: str = "", cwd: Path | None = None, **environ: str) -> Said:
        if self.is_forked and not any(name.startswith("PYTHON") for name in environ):
            return self._forked(words, stdin, cwd or self.folder, self.environ | environ)
        done = subprocess.run(
            self.command(*words), input=stdin, capture_output=True, text=True, check=False,
            cwd=cwd or self.folder, env=self.environ | environ, timeout=120,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    def _forked(self, words: Sequence[object], stdin: str, folder: Path, environ: dict[str, str]) -> Said:
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin.encode())
            given.seek(0)
            code = forking.forker().start([str(word) for word in words], environ, folder, given, out, err).wait(120)
            out.seek(0)
            err.seek(0)
            return Said(code, out.read().decode(), err.read().decode())

    def start(self, *words: object, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
            env=self.environ | environ,
        )  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def with_git(git: Path) -> None:
    """A bare Debian has no git; these tests work in repositories."""


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment that says nothing about who runs the tests."""
    for name in [*IDENTITY, *(n for n in os.environ if n.startswith("TENURE_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "ann")
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("NO_COLOR", "1")
    return dict(os.environ)


@pytest.fixture
def bare(tmp_path: Path, environ: dict[str, str]) -> Tenure:
    """A folder without a store."""
    assert find_folder(str(tmp_path)) is None, "a store lies above the tests' folder"
    return Tenure(tmp_path, environ)


@pytest.fixture
def tenure(bare: Tenure) -> Tenure:
    """A folder that `tenure init` has been run in."""
    assert bare("init", "--project", "default").code == 0
    return bare


@pytest.fixture
def add(tenure: Tenure) -> Callable[..., str]:
    """Adds a task and gives its short key."""

    def add_one(title: str, *words: object) -> str:
        said = tenure("add", title, *words, "--json")
        assert said.code == 0, said.err
        return str(said.json["ref"])

    return add_one
