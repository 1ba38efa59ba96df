"""`tenure run`: scripted agents work off a plan while one of them is killed every few moments, or the runner itself.

Victims are drawn with a seed: an agent, a process of the supervisor above it, or the whole runner, which is then
restarted. At the end every task has exactly one accepted result, of the generation that its lineage ends with, made
from the accepted results of what it depends on; no promise of the store is broken; and no process is left.
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
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from tenure import process_table
from tenure.client import Client
from tenure.core.commands import NewTask
from tenure.core.records import RetryPolicy
from tests.processes.marks import children, marked
from tests.reliability import results

AGENT = Path(__file__).with_name("run_agent.py")
LEASE = 300.0  # nothing is taken over by waiting for it
PATIENCE = 600.0

KINDS = ("agent", "supervisor", "watcher", "runner")


class Proof:
    def __init__(self, folder: Path, *, tasks: int, agents: int, every: float, work: float, seed: int) -> None:
        self.folder = folder
        self.agents, self.every, self.work = agents, every, work
        self.dice = random.Random(seed)
        self.mark = uuid.uuid4().hex
        (folder / ".tenure").mkdir(mode=0o700)
        self.client = Client(str(folder / ".tenure" / "tenure.db"), "default", agent="proof", create=True)
        self.client.init()
        self.needs = self._plan(tasks)
        self.kills: Counter[str] = Counter()
        self.first = ["runner", "watcher", "supervisor", "agent"]  # each is met once before chance decides
        self.runner: subprocess.Popen[bytes] | None = None

    def _plan(self, count: int) -> dict[str, list[str]]:
        """A graph of some depth; key → what it depends on."""
        names = [f"t{n}" for n in range(count)]
        needs = {
            name: self.dice.sample(names[:n][-6:], min(n, self.dice.randint(0, 2))) for n, name in enumerate(names)
        }
        tasks = [
            NewTask(
                title=f"Task {name}", name=name, depends_on=tuple(needs[name]), max_attempts=1000,
                retry=RetryPolicy(strategy="immediate", poison=0),  # many agents die at one task, and none by its fault
            )
            for name in names
        ]  # fmt: skip
        made = self.client.plan(tasks, title="Proof").tasks or ()
        keys = {task["title"].removeprefix("Task "): str(task["key"]) for task in made}
        return {keys[name]: [keys[n] for n in needs[name]] for name in names}

    # --- the run ---

    def run(self) -> list[str]:
        """What is wrong; empty when everything held."""
        give_up = time.monotonic() + PATIENCE
        self._start()
        next_kill = time.monotonic() + self.every
        try:
            while (tasks := self.client.status()["tasks"]) != {"completed": len(self.needs)}:
                if tasks.get("dead_lettered"):
                    return [f"a task was given up: {tasks}"]  # and what depends on it would wait for ever
                if time.monotonic() > give_up:
                    return [f"not done after {PATIENCE:.0f} s: {tasks}"]
                if time.monotonic() > next_kill:
                    self._kill_one()
                    next_kill = time.monotonic() + self.every * self.dice.uniform(0.5, 1.5)
                if self.runner is not None and self.runner.poll() is not None:
                    self._start()
                time.sleep(0.02)
            self._drain()
            return self._wrong()
        finally:
            if self.runner is not None and self.runner.poll() is None:
                self.runner.kill()
                self.runner.wait()
            for pid in self._left():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.client.close()

    def _start(self) -> None:
        words = ["run", "-n", str(self.agents), "--lease", str(LEASE), "--grace", "1", "--name", "scripted"]
        words += ["--agent", f"{sys.executable} {AGENT} {self.folder / 'executions'} {self.work}"]
        environ = {**os.environ, "PROOF_MARK": self.mark, "TENURE_STATE": str(self.folder / "state")}
        with (self.folder / "log").open("ab") as log:
            self.runner = subprocess.Popen(
                [sys.executable, "-P", "-m", "tenure", *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=environ, start_new_session=True,
            )  # fmt: skip

    def _left(self) -> set[int]:
        runner = {self.runner.pid} if self.runner is not None and self.runner.poll() is None else set()
        return set(marked(f"PROOF_MARK={self.mark}")) - runner

    def _kill_one(self) -> None:
        assert self.runner is not None
        watching = {inner: pid for pid in children(self.runner.pid) for inner in children(pid)}
        agents = [p for pid in self._left() if (p := process_table.look_up(pid)) and p.parent in watching]
        if not agents:
            return
        what = self.first.pop() if self.first else self.dice.choices(KINDS, (6, 1, 1, 2))[0]
        victim = self.dice.choice(agents)
        pids = (victim.pid, victim.parent, watching[victim.parent], self.runner.pid)
        pid = dict(zip(KINDS, pids, strict=True))[what]
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills[what] += 1

    def _drain(self) -> None:
        assert self.runner is not None
        self.runner.send_signal(signal.SIGINT)
        self.runner.wait(60)
        give_up = time.monotonic() + 10
        while self._left() and time.monotonic() < give_up:
            time.sleep(0.02)

    # --- what must hold ---

    def _wrong(self) -> list[str]:
        wrong = [f"process {pid} is left" for pid in self._left()]
        wrong += [f"left in the outbox: {p.name}" for p in self.folder.glob("state/stores/*/outbox/*")]
        wrong += self.client.verify()
        for key in self.needs:
            wrong += [f"{key}: {what}" for what in self._wrong_with(key)]
        return wrong

    def _wrong_with(self, key: str) -> list[str]:
        wrong = []
        accepted = [r for r in self.client.results(key) if r["accepted"]]
        lineage = self.client.history(key)
        if len(accepted) != 1:
            return [f"{len(accepted)} accepted results"]
        (result,) = accepted
        data: dict[str, Any] = result["data"]
        if [c["generation"] for c in lineage] != list(range(1, len(lineage) + 1)):
            wrong.append(f"its generations are {[c['generation'] for c in lineage]}")
        if [c["result_accepted"] for c in lineage if c["result_accepted"]] != [True]:
            wrong.append("not exactly one claim of its lineage has the accepted result")
        if result["generation"] != lineage[-1]["generation"]:
            wrong.append(f"generation {result['generation']} was accepted, but {lineage[-1]['generation']} is the last")
        wrong += [
            f"generation {claim['generation']} ended by {claim['release_reason']} ({claim['error_class']})"
            for claim in lineage[:-1]
            if (claim["release_reason"], claim["error_class"]) not in (("EXPIRED", None), ("FAILED", "crash"))
        ]
        if data["task"] != key:
            wrong.append(f"its result was made by an agent of {data['task']}")
        for need in self.needs[key]:
            (made,) = [r for r in self.client.results(need) if r["accepted"]]
            if data["inputs"].get(need) != made["data"]["token"]:
                wrong.append(f"it was not made from the accepted result of {need}")
            if lineage[0]["acquired_at"] < made["submitted_at"]:
                wrong.append(f"it was claimed before {need} was completed")
        return wrong


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability run", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--every", type=float, default=2.0, help="seconds from one kill to the next, on average")
    parser.add_argument("--work", type=float, default=2.0, help="seconds that a task takes, on average")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="tenure-proof-") as folder:
        proof = Proof(
            Path(folder), tasks=options.tasks, agents=options.agents, every=options.every, work=options.work, seed=seed
        )
        began = time.monotonic()
        wrong = proof.run()
        begun = (Path(folder) / "executions").read_text().splitlines()
        told = ", ".join(f"{n} × {what}" for what, n in sorted(proof.kills.items())) or "nothing"
        print(
            f"seed {seed}: {options.tasks} tasks, {options.agents} agents, {len(begun)} starts of an agent,"
            f" killed: {told}; {time.monotonic() - began:.0f} s"
        )
        numbers: dict[str, results.Figure] = {
            "tasks": options.tasks, "agents": options.agents, "starts": len(begun),
            "kills": sum(proof.kills.values()), "wrong": len(wrong),
        }  # fmt: skip
        results.tell("run", numbers)
        if wrong:
            print(json.dumps(wrong, indent=1))
            print((Path(folder) / "log").read_text()[-4000:])
    print("every task was completed once, its lineage is right, no process is left" if not wrong else "FAILED")
    return 1 if wrong else 0
