"""A repository, a home, a mock model and an agent CLI in them: everything that one headless run needs."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.agents.clis import Cli
from tests.agents.install import PLACE
from tests.agents.mock_model import MockModel, serve
from tests.agents.script import Step, Usage

# Not below the system's temporary folder: Codex refuses to sandbox commands with a home that lies there.
HOMES = PLACE / "homes"
LONGEST = 120  # seconds; the slowest needs about ten

# Variables of the agent that runs the tests, which an agent under test must not see.
KEPT = ("LANG", "LC_ALL", "TERM", "TMPDIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON objects it printed; other lines are passed over."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


@dataclass
class Stage:
    cli: Cli
    folder: Path
    home: Path
    path: str
    model: MockModel
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        # As an interactive shell in the checkout: a program may believe PWD more than the folder it was started in.
        shell = {"PWD": str(self.folder), "OLDPWD": str(self.home), "SHLVL": "1", "TERM": "xterm-256color"}
        return kept | shell | {"HOME": str(self.home), "PATH": self.path, "USER": "tester"} | self.variables

    def trust(self) -> None:
        self.variables |= self.cli.trust(self.home, self.folder)

    def start(self, prompt: str, *extra: str) -> Ran:
        """The CLI, headless, on a prompt, to its end."""
        return self.run(*self.cli.words(prompt, self.folder), *extra)

    def run(self, *words: str) -> Ran:
        """A command in the repository, with the agent's environment. Ended with all its children if it hangs."""
        child = self.begin(*words)
        try:
            out, err = child.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            out, err = self.kill(child)
            raise AssertionError(f"{words[0]} had not ended after {LONGEST} s.\n{out[-2000:]}\n{err[-2000:]}") from None
        return Ran(child.returncode, out, err)

    def begin(self, *words: str, output: IO[str] | None = None) -> subprocess.Popen[str]:
        """`output`: a file for what it prints. A process that prints much stops at a pipe that nobody reads."""
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.PIPE,
            stderr=output or subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def kill(self, child: subprocess.Popen[str]) -> tuple[str, str]:
        """No last word for it, nor for what it started in its own group; gives what it had printed."""
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate()


@contextmanager
def staged(
    cli: Cli, programs: Sequence[Path], place: Path, script: Sequence[Step], usage: Usage | None = None
) -> Iterator[Stage]:
    """A stage in `place`, with `programs` first on the PATH; the model's faults fail the block."""
    folder = place / "repository"
    folder.mkdir()
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    HOMES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOMES, ignore_cleanup_errors=True) as home, serve(script, usage) as model:
        stage = Stage(cli, folder, Path(home), path, model)
        stage.variables |= {"AGENT_PATH": path} | dict(cli.settle(stage.home, model.url))
        _make_repository(stage)
        yield stage


def _make_repository(stage: Stage) -> None:
    (stage.folder / "AGENTS.md").write_text("# Rules of this repository\n\nThe magic word is hippopotamus.\n")
    for words in (
        ["git", "init", "-q", "-b", "main"],
        ["git", "config", "user.name", "tester"],
        ["git", "config", "user.email", "tester@example.org"],
        ["git", "add", "-A"],
        ["git", "commit", "-qm", "a beginning"],
    ):
        ran = stage.run(*words)
        assert ran.code == 0, ran.err
