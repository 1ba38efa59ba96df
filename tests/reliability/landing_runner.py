"""A runner of the proof `landing`: it works in worktrees, submits what is to be landed, checks and lands; then dies.

Its fuse says where: at the first, second … time that it comes past a point, it kills itself with SIGKILL.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tenure import Client
from tenure.agents import checkouts, landings, worktrees
from tenure.agents.landings import Lander
from tenure.agents.result_checker import ResultChecker, Tools
from tenure.core import validation
from tenure.core.errors import TenureError
from tenure.core.land_request import LandRequest
from tenure.validators.commands import Command

LEASE = 1.0  # of who checks or lands: the next one waits so long for a dead one
WORK_LEASE = 4.0
PROJECT = "shop"
BRANCH = "main"
SHARED = "shared.txt"
# Where a runner may die. The first are about a landing, in the order in which they come.
POINTS = (
    "taken", "before the record", "recorded", "inside the swap", "swapped", "accepted",
    "put off", "before the submit", "submitted",
)  # fmt: skip
CHECK = Command(argv=("sh", "-c", "! grep -rqs bad work"), sandbox="never")


class Fuse:
    def __init__(self, folder: Path, point: str | None, passes: int) -> None:
        self._folder, self._point, self._left = folder, point, passes

    def at(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left <= 0:
                note(self._folder, f"died {point}")
                os.kill(os.getpid(), signal.SIGKILL)


def note(folder: Path, line: str) -> None:
    """In one write, so that lines of several processes stay whole."""
    descriptor = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


class Mortal(Client):
    """A client whose process dies at the point of its fuse."""

    fuse: Fuse

    def take_landing(self, *args: Any, **more: Any) -> Any:
        return self._then("taken", super().take_landing(*args, **more))

    def land(self, *args: Any, **more: Any) -> Any:
        self.fuse.at("before the record")
        return self._then("recorded", super().land(*args, **more))

    def judge(self, *args: Any, **more: Any) -> Any:
        self.fuse.at("swapped")
        return self._then("accepted", super().judge(*args, **more))

    def undecided(self, *args: Any, **more: Any) -> Any:
        return self._then("put off", super().undecided(*args, **more))

    def submit(self, *args: Any, **more: Any) -> Any:
        self.fuse.at("before the submit")
        return self._then("submitted", super().submit(*args, **more))

    def _then(self, point: str, outcome: Any) -> Any:
        self.fuse.at(point)
        return outcome


def opened(folder: Path, name: str, kind: type[Client] = Client) -> Client:
    hasten()
    return kind(str(folder / "store.db"), PROJECT, agent=name, session=f"{name}-{os.getpid()}", create=True)


def hasten() -> None:
    """Waits of seconds become fractions, so that a run of minutes has many landings."""
    landings.LEASE = LEASE
    landings.BLOCKED_FOR = 0.3
    validation.FIRST_WAIT = 200_000


def tools(repository: Path) -> Tools:
    return Tools({"unit": CHECK}, root=str(repository))


class Runner:
    def __init__(self, folder: Path, slot: int, life: int, seed: int) -> None:
        self.folder, self.repository = folder, folder / "shop"
        self.dice = random.Random(f"{seed}/{slot}/{life}")
        point = self.dice.choice(POINTS) if self.dice.random() < 0.8 else None
        self.client = opened(folder, f"r{slot}", Mortal)
        assert isinstance(self.client, Mortal)
        self.client.fuse = self.fuse = Fuse(folder, point, self.dice.choice((1, 1, 1, 2, 3)))
        forward = checkouts.forward

        def dying(*args: Any) -> None:
            forward(*args)
            self.fuse.at("inside the swap")

        checkouts.forward = dying
        place = str(self.repository)
        self.lander = Lander(self.client, place, lambda: tools(self.repository), say=self._say)
        self.checker = ResultChecker(self.client, tools(self.repository), lease=LEASE)

    def _say(self, text: str) -> None:
        note(self.folder, f"said {' '.join(text.split())[:300]}")

    def live(self) -> None:
        acts: list[Callable[[], object]] = [self._work, self.checker.check_next, self.lander.round]
        while True:
            for act in self.dice.sample(acts, len(acts)):
                try:
                    act()
                except TenureError as error:  # git was busy, a claim was lost: the next round goes on
                    note(self.folder, f"trouble {error.code} {' '.join(error.message.split())[:300]}")
            time.sleep(self.dice.random() * 0.1)

    def _work(self) -> None:
        if (self.folder / "settle").exists() and self.dice.random() < 0.5:
            return
        held = self.client.claim(lease=WORK_LEASE)
        if held.outcome != "GRANTED" or held.task is None:
            return
        key, generation, receipt = str(held.task["key"]), int(held.generation or 0), str(held.receipt)
        place = str(self.repository)
        tree = worktrees.make(
            place, str(self.folder / "home"), key, generation, client=self.client, receipt=receipt, onto=BRANCH
        )
        tags = held.task.get("tags", ())
        is_red = "red" in tags and self.dice.random() < 0.4
        write(tree.path, work_of(key, generation), "bad\n" if is_red else "good\n")
        if "shared" in tags:
            with Path(tree.path, SHARED).open("a", encoding="utf-8") as file:
                file.write(f"{key} {generation}\n")
        commit = worktrees.commit_all(tree, f"Work on {key}")
        if commit is None:  # the worktree of a claim that was made before has it already
            return
        note(self.folder, f"work {key} {generation} {commit}")
        self.client.submit(receipt, None, "done", land=LandRequest(commit=commit, onto=BRANCH))


def work_of(key: str, generation: int) -> str:
    """The file that the work under one claim makes, and no other."""
    return f"work/{key}-gen{generation}.txt"


def write(folder: str, name: str, text: str) -> None:
    path = Path(folder, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def live(folder: Path, slot: int, life: int, seed: int) -> None:
    """The whole life of a forked runner: only an error that nobody expects ends it by itself."""
    try:
        with (folder / "errors").open("a") as errors:
            os.dup2(errors.fileno(), sys.stderr.fileno())
        Runner(folder, slot, life, seed).live()
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding
        failed(folder)
    finally:
        os._exit(1)


def failed(folder: Path) -> None:
    """Of the error that is being handled: it ends the whole run."""
    note(folder, f"wrong {' / '.join(traceback.format_exc().splitlines()[-6:])}")
    (folder / "failed").touch()
