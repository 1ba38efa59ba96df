"""A tenant moves between two PostgreSQL servers while its agents work, and movers are killed at any step.

Workers add, claim and submit; they come back with receipts from before a move, and write straight to a store that may
not be the tenant's home. Of the moves a third is killed after a step and run again, some are called off first. At the
end every acknowledged write is there, no old receipt was accepted, and each task has one accepted result. A server is
asked for the tenant after each move: at the end it has no connection to the store that was left, and no more threads.
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
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tenure import Client
from tenure.client.tenant_move import move_tenant, stay
from tenure.core.errors import MoveRefused
from tenure.core.records import Result, Task
from tenure.stores.open_store import open_store
from tests.reliability import results
from tests.reliability.many_tenants import key_of
from tests.reliability.moves_worker import PROJECT, TENANT
from tests.servers import processes
from tests.servers.postgres import PostgresServer
from tests.servers.tenure import TenureServer

MASTER = {"TENURE_MASTER_KEY": "0123456789abcdef" * 4}
STEPS = ("begin", "freeze", "copy", "switch", "open")
HERE = "home"
LEFT = 30.0  # seconds for the server to close what it has left
_MOVER = """
import os, signal, sys
from tenure.client.tenant_move import move_tenant
def step(done):
    if done == sys.argv[4]:
        os.kill(os.getpid(), signal.SIGKILL)
move_tenant(sys.argv[1], sys.argv[2], to=sys.argv[3] or None, step=step)
"""


class Run:
    """Two servers, a tenant and its workers."""

    def __init__(self, home: str, there: str, seed: int, folder: Path) -> None:
        self.home, self.there, self.folder = home, there, folder
        self.server = TenureServer(home, settings=MASTER)
        self.threads: int | None = None  # of the server, once it has used both stores and left one
        self.dice = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []

    def prepare(self, tasks: int) -> None:
        with Client(self.home, PROJECT, create=True) as owner:
            owner.add_tenant(TENANT)
        with Client(self.home, PROJECT, tenant=TENANT, create=True) as client:
            for number in range(tasks):
                client.add(f"first {number}")
            self.key = key_of(client.engine)

    @contextmanager
    def working(self, workers: int) -> Iterator[None]:
        names = [f"w{number}" for number in range(workers)]
        started = [self._start(name) for name in names]
        try:
            for name, process in zip(names, started, strict=True):
                log = self.folder / f"{name}.log"
                processes.wait_until(lambda log=log: log.exists() and log.stat().st_size > 0, process, log)  # type: ignore[misc]
            yield
        finally:
            (self.folder / "stop").touch()
            for process in started:
                process.wait()
        self.findings += [
            f"{name} ended with {p.returncode}" for name, p in zip(names, started, strict=True) if p.returncode
        ]

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        words = [self.home, self.there, name, str(self.dice.randrange(1 << 30)), str(self.folder)]
        return subprocess.Popen([sys.executable, "-m", "tests.reliability.moves_worker", *words], env=_environment())

    def move(self, number: int, between: float) -> None:
        """One move to the other server, however often its mover dies."""
        to = self.there if number % 2 == 0 else HERE
        if self.dice.random() < 0.35:
            step = self.dice.choice(STEPS)
            self._killed(to, step)
            if step in ("begin", "freeze", "copy") and self.dice.random() < 0.5:
                stay(self.home, TENANT)
                self.counts["called_off"] += 1
                self._killed(to, "")
        else:
            self._killed(to, "")
        time.sleep(between)

    def _killed(self, to: str, step: str) -> None:
        """Run a mover; after `step` it kills itself, and another finishes the move."""
        words = [self.home, TENANT, to, step]
        done = subprocess.run(
            [sys.executable, "-c", _MOVER, *words], env=_environment(), check=False, capture_output=True
        )
        if step:
            self.counts["movers_killed"] += 1
            if done.returncode != -signal.SIGKILL:
                self.findings.append(f"the mover was not killed after {step}: {done.stderr.decode()[-300:]}")
        elif done.returncode:
            self.findings.append(f"a mover failed: {done.stderr.decode()[-300:]}")

    def ask(self) -> None:
        """Write and read in the tenant through the server, in whichever store it is."""
        with Client(self.server.url, PROJECT, key=self.key, agent="asker") as client:
            client.add("asked for after a move")
            assert client.tasks(limit=1)

    def served(self) -> int:
        assert self.server.process is not None
        return len(list(Path(f"/proc/{self.server.process.pid}/task").iterdir()))

    def check_left(self, there: PostgresServer) -> None:
        """Nothing is left of the store that the tenant has left: call it while the tenant is at home, and alone."""

        def left() -> tuple[int, int]:
            found = there.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = 'there'")
            return int(found), max(0, self.served() - (self.threads or 0))

        until = time.monotonic() + LEFT
        while (found := left()) != (0, 0) and time.monotonic() < until:
            time.sleep(0.1)
        self.counts["connections_left"], self.counts["threads_left"] = found
        if found != (0, 0):
            self.findings.append(
                f"the server has {found[0]} connections and {found[1]} threads of the store that was left"
            )

    def finish(self) -> None:
        """Finish a move that is left over."""
        try:
            move_tenant(self.home, TENANT)
        except MoveRefused:
            pass
        except Exception as error:
            if "no move is under way" not in str(error):
                raise

    def check(self) -> None:
        lines = [json.loads(line) for file in self.folder.glob("w*.log") for line in file.read_text().splitlines()]
        added = {line["added"] for line in lines if "added" in line}
        accepted = {
            line["submitted"]: line["data"] for line in lines if line.get("outcome") == "ACCEPTED" and "data" in line
        }
        zombies = [line for line in lines if "zombie" in line]
        self.counts["added"], self.counts["accepted"] = len(added), len(accepted)
        self.counts["zombie_tries"] = len(zombies)
        self.counts["refused_while_moving"] = sum(line.get("refused") == "TENANT_MOVING" for line in lines)
        risen = [line for line in zombies if line["ok"]]
        self.counts["zombies_accepted"] = len(risen)
        self.findings += [f"a zombie was told {line['outcome']}: {line['zombie']}" for line in risen]
        with Client(self.home, PROJECT, tenant=TENANT) as client:
            self._drain(client)
            with client.store.begin(TENANT, write=False) as tx:
                tasks: list[Any] = tx.find(Task, {"project": PROJECT})
                kept: list[Any] = tx.find(Result, {"project": PROJECT, "accepted": True})
            self.findings += client.verify()
        of_task: dict[str, list[Any]] = {}
        for result in kept:
            of_task.setdefault(result.task, []).append(result.data)
        refs = {task.ref: task for task in tasks}
        lost = [key for key in added if key not in {task.key for task in tasks}]
        lost += [ref for ref, data in accepted.items() if ref not in refs or of_task.get(refs[ref].id) != [data]]
        self.counts["lost"] = len(lost)
        self.findings += [f"lost: {name}" for name in lost]
        twice = [task.ref for task in tasks if task.state != "completed" or len(of_task.get(task.id, ())) != 1]
        self.findings += [f"{ref}: not completed once" for ref in twice]
        ghosts = [data for data in of_task.values() if "a zombie's" in data]
        self.findings += [f"{len(ghosts)} results of zombies are accepted"] if ghosts else []
        self.counts["tasks"], self.counts["completed_once"] = len(tasks), len(tasks) - len(twice)
        with Client(self.home, PROJECT) as owner:
            self.findings += owner.verify()

    def _drain(self, client: Client) -> None:
        for claim in client.tasks(state=("claimed", "running"), limit=1000):
            client.recover(claim["key"], "the workers have gone")
        while (claim := client.claim(lease=60.0)).receipt is not None:
            client.submit(claim.receipt, "at the end")


def _environment() -> dict[str, str]:
    return {**os.environ, **MASTER}


def run(moves: int, workers: int, seed: int, *, between: float, tasks: int = 40) -> Run:
    os.environ.update(MASTER)
    with ExitStack() as stack:
        first, second = (stack.enter_context(PostgresServer()) for _ in range(2))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        story = Run(first.create("home"), second.create("there"), seed, folder)
        open_store(story.there).close()  # its tables
        story.prepare(tasks)
        stack.enter_context(story.server)
        with story.working(workers):
            for number in range(moves):
                story.move(number, between)
                story.finish()
                story.ask()
                story.counts["moves"] += 1
                if number == 1:
                    time.sleep(1)  # until the store that was left is closed
                    story.threads = story.served()
        if moves % 2:
            move_tenant(story.home, TENANT, to=HERE)
            story.ask()
        story.check_left(second)
        story.check()
        return story


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability moves", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--moves", type=int, default=60)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--between", type=float, default=1.0, help="seconds of work between two moves")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    began = time.monotonic()
    story = run(options.moves, options.workers, seed, between=options.between)
    print(f"seed {seed}: {time.monotonic() - began:.0f} s")
    for finding in story.findings[:10]:
        print(finding)
    names = (
        "moves", "movers_killed", "called_off", "tasks", "completed_once", "added", "accepted", "refused_while_moving",
        "zombie_tries", "zombies_accepted", "lost", "connections_left", "threads_left",
    )  # fmt: skip
    print("nothing was lost" if not story.findings else f"FAILED: {len(story.findings)} findings")
    results.tell("moves", {name: story.counts[name] for name in names} | {"findings": len(story.findings)})
    return 1 if story.findings else 0
