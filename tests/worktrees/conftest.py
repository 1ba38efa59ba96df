"""Real repositories and a real store with a clock that tests move."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure import Client
from tenure.agents import land, worktrees
from tenure.agents.land import Landing
from tenure.agents.worktrees import Worktree
from tenure.core.outcomes import Outcome
from tenure.testing.clock import FakeClock
from tests.cli.conftest import IDENTITY

LEASE = 60.0
OPENED: list[Client] = []  # closed when the test is over


class Repository:
    """A scratch repository with one commit, a store in `.tenure`, and agents that share both."""

    def __init__(self, path: Path, *words: str, branch: str = "main") -> None:
        self.path = path
        self.clock = FakeClock()
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", branch, *words)

    def start(self) -> Repository:
        self.write("readme.txt", "hello\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        return self.store()

    def store(self) -> Repository:
        self.home.mkdir()
        (self.home / ".gitignore").write_text("*\n")
        self.client("ann").init()
        return self

    @property
    def home(self) -> Path:
        return self.path / ".tenure"

    def git(self, *words: str, at: str | Path | None = None, ok: bool = True) -> str:
        done = subprocess.run(
            ["git", "-C", str(at or self.path), *words],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
        )
        assert not ok or done.returncode == 0, f"git {words}: {done.stderr}"
        return done.stdout.strip()

    def write(self, name: str, text: str, at: str | Path | None = None) -> None:
        file = Path(at or self.path) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def commit(self, name: str, text: str, at: str | Path | None = None) -> str:
        """One more commit, in the main tree or another."""
        self.write(name, text, at)
        self.git("add", "--all", at=at)
        self.git("commit", "-q", "-m", f"change {name}", at=at)
        return self.head(at)

    def head(self, at: str | Path | None = None) -> str:
        return self.git("rev-parse", "HEAD", at=at)

    def tip(self, branch: str = "main") -> str:
        return self.git("rev-parse", f"refs/heads/{branch}")

    def status(self, at: str | Path | None = None) -> str:
        return self.git("status", "--porcelain", at=at)

    def line(self, branch: str = "main") -> list[str]:
        """The branch's own commits, newest first."""
        return self.git("log", "--first-parent", "--format=%s", branch).splitlines()

    def files(self, branch: str = "main") -> set[str]:
        return set(self.git("ls-tree", "-r", "--name-only", "-z", branch).strip("\0").split("\0"))

    def client(self, agent: str, kind: type[Client] = Client, project: str = "shop") -> Client:
        opened = kind(
            str(self.home / "tenure.db"), project, agent=agent, session=f"{agent}-s", clock=self.clock, create=True
        )
        OPENED.append(opened)
        return opened

    def agent(self, name: str, kind: type[Client] = Client) -> Agent:
        return Agent(self, self.client(name, kind))


class Agent:
    """One agent at work in the repository: claims, has a worktree, commits, lands."""

    def __init__(self, repository: Repository, client: Client) -> None:
        self.repository, self.client = repository, client
        self.receipt = ""
        self.key = ""
        self.generation = 0
        self.tree: Worktree | None = None

    def claim(self, task: str) -> Agent:
        granted = self.client.claim(task, lease=LEASE)
        assert granted.outcome == "GRANTED", granted
        assert granted.receipt is not None
        assert granted.task is not None
        assert granted.generation is not None
        self.receipt, self.key, self.generation = granted.receipt, granted.task["key"], granted.generation
        return self

    def make(self, base: str | None = None, **more: Any) -> Worktree:
        self.tree = worktrees.make(
            more.pop("root", str(self.repository.path)),
            str(self.repository.home),
            self.key,
            self.generation,
            base,
            client=self.client,
            receipt=self.receipt,
            **more,
        )
        return self.tree

    def commit(self, name: str, text: str) -> str:
        assert self.tree is not None
        return self.repository.commit(name, text, self.tree.path)

    def land(self, folder: str | Path | None = None, **more: Any) -> Landing:
        place = str(folder or (self.tree.path if self.tree else self.repository.path))
        return land.land(self.client, self.receipt, place, **more)


class Interrupted(Client):
    """A client after whose answers something else happens, as it may at any time."""

    def then(self, verb: str, happens: Callable[[], Any], *, call: int = 1) -> None:
        """After the given call of `verb` (renew, land, submit), let this happen."""
        self._verb, self._happens, self._left = verb, happens, call

    def _after(self, verb: str, outcome: Outcome) -> Outcome:
        if getattr(self, "_verb", None) == verb:
            self._left -= 1
            if self._left == 0:
                self._happens()
        return outcome

    def renew(self, *args: Any, **more: Any) -> Outcome:
        return self._after("renew", super().renew(*args, **more))

    def land(self, *args: Any, **more: Any) -> Outcome:
        return self._after("land", super().land(*args, **more))

    def submit(self, *args: Any, **more: Any) -> Outcome:
        return self._after("submit", super().submit(*args, **more))


@pytest.fixture(scope="session", autouse=True)
def with_git(git: Path) -> None:
    """A bare Debian has no git; these tests work in repositories."""


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """git and tenure know nothing of who runs the tests; git knows one name."""
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\n\tname = Ann Example\n\temail = ann@example.org\n")
    names = [*IDENTITY, *(name for name in os.environ if name.startswith(("TENURE_", "GIT_")))]
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "USER": "ann", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop").start()


@pytest.fixture
def task(repository: Repository) -> str:
    """The short key of a task that is ready."""
    added = repository.client("ann").add("Write the parser")
    assert added.task is not None
    return str(added.task["ref"])


@pytest.fixture
def ann(repository: Repository, task: str) -> Agent:
    """An agent that holds the task and has a worktree."""
    agent = repository.agent("ann").claim(task)
    agent.make()
    return agent
