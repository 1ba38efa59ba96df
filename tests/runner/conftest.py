"""A real runner in a real process, scripted agents, and the processes that are left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tenure.agents.identity import KNOWN
from tenure.agents.runner.outbox import Outbox
from tenure.client import Client
from tests.processes.marks import children, marked

AGENT = Path(__file__).with_name("scripted.py")
T = TypeVar("T")


def until(look: Callable[[], T], what: str = "", seconds: float = 30.0) -> T:
    """What `look` gives once it gives something; fails after `seconds`."""
    give_up = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < give_up, f"timed out waiting for {what or look}"
        time.sleep(0.01)


class Runs:
    """One `tenure run` that was started."""

    def __init__(self, popen: subprocess.Popen[str], log: Path) -> None:
        self.popen = popen
        self.log_file = log

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def says(self, text: str) -> None:
        until(lambda: text in self.log, f"{text!r} in the log, which is\n{self.log}")

    def ends(self, code: int | None = 0, seconds: float = 60.0) -> str:
        """What it said by its end; `code` None: whatever it ended with."""
        assert self.popen.wait(seconds) == code or code is None, self.log
        return self.log

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the runner's whole process group, as a terminal does."""
        os.killpg(self.pid, number)
        if number == signal.SIGKILL:
            self.popen.wait()


class Stage:
    """A folder with a store, and a folder with the scripts of agents."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder / "work"
        self.home = self.folder / ".tenure"
        self.home.mkdir(parents=True, mode=0o700)
        self.client = Client(str(self.home / "tenure.db"), "default", agent="ann", create=True)
        self.client.init()
        self.control = folder / "control"
        for name in ("started", "go", "do", "prompts", "environ", "calls"):
            (self.control / name).mkdir(parents=True)
        self.mark = uuid.uuid4().hex
        self.environ = environ | {"TEST_MARK": self.mark}
        self.runs: list[Runs] = []
        self.box = Outbox(str(self.home), str(self.home / "tenure.db"), self.environ)

    # --- telling ---

    def add(self, title: str, **fields: Any) -> str:
        fields = {"retry": {"strategy": "immediate"}} | fields
        from tenure.core.records import RetryPolicy

        fields["retry"] = RetryPolicy(**fields["retry"])
        task = self.client.add(title, **fields).task
        assert task is not None
        return str(task["key"])

    def do(self, key: str = "all", **plan: Any) -> None:
        (self.control / "do" / key).write_text(json.dumps(plan))

    def go(self, key: str = "all") -> None:
        (self.control / "go" / key).write_text("")

    def run(self, *words: object, agent: str | None = None, **environ: str) -> Runs:
        command = agent if agent is not None else f"{sys.executable} {AGENT} {self.control}"
        log = self.folder.parent / f"log-{len(self.runs)}"
        with log.open("w") as out:
            popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "tenure", "run", "--agent", command, *(str(word) for word in words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.folder,
                env=self.environ | environ,
                start_new_session=True,
            )
        self.runs.append(Runs(popen, log))
        return self.runs[-1]

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=ann", "-c", "user.email=ann@example.org", *words],
            cwd=cwd or self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def repository(self) -> None:
        self.git("init", "-q", "-b", "main")
        (self.folder / "README").write_text("hello\n")
        (self.folder / ".gitignore").write_text(".tenure/\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")

    # --- looking ---

    def started(self, key: str, generation: int = 1) -> int:
        """The agent's pid, once it works on that generation."""
        file = self.control / "started" / f"{key}.{generation}"
        until(file.exists, f"{key} to be begun; the runners said\n" + "\n".join(r.log for r in self.runs))
        return int(file.read_text())

    def processes(self) -> set[int]:
        """What the agents started and still runs."""
        return set(marked(f"TEST_MARK={self.mark}")) - {run.pid for run in self.runs}

    def supervisors(self) -> set[int]:
        """The process above each agent, or above none yet, and those that watch over them."""
        watching = {pid for run in self.runs for pid in children(run.pid)}
        return watching | {pid for parent in watching for pid in children(parent)}

    def nothing_left(self) -> bool:
        until(lambda: not self.processes(), "every process to be gone")
        return True

    def state(self, key: str) -> str:
        return str(self.client.show(key)["state"])

    def is_completed(self, key: str) -> bool:
        until(lambda: self.state(key) == "completed", f"{key} to be completed")
        return True

    def lineage(self, key: str) -> list[tuple[Any, ...]]:
        return [(c["generation"], c["release_reason"], c["result_accepted"]) for c in self.client.history(key)]

    def outbox(self) -> list[str]:
        folder = Path(self.box.folder)
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


@pytest.fixture(scope="session", autouse=True)
def with_git(git: Path) -> None:
    """A bare Debian has no git; these tests work in repositories."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    identity = {m for agent in KNOWN.values() for m in (*agent.markers, agent.session) if m}
    environ = {k: v for k, v in os.environ.items() if k not in identity and not k.startswith("TENURE_")}
    stage = Stage(tmp_path, environ | {"USER": "ann", "HOME": str(tmp_path), "NO_COLOR": "1"})
    yield stage
    for run in stage.runs:
        if run.popen.poll() is None:
            run.kill()
    for pid in stage.processes():
        os.kill(pid, signal.SIGKILL)
    stage.client.close()
