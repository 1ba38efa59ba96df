"""Runners that land, killed at every step of it: the branch ends up with what was accepted, and nothing else.

A real repository with a checkout of its branch, and processes that work, check and land. They are killed with SIGKILL,
most of them at a chosen point: before the record of a landing, between record and swap, inside the swap, between swap
and acceptance. Meanwhile a person reviews late, edits files that are in the way and clears them, commits to the
branch, checks out another, cancels, pauses, and restores the store (a new epoch); checks fail, works conflict.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.reliability import landing_person, landing_runner, results
from tests.reliability.ground import end_when_told
from tests.reliability.landing_check import Found, found
from tests.reliability.landing_runner import BRANCH, SHARED, opened

RUNNERS = 3
LONGEST_LIFE = 3.0  # seconds; then a runner is killed wherever it is
SETTLING = landing_person.PATIENCE + 30.0


class Landings:
    """Starts runners and the person by fork, before anything of the store is open here."""

    def __init__(self, folder: Path, *, kills: int, tasks: int = landing_person.MOST_OPEN, seed: int) -> None:
        self.folder, self.wanted, self.tasks, self.seed = folder, kills, tasks, seed
        self.dice = random.Random(seed)
        self.lives = [0] * RUNNERS
        self.runners: dict[int, tuple[int, float]] = {}  # process → slot, and when it is killed
        self.kills = 0
        _repository(folder)
        self._forked(lambda: opened(folder, "olaf").init() and None, wait=True)

    def run(self) -> Found:
        person = self._forked(lambda: landing_person.live(self.folder, self.tasks, self.seed))
        try:
            while self.kills < self.wanted and not (self.folder / "failed").exists():
                self._keep(RUNNERS)
                time.sleep(0.02)
            (self.folder / "settle").touch()
            until = time.monotonic() + SETTLING
            while not _has_ended(person) and time.monotonic() < until:
                self._keep(RUNNERS, kills=False)
                time.sleep(0.05)
        finally:
            for pid in [person, *self.runners]:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        return found(self.folder)

    def _keep(self, count: int, *, kills: bool = True) -> None:
        """Note who has died, kill who has lived long enough, and start others in their place."""
        for pid, (slot, until) in list(self.runners.items()):
            if kills and time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            elif not _has_ended(pid):
                continue
            self.kills += kills
            del self.runners[pid]
            self.lives[slot] += 1
        for slot in range(count):
            if slot not in {slot for slot, _ in self.runners.values()}:
                life = self.lives[slot]
                pid = self._forked(lambda slot=slot, life=life: self._live(slot, life))  # type: ignore[misc]
                self.runners[pid] = (slot, time.monotonic() + self.dice.uniform(0.3, 1.0) * LONGEST_LIFE)

    def _live(self, slot: int, life: int) -> None:
        landing_runner.live(self.folder, slot, life, self.seed)

    def _forked(self, act: Callable[[], None], *, wait: bool = False) -> int:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.environ |= _environ(self.folder)
                act()
                code = 0
            finally:
                os._exit(code)
        if wait:
            assert os.waitpid(pid, 0)[1] == 0
        return pid


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # waited for before
        return True


def _environ(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}


def _repository(folder: Path) -> None:
    (folder / ".gitconfig").write_text(
        "[user]\n\tname = Ann Example\n\temail = ann@example.org\n[gc]\n\tauto = 0\n[core]\n\tfsync = none\n"
    )
    (folder / "home").mkdir()
    place = folder / "shop"
    place.mkdir()
    for name in (SHARED, "notes.txt"):
        (place / name).write_text("")
    environ = {**os.environ, **_environ(folder)}
    for words in (("init", "-q", "-b", BRANCH), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", "-C", str(place), *words], check=True, env=environ)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability landing", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    end_when_told()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tenure-landing-", ignore_cleanup_errors=True) as place:
        landings = Landings(Path(place), kills=options.kills, seed=seed)
        seen = landings.run()
        log = Path(place, "log").read_text().splitlines()
        died = Counter(line.removeprefix("died ") for line in log if line.startswith("died "))
        print(f"seed {seed}; died: " + ", ".join(f"{n} × {point}" for point, n in died.most_common()))
        blocked = sum("waits to be landed" in line for line in log)
        numbers: dict[str, results.Figure] = {
            "kills": landings.kills, "aimed": died.total(), "works": seen.counts["work"],
            "landed": seen.counts["passed"], "refused": seen.counts["refused"],
            "conflicts": seen.counts["conflicts"], "put off": blocked, "cancels": seen.counts["cancelled"],
            "epochs": seen.counts["epoch"], "wrong": len(seen.wrong), "seconds": round(time.monotonic() - began),
        }  # fmt: skip
        for line in seen.wrong[:40]:
            print(f"  {line}")
        if seen.wrong:
            print("\n".join(log[-40:]))
        print("the branch has what was accepted, and nothing else" if not seen.wrong else "FAILED")
        results.tell("landing", numbers)
    return 1 if seen.wrong else 0
