"""The person of the proof `landing`: gives verdicts late, has files in the way, commits, cancels, pauses, restores."""

from __future__ import annotations

import os
import random
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tenure.agents import worktrees
from tenure.core.errors import TenureError
from tenure.core.records import RetryPolicy
from tests.reliability.landing_runner import BRANCH, SHARED, failed, note, opened, work_of

REVIEW, TESTS = {"validation": "review"}, {"validation": "test-pass", "settings": {"command": "unit"}}
MOST_OPEN = 6
SETTLED = ("completed", "cancelled", "dead_lettered")
PATIENCE = 120.0  # seconds until everything must be settled
MINE = "my own\n"


class Person:
    def __init__(self, folder: Path, tasks: int, seed: int) -> None:
        self.folder, self.repository, self.tasks = folder, folder / "shop", tasks
        self.dice = random.Random(f"{seed}/person")
        self.client = opened(folder, "olaf")
        self.made = 0
        self.in_the_way: list[str] = []
        self.cancelled: list[str] = []
        self.paused: list[str] = []

    # --- acts ---

    def live(self) -> bool:
        """Whether everything was settled in the end."""
        acts = {
            self.give_verdicts: 12, self.be_in_the_way: 4, self.clear_the_way: 4, self.commit: 3,
            self.look_elsewhere: 1, self.come_back: 3, self.cancel: 1, self.undo: 1, self.pause: 1, self.go_on: 3,
            self.reject: 1, self.restore: 0.8, self.tidy: 1,
        }  # fmt: skip
        while not (self.folder / "settle").exists():
            self.refill()
            (act,) = self.dice.choices(list(acts), list(acts.values()))
            with suppress(TenureError):
                act()
            time.sleep(self.dice.random() * 0.2)
        return self.settle()

    def settle(self) -> bool:
        until = time.monotonic() + PATIENCE
        states = {}
        while time.monotonic() < until and not (self.folder / "failed").exists():
            with suppress(TenureError):
                self.come_back()
                self.clear_the_way()
                self.give_verdicts(late=False)
                self.go_on()
                states = self.client.status()["tasks"]
                if not {state for state, count in states.items() if count} - {*SETTLED}:
                    return True
            time.sleep(0.1)
        note(self.folder, f"wrong it is not settled: {states}")
        return False

    def refill(self) -> None:
        states = self.client.status()["tasks"]
        is_open = sum(count for state, count in states.items() if state not in SETTLED)
        while is_open < min(MOST_OPEN, self.tasks):
            self.made += 1
            is_open += 1
            output = self.dice.choice((None, None, REVIEW, TESTS))
            tags = [tag for tag, share in (("shared", 0.5), ("red", 1.0 if output == TESTS else 0.0))
                    if self.dice.random() < share]  # fmt: skip
            touches = (SHARED,) if "shared" in tags and self.dice.random() < 0.4 else ()
            self.client.add(
                f"Task {self.made}", tags=tuple(tags), touches=touches, max_attempts=1000,
                retry=RetryPolicy(strategy="immediate", poison=0), **({"output": output} if output else {}),
            )  # fmt: skip

    def give_verdicts(self, *, late: bool = True) -> None:
        for one in self.client.validations(100):
            if one["state"] != "review" or (late and self.dice.random() < 0.5):
                continue
            if late and self.dice.random() < 0.25:
                self.client.reject(one["key"], "not like this")
            else:
                self.client.approve(one["key"])

    def reject(self) -> None:
        """Something that has passed, before it is landed."""
        waiting = [one for one in self.client.validations(100) if one["state"] == "landing"]
        if waiting:
            self.client.reject(self.dice.choice(waiting)["key"], "I have changed my mind")

    def be_in_the_way(self) -> None:
        if self.branch() != BRANCH:
            return
        waiting = [one for one in self.client.validations(100) if one["land"]]
        if waiting and self.dice.random() < 0.5:
            one = self.dice.choice(waiting)
            name = work_of(one["key"], one["generation"])
            path = self.repository / name
            path.parent.mkdir(exist_ok=True)
            with suppress(FileExistsError), path.open("x") as file:
                file.write(MINE)
                self.in_the_way.append(name)
        else:
            with (self.repository / SHARED).open("a") as file:
                file.write(MINE)
            self.in_the_way.append(SHARED)

    def clear_the_way(self) -> None:
        for name in self.in_the_way:
            path = self.repository / name
            if name == SHARED:
                self.git("checkout", "-q", "HEAD", "--", SHARED)
            elif path.exists() and path.read_text() == MINE:
                path.unlink()
        self.in_the_way = []

    def commit(self) -> None:
        if self.branch() == BRANCH:
            with (self.repository / "notes.txt").open("a") as file:
                file.write("a note\n")
            self.git("commit", "-q", "-m", "note", "--", "notes.txt")

    def look_elsewhere(self) -> None:
        if not self.in_the_way and self.is_clean():
            self.git("checkout", "-q", "-B", "elsewhere")

    def come_back(self) -> None:
        if self.branch() != BRANCH and not self.git("checkout", "-q", BRANCH):
            self.git("checkout", "-q", "-f", BRANCH)

    def cancel(self) -> None:
        key = self.some("validating", "ready", "running", "claimed")
        if key:
            done = self.client.cancel(key)
            if done.outcome == "UPDATED":
                note(self.folder, f"cancelled {key}")
                self.cancelled.append(str(done.command_id))

    def undo(self) -> None:
        if self.cancelled:
            self.client.undo(self.cancelled.pop())

    def pause(self) -> None:
        key = self.some("validating", "ready")
        if key:
            self.client.pause(key)

    def go_on(self) -> None:
        for task in self.client.tasks(state="paused", limit=100):
            self.client.resume(task["key"])

    def restore(self) -> None:
        self.client.new_epoch("restored from a backup")
        note(self.folder, "epoch")

    def tidy(self) -> None:
        """Remove the trees of claims that are over for good; their branches stay."""
        for found in list(worktrees.ours(str(self.repository))):
            if found.record is None:
                continue
            task = self.client.show(found.record.key)
            if found.record.generation < task["generation"] or task["state"] == "completed":
                self.git("worktree", "remove", "--force", found.tree.path)

    # --- what it looks at ---

    def some(self, *states: str) -> str | None:
        tasks = [task["key"] for state in states for task in self.client.tasks(state=state, limit=100)]
        return self.dice.choice(tasks) if tasks else None

    def branch(self) -> str:
        asked = ["git", "-C", str(self.repository), "symbolic-ref", "--short", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()

    def is_clean(self) -> bool:
        asked = ["git", "-C", str(self.repository), "status", "--porcelain"]
        return not subprocess.run(asked, capture_output=True, check=False).stdout

    def git(self, *words: str) -> bool:
        """Whether it could be done: a landing may have the lock just then."""
        asked = ["git", "-C", str(self.repository), *words]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def live(folder: Path, tasks: int, seed: int) -> None:
    code = 1
    try:
        code = 0 if Person(folder, tasks, seed).live() else 1
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding
        failed(folder)
    finally:
        os._exit(code)
