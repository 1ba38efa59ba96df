"""`tenure run` over a plan that is paid for: what agents used is what is booked, budgets and savings add up.

Scripted agents speak as Codex and Claude Code do, use the model that the claim names, and keep a diary of what they
used. First tries fail, are killed with kill -9, hand in what a check refuses, or spend more than their task may cost.
At the end the diary, the usage by task, agent and model, and what budgets have consumed are one sum to the nano-dollar,
and what was projected, throttled and saved is worked out a second time from the shipped tables.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tenure.agents.identity import KNOWN
from tenure.client import Client
from tests.processes.marks import marked
from tests.reliability import spending_check
from tests.reliability.ground import end_when_told, server_of
from tests.reliability.spending_plan import CONFIG, OVERRUN_RAISED, SLOW, make_plan
from tests.servers.postgres import url_of
from tests.servers.tenure import TenureServer

AGENT = Path(__file__).with_name("spending_agent.py")
PATIENCE = 300.0
PROJECT = "shop"
LEASE = 8.0  # seconds: holders are told of budgets when they renew
ALL = "12"  # dollars for the project
FOR_SLOW = "30"  # dollars for the throttled agent
TOO_LITTLE = "0.00005"


class Stopped(AssertionError):
    """It did not come to its end."""


class Place(NamedTuple):
    """Where a store is that has a server before it."""

    server: str  # its URL
    behind: dict[str, str]  # variables for whoever looks at the store itself


class Proof:
    def __init__(
        self, folder: Path, *, tasks: int, agents: int, seed: int, lease: float = LEASE, place: Place | None = None
    ) -> None:
        """`place`: where the store is; None: in the folder."""
        self.folder, self.agents, self.lease = folder, agents, lease
        self.place = place
        self.work, self.control = folder / "work", folder / "control"
        self.mark = uuid.uuid4().hex
        self.runners: list[subprocess.Popen[bytes]] = []
        for path in (self.work, folder / "bin", *(self.control / name for name in ("killed", "near", "made"))):
            path.mkdir(parents=True)
        for form in ("codex", "claude"):
            program = folder / "bin" / form
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} {form} {self.control} "$@"\n')
            program.chmod(0o755)
        identity = {m for agent in KNOWN.values() for m in (*agent.markers, agent.session) if m}
        kept = {k: v for k, v in os.environ.items() if k not in identity and not k.startswith("TENURE_")}
        self.environ = {
            **kept, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "USER": "ann",
            "NO_COLOR": "1", "PROOF_MARK": self.mark, "TENURE_PROJECT": PROJECT, "TENURE_RUN_ROUTE": "true",
        }  # fmt: skip
        self.plan = make_plan(tasks, random.Random(seed))
        self.keys: dict[str, str] = {}  # by a task's name in the plan
        self.met: list[str] = []  # what was seen on the way
        self.figures = ""
        if place is not None:
            self.environ["TENURE_URL"] = place.server
        self.tenure("init")
        where = place.server if place else str(self.work / ".tenure" / "tenure.db")
        self.client = Client(where, PROJECT, agent="proof")

    # --- speaking ---

    def tenure(self, *words: str, **environ: str) -> Any:
        """What a verb answers with --json."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tenure", *words, "--json"], cwd=self.work, check=False,
            env=self.environ | environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise Stopped(f"tenure {' '.join(words)}: {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def start(self, *words: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self.runners.append(subprocess.Popen(
                [sys.executable, "-P", "-m", "tenure", "run", "--lease", str(self.lease), "--grace", "1", *words],
                cwd=self.work, env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            ))  # fmt: skip

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def until(self, look: Callable[[], Any], what: str) -> Any:
        give_up = time.monotonic() + PATIENCE
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > give_up or any(runner.poll() is not None for runner in self.runners):
                raise Stopped(f"waited in vain for {what}: {self.client.status()['tasks']}\n{self.log[-6000:]}")
            time.sleep(0.05)

    # --- the run ---

    def run(self) -> list[str]:
        """What is wrong; empty when everything held."""
        try:
            self.set_up()
            self.start("--agent", "codex", "-n", str(self.agents))
            self.start("--agent", "claude", "--name", SLOW, "--cap", SLOW, "--track", "S")
            self.begin_without_money()
            self.kill_one()
            self.stop_at_its_budget()
            self.until(lambda: self.client.status()["tasks"] == {"completed": len(self.plan["tasks"])}, "all tasks")
            self.drain()
            wrong = spending_check.wrong(self)
            self.figures = "" if wrong else spending_check.figures(self)
            return wrong
        finally:
            self.end()

    def set_up(self) -> None:
        (self.work / "tenure.toml").write_text(CONFIG)
        self.tenure("trust")
        file = self.folder / "plan.json"
        file.write_text(json.dumps(self.plan))
        made = self.tenure("plan", "apply", str(file))
        keys = {task["title"]: str(task["key"]) for task in made["plans"][0]["tasks"]}
        self.keys = {task["name"]: keys[task["title"]] for task in self.plan["tasks"]}
        self.tenure("budget", "set", "--usd", TOO_LITTLE, "--default-estimate", "0.05")
        self.tenure("budget", "set", f"agent:{SLOW}-1", "--usd", FOR_SLOW, "--default-estimate", "0.5", "--throttle")

    def begin_without_money(self) -> None:
        """Nothing can be paid: agents are told so, and none is started."""
        self.until(lambda: self.log.count("an admin can raise it by") > self.agents, "every agent to be told")
        if (self.control / "diary").exists() or self.client.status()["tasks"].get("completed"):
            raise Stopped("an agent was started without money")
        self.met.append("no process without headroom")
        self.tenure("budget", "set", "--usd", ALL)

    def kill_one(self) -> None:
        """One that has told what it used, and has not yet said that it is done."""
        file = self.until(lambda: next((self.control / "killed").glob("*[0-9]"), None), "one that can be killed")
        os.kill(int(file.read_text()), signal.SIGKILL)
        self.met.append("killed")

    def stop_at_its_budget(self) -> None:
        """One is warned near what its task may cost, goes on, and is stopped; it goes on when there is more."""
        file = self.until(lambda: next((self.control / "near").glob("*[0-9]"), None), "one that comes near its budget")
        key = file.name
        self.until(lambda: f"{key}: warned: budget task:" in self.log, f"{key} to be warned")
        file.with_suffix(".go").touch()
        self.until(lambda: self.client.show(key)["state"] == "paused", f"{key} to be paused")
        self.until(lambda: self.client.show(key).get("checkpoint"), f"a checkpoint of {key}")
        raised = self.tenure("budget", "set", f"task:{key}", "--usd", OVERRUN_RAISED)
        if raised.get("changed") != [key]:
            raise Stopped(f"{key} does not go on with a larger budget: {raised}")
        self.met.append("warned, paused, resumed")

    def drain(self) -> None:
        for runner in self.runners:
            runner.send_signal(signal.SIGINT)
        for runner in self.runners:
            runner.wait(60)

    def end(self) -> None:
        for runner in self.runners:
            if runner.poll() is None:
                runner.kill()
                runner.wait()
        for pid in marked(f"PROOF_MARK={self.mark}"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.client.close()


@contextmanager
def served(store: str, folder: Path) -> Iterator[Place | None]:
    """Where the store is: None for the folder itself, else a server of ours that has it in PostgreSQL."""
    if store == "sqlite":
        yield None
        return
    with server_of("postgres"):
        url = url_of(folder)
        Client(url, PROJECT, create=True).close()  # makes it
        artifacts = {"TENURE_ARTIFACTS": str(folder / "artifacts")}
        with TenureServer(url, settings=artifacts) as server:
            yield Place(server.url, {"TENURE_URL": url, **artifacts})


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability spending", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite", help="postgres: behind a server")
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    end_when_told()
    with tempfile.TemporaryDirectory(prefix="tenure-proof-") as name, served(options.store, Path(name)) as place:
        began = time.monotonic()
        proof = Proof(Path(name), tasks=options.tasks, agents=options.agents, seed=seed, place=place)
        try:
            wrong = proof.run()
        except Stopped as stopped:
            wrong = [str(stopped)]
        print(f"seed {seed}, {options.store}: {options.tasks} tasks, {time.monotonic() - began:.0f} s")
        if wrong:
            print("\n".join(wrong))
        else:
            print(proof.figures)
    print("all of it adds up" if not wrong else "FAILED")
    return 1 if wrong else 0
