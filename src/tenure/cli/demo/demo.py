"""`demo`: a small team drains a real dag; one agent is killed mid-task, another takes over, its zombie is refused.

No keys, no network: the agents are scripted, but everything else is real: separate processes, one SQLite file, a
SIGKILL, leases by the clock, a command line that refuses. Every ending removes its files and processes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import wrap
from types import FrameType
from typing import Any

from tenure.cli import task_reads
from tenure.cli.demo.stage import Stage, stage
from tenure.cli.main import Answer, Run, arg, options
from tenure.cli.text_format import style
from tenure.client import Client
from tenure.client.wire import plain as wire
from tenure.core import limits
from tenure.core.child_environments import ChildKind, for_child
from tenure.core.commands import NewTask
from tenure.core.errors import Bug, close_all

PLAN = (
    NewTask(title="Design the schema", name="schema", track="B", priority="high"),
    NewTask(title="Write the API", name="api", track="C", depends_on=("schema",)),
    NewTask(title="Build the sign-in page", name="page", track="D", depends_on=("schema",)),
    NewTask(title="Import old accounts", name="import", track="B", depends_on=("schema",)),
    NewTask(title="Test sign-in end to end", name="tests", track="F", depends_on=("api", "page")),
    NewTask(title="Write the guide", name="guide", track="G", depends_on=("api",)),
    NewTask(title="Ship it", name="ship", track="E", depends_on=("tests", "guide", "import"), priority="critical"),
)
NAMES = {task.title: str(task.name) for task in PLAN}
FIRST, VICTIM, THIRD = "ann", "bo", "cy"
SHOWN = frozenset({"task.claimed", "task.completed", "task.lease_expired", "dag.completed"})
PATIENCE = limits.DEMO_WAIT
REFUSED = 6  # the exit code for a caller that is no longer the holder
BROKEN = 70  # an invariant was broken


@options(arg("--fast", action="store_true", help="without pauses: the shortest work and lease"))
def demo(run: Run, given: Namespace) -> Answer:
    """A team of scripted agents drains a real dag in front of you. One is killed with SIGKILL in the middle of a task;
    another takes over; the dead one's late result is refused. Takes about 12 seconds, needs nothing, leaves nothing.
    """
    work, lease = (0.05, 1.0) if given.fast else (1.4, 3.0)
    with _tidy() as folder:
        play = Demo(folder, stage(is_silent=run.is_json), work=work, lease=lease)
        value = play.run()
    return Answer(value, "", 0 if value["ok"] else BROKEN)


class _Signalled(BaseException):
    """A signal to end: unwinds everything, so that nothing is left behind."""


@contextmanager
def _tidy() -> Iterator[Path]:
    """A temporary folder, removed at the end, also after a signal."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _Signalled(number)

    ending = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in ending}
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
    signalled_by = None
    try:
        yield folder
    except _Signalled as error:
        signalled_by = error.args[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for number in ending:
            signal.signal(number, before[number])
    if signalled_by is not None:
        signal.signal(signalled_by, signal.SIG_DFL)
        os.kill(os.getpid(), signalled_by)


class Demo:
    def __init__(self, folder: Path, stage: Stage, *, work: float, lease: float) -> None:
        self.folder = folder
        self.db = str(folder / ".tenure" / "tenure.db")
        self.stage, self.work, self.lease = stage, work, lease
        self.client = Client(self.db, "demo", agent="you", create=True)
        self.started = time.monotonic()
        self.agents: dict[str, subprocess.Popen[str]] = {}
        self.seen = 0
        self.lost: str | None = None  # key of the task whose holder was killed
        self.receipt = ""  # of that claim
        self.answer = ""
        self.refused = False

    def run(self) -> dict[str, Any]:
        """The result of the demo; `ok`: every promise held."""
        try:
            self._play()
            return self._sum_up()
        finally:
            self.client.close()

    def _play(self) -> None:
        try:
            self.client.init()
            self.client.plan(PLAN, title="Accounts")
            self.stage.say("7 tasks in a dag; ann, bo and cy, each its own process; one SQLite file.\n")
            self._start(FIRST, "--patient")
            self._start(VICTIM, "--stall")
            self._start(THIRD)
            # One agent at a time, so that the victim has a task on every machine, however busy.
            self._send(FIRST)
            self._until(lambda event: event["kind"] == "task.claimed")
            self._send(VICTIM)
            self._until(lambda event: event["kind"] == "task.claimed" and event["agent"] == VICTIM)
            self._send(FIRST)
            self._send(THIRD)
            self._until(lambda event: event["agent"] == VICTIM and event["details"].get("percent") == 50)
            self._kill()
            self._until(lambda event: event["kind"] == "task.claimed" and event["key"] == self.lost)
            self._come_back()
            self._until(lambda event: event["kind"] == "dag.completed")
            self._draw()
        finally:
            self._end_all()
            self.stage.finish()

    # --- agents ---

    def _start(self, name: str, *more: str) -> None:
        words = ["tenure.cli.demo.agent", self.db, name, "--lease", str(self.lease), "--work", str(self.work)]
        self.agents[name] = subprocess.Popen(
            [sys.executable, "-P", "-m", *words, *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=for_child(ChildKind.PROGRAM, os.environ),
            start_new_session=True,  # a Ctrl-C is ours: we end them
        )  # fmt: skip

    def _send(self, name: str) -> None:
        pipe = self.agents[name].stdin
        assert pipe is not None
        # Not through a buffer: its rest would be written, and fail, when the pipe is closed.
        with suppress(BrokenPipeError):  # it has ended, which `_until` sees
            os.write(pipe.fileno(), b"go\n")

    def _end_all(self) -> None:
        for agent in self.agents.values():
            agent.kill()
        for agent in self.agents.values():
            pipes = (agent.stdin, agent.stdout)
            close_all(agent.wait, *(pipe.close for pipe in pipes if pipe is not None))

    def _check_agents(self) -> None:
        for name, agent in self.agents.items():
            if agent.poll() is not None and not (name == VICTIM and self.receipt):
                raise Bug(f"the demo's agent {name} ended with {agent.returncode}", "please report what it said")

    def _kill(self) -> None:
        victim = self.agents[VICTIM]
        assert victim.stdout is not None
        self.receipt = victim.stdout.readline().strip()
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        ref = self.receipt.partition("@")[0]
        self._aside(f"{VICTIM} is killed with SIGKILL; its lease on {ref} runs on", "red", "bold")

    def _come_back(self) -> None:
        """The dead agent's result comes late, by the command that any agent would use."""
        task = self.receipt.partition("@")[0]
        words = ["--project", "demo", "--agent", VICTIM, "--session", VICTIM, "done", task, "--receipt", self.receipt]
        command = f"$ tenure done {task} --receipt {self.receipt[:12]}… -s 'late, but done'"
        self._aside(f"{VICTIM} comes back and submits its old result:", "magenta", "bold")
        self.stage.say(f"           {style(command, 'dim')}")
        zombie = subprocess.run(
            [sys.executable, "-P", "-m", "tenure", "-C", str(self.folder), *words, "-s", "late, but done"],
            capture_output=True, text=True, check=False, env=for_child(ChildKind.PROGRAM, os.environ),
        )  # fmt: skip
        self.answer = zombie.stdout.strip()
        self.refused = zombie.returncode == REFUSED and self.answer.startswith("STALE_GENERATION")
        for line in (self.answer or zombie.stderr).split("\n"):
            for part in wrap(line.strip(), 68):
                self.stage.say(f"           {style(part, 'red')}")
        self.stage.say(style(f"           exit code {zombie.returncode}: no longer the holder", "dim"))

    # --- showing ---

    def _until(self, is_there: Callable[[Mapping[str, Any]], bool]) -> None:
        """Print events as they come, up to the awaited one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for event in self.client.log(after=self.seen, last=False, limit=1):
                self.seen = event["sequence"]
                self._draw()
                self._tell(event)
                if is_there({"agent": None, "key": None, "details": {}, **event}):
                    if event.get("agent") == VICTIM and self.lost is None:
                        self.lost = event.get("key")
                    return
                break
            else:
                self._draw()
                self._check_agents()
                self.client.wait_for_news(self.seen, 0.1)
        raise Bug("the demo's agents made no progress", "try again where less else is running, or report it")

    def _tell(self, event: Mapping[str, Any]) -> None:
        if event["kind"] in SHOWN:
            colour = {"task.completed": ("green",), "dag.completed": ("green", "bold"), "task.claimed": ()}
            self._say(event["text"], *colour.get(event["kind"], ("red",)))

    def _say(self, text: str, *styles: str) -> None:
        self.stage.say(f"{style(f'{time.monotonic() - self.started:6.1f} s', 'dim')}   {style(text, *styles)}")

    def _aside(self, text: str, *styles: str) -> None:
        self._say(f"── {text}", *styles)

    def _draw(self) -> None:
        tasks = {NAMES[task["title"]]: task for task in self.client.tasks()}
        dead = next((name for name, task in tasks.items() if task["key"] == self.lost and self.answer == ""), None)
        self.stage.draw(tasks, self.client.status()["now"], dead if VICTIM in self._ended() else None)

    def _ended(self) -> list[str]:
        return [name for name, agent in self.agents.items() if agent.returncode is not None]

    def _sum_up(self) -> dict[str, Any]:
        assert self.lost is not None
        took = time.monotonic() - self.started
        history = self.client.history(self.lost)
        status = self.client.status()
        wrong = self.client.verify()
        say = self.stage.say
        say(f"\nThe lineage of {style(self.lost, 'bold')} proves the takeover:\n")
        say(task_reads.fitted(history, status["now"]))
        completed = status["tasks"].get("completed", 0)
        say(f"\n{completed} of {len(PLAN)} tasks completed once each, in {took:.1f} s, one agent killed on the way.")
        say("Every invariant checked: " + (style("all hold.", "green", "bold") if not wrong else "; ".join(wrong)))
        say(style('\nNow yours: `tenure init`, `tenure add "a first task"`, `tenure watch`.', "dim"))
        is_good = not wrong and status["tasks"] == {"completed": len(PLAN)} and self.refused
        return {
            "ok": is_good, "tasks": status["tasks"], "killed": VICTIM, "task": self.lost, "answer": self.answer,
            "lineage": wire(history), "wrong": wrong, "seconds": round(took, 1),
        }  # fmt: skip
