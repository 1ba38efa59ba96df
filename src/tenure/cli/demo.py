"""`tenure demo`: a small team drains a real dag; one agent is killed mid-task, and its zombie is refused.

No keys, no network: the agents are scripted, but everything else is real: separate processes, one SQLite file, a
SIGKILL, leases by the clock. Nothing is left behind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tenure.client import Client
from tenure.core.commands import NewTask

PLAN = (
    NewTask(title="Design the schema", name="schema", track="B", priority="high"),
    NewTask(title="Write the API", name="api", track="C", depends_on=("schema",)),
    NewTask(title="Build the sign-in page", name="page", track="D", depends_on=("schema",)),
    NewTask(title="Import old accounts", name="import", track="B", depends_on=("schema",)),
    NewTask(title="Test sign-in end to end", name="tests", track="F", depends_on=("api", "page")),
    NewTask(title="Write the guide", name="guide", track="G", depends_on=("api",)),
    NewTask(title="Ship it", name="ship", track="E", depends_on=("tests", "guide", "import"), priority="critical"),
)
AGENTS = ("ann", "bo", "cy")
VICTIM = "bo"
SHOWN = {
    "task.claimed": "claims",
    "task.progress": "works on",
    "task.completed": "completes",
    "task.ready": "is ready:",
    "task.lease_expired": "lost its lease on",
    "task.result_refused": "is refused:",
    "dag.completed": "the whole plan is completed",
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tenure demo", description=__doc__.split("\n\n")[0])
    parser.add_argument("--fast", action="store_true", help="no dwelling: shorter work, the shortest lease")
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
    try:
        return Demo(folder, work=0.05 if options.fast else 0.5, lease=1.0 if options.fast else 2.0).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Demo:
    def __init__(self, folder: Path, *, work: float, lease: float) -> None:
        self.db = str(folder / ".tenure" / "tenure.db")
        self.work, self.lease = work, lease
        self.client = Client(self.db, "demo", agent="you")
        self.started = time.monotonic()
        self.agents: dict[str, subprocess.Popen[str]] = {}
        self.seen = 0
        self.victims_task: str | None = None
        self.receipt = ""

    def run(self) -> int:
        say("A plan of 7 tasks, 3 agents in processes of their own, one SQLite file.\n")
        self.client.init()
        self.client.plan(PLAN, title="Accounts")
        try:
            for name in AGENTS:
                self.agents[name] = self._start("work", name)
            self._until(lambda event: event["kind"] == "task.progress" and event["agent"] == VICTIM)
            self._kill()
            self._until(lambda event: event["kind"] == "task.claimed" and event["key"] == self.victims_task)
            self._come_back()
            self._until(lambda event: event["kind"] == "dag.completed")
        finally:
            for agent in self.agents.values():
                agent.kill()
                agent.wait()
                if agent.stdout:
                    agent.stdout.close()
        return self._sum_up()

    def _start(self, what: str, name: str, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tenure.cli.demo_agent", what, self.db, name, str(self.lease), str(self.work)]
        stall = ["--stall"] if name == VICTIM and what == "work" else []
        return subprocess.Popen([*command, *stall, *more], stdout=subprocess.PIPE, text=True)

    def _until(self, is_there: Callable[[dict[str, Any]], bool]) -> None:
        """Show events as they come, up to the one that is waited for."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for event in self.client.log(after=self.seen, last=False):
                self.seen = event["sequence"]
                self._show(event)
                if is_there(event):
                    self.victims_task = self.victims_task or event.get("key")
                    return
            self.client.store.wait(self.seen, 0.5)
        raise TimeoutError("the demo's agents did not get on; that is a bug")

    def _show(self, event: dict[str, Any]) -> None:
        if event["kind"] not in SHOWN:
            return
        at = time.monotonic() - self.started
        who = "" if event["kind"] in ("task.ready", "dag.completed") else event.get("agent", "")
        generation = f" (generation {event['generation']})" if event["kind"] == "task.claimed" else ""
        say(f"{at:5.1f} s  {who:4} {SHOWN[event['kind']]} {event.get('key', '')}{generation}")

    def _kill(self) -> None:
        victim = self.agents[VICTIM]
        assert victim.stdout is not None
        self.receipt = victim.stdout.readline().strip()
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        say(f"         -- {VICTIM} is killed with SIGKILL in the middle of {self.victims_task}; its lease runs on --")

    def _come_back(self) -> None:
        say(f"         -- {VICTIM} comes back from the dead and hands in what it had --")
        zombie = self._start("submit", VICTIM, "--receipt", self.receipt)
        self.answer = zombie.communicate()[0].strip()
        say(f"         {self.answer}")

    def _sum_up(self) -> int:
        assert self.victims_task is not None
        say(f"\nThe lineage of {self.victims_task}:")
        say("  gen  agent  ended by    result")
        for claim in self.client.history(self.victims_task):
            fate = {True: "accepted", False: "refused, kept", None: "none"}[claim["result_accepted"]]
            say(f"  {claim['generation']:3}  {claim['agent']:5}  {claim['release_reason'] or 'open':10}  {fate}")
        wrong = self.client.verify()
        counts = self.client.status()["tasks"]
        took = time.monotonic() - self.started
        say(f"\n{counts.get('completed', 0)} of {len(PLAN)} tasks completed once each, in {took:.1f} s.")
        say("Every promise checked: " + ("all hold." if not wrong else "; ".join(wrong)))
        self.client.close()
        is_good = not wrong and counts == {"completed": len(PLAN)} and self.answer.startswith("STALE_GENERATION")
        return 0 if is_good else 1


def say(text: str) -> None:
    print(text, flush=True)
