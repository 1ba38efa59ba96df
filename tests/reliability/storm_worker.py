"""A worker of the storm: it claims, works, submits, fails, releases or walks away, until it is killed.

It also does what processes do that outlive their leases: it takes over the receipts that killed workers left behind
and submits with them, some at once, most when the lease is long over.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import RetryPolicy, Task, replace
from tenure.engine import Context, Engine
from tenure.stores.open_store import open_store
from tests.reliability.storm_log import Log, estate_of, log_path

PROJECT = "storm"
NAMED = "storm-store"  # the file in a storm's folder that has the URL of its store
LEASE = 1.0  # the shortest there is
RETRY = RetryPolicy(strategy="fixed", initial_delay=0.05, jitter=0.5)
# Of half of the tasks all attempts may be used up; the others end as poison pills before that.
PATIENT = replace(RETRY, poison=0)
TASK = commands.NewTask(title="weather it", max_attempts=4, retry=RETRY)
MOST_TROUBLES = 2  # of a life; three in a row would send the agent away for a minute
MOST_RETRIED = 5


class SystemRandom:
    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def fraction(self) -> float:
        return random.random()


def url_of(folder: Path) -> str:
    """Of the store that was named there; else it is a file of the folder."""
    named = folder / NAMED
    return named.read_text() if named.exists() else f"sqlite://{folder}/tenure.db"


def open_engine(folder: Path) -> Engine:
    url = url_of(folder)
    if url.startswith("postgresql:"):
        url += f"&application_name={NAMED}-{os.getpid()}"  # whoever aims finds the process by it
    return Engine(open_store(url), SystemRandom(), Context(pause=time.sleep))


class Worker:
    """One life. `name` is its agent and session; slot and life number make it unique."""

    def __init__(self, folder: Path, slot: int, life: int, seed: str) -> None:
        self.folder, self.slot, self.life = folder, slot, life
        self.name = f"w{slot}-{life}"
        self.dice = random.Random(f"{seed}/{slot}/{life}")
        self.engine = self.opened()
        self.log = Log(log_path(folder, slot, life))
        self.later: dict[str, float] = {}  # receipts to submit with, each from its time on
        self.count = 0
        self.troubles = 0

    def opened(self) -> Engine:
        return open_engine(self.folder)

    def ask(self, *batch: commands.Command) -> list[Outcome]:
        """The answers; sent and answered are both on file before anything else happens. An error ends the life."""
        ids = [command.request_id or self.new_id() for command in batch]
        self.log.asking(ids, batch)
        answers = self.engine.run(batch)
        self.log.answered(ids, answers)
        for answer in answers:
            if isinstance(answer, TenureError):
                raise answer
        return answers  # type: ignore[return-value]  # outcomes, all of them

    def close(self) -> None:
        self.engine.store.close()
        self.log.close()

    def new_id(self) -> str:
        self.count += 1
        return f"{self.name}:{self.count}"

    # --- what others left ---

    def inherit(self) -> None:
        estate = estate_of(self.folder, self.slot, self.life)
        for receipt, ripe in estate.receipts.items():
            self.later[receipt] = ripe or self.some_time()
        self.log.inherit(self.later)
        for asked in estate.unanswered:
            # The answer was cut off: the same request again must have one effect in all.
            (outcome,) = self.ask(asked.again())
            if outcome.receipt is not None:
                self.later[outcome.receipt] = self.some_time()
            elif asked.command["command"] in ("submit", "fail", "release"):
                self.later.pop(asked.command["receipt"], None)

    def some_time(self) -> float:
        """Now, while the lease may still be live; or when it is over and, most often, another has the task."""
        return time.time() + self.dice.choice((0.0, LEASE, LEASE + 0.2, LEASE + 0.5))

    def haunt(self) -> None:
        """Submit with one of the receipts whose time has come."""
        for receipt, ripe in self.later.items():
            if ripe <= time.time():
                del self.later[receipt]
                self.ask(self.submission(receipt))
                return

    # --- its own work ---

    def live(self) -> None:
        parent = os.getppid()
        self.inherit()
        granted = None
        while os.getppid() == parent:  # or whoever started the storm is gone
            self.haunt()
            if granted is None:
                (granted,) = self.ask(self.claim())
            if granted.receipt is None:
                self.find_work()
                granted = None
            else:
                granted = self.work(granted.receipt)

    def work(self, receipt: str) -> Outcome | None:
        """One task from grant to end; where the last word was fused with the next claim, what that was granted."""
        for _ in range(self.dice.randrange(4)):
            (outcome,) = self.ask(self.sign_of_work(receipt))
            if not outcome.ok:
                break  # lost: hand in what there is, and be refused
        word = self.last_word(receipt)
        if not isinstance(word, commands.Submit) and self.dice.random() < 0.5:
            self.later[receipt] = self.some_time()  # hand something in all the same, later
        if word is None:
            return None
        if self.dice.random() < 0.3:
            return self.ask(word, self.claim())[1]
        self.ask(word)
        return None

    def find_work(self) -> None:
        """A person retries some dead letters, and adds tasks."""
        dead = self.dead_letters()
        retries = [commands.Retry(project=PROJECT, task=task.ref, request_id=self.new_id()) for task in dead]
        self.ask(*retries, self.addition(), self.addition())

    def dead_letters(self) -> list[Task]:
        where = {"project": PROJECT, "state": "dead_lettered"}
        return self.engine.read_settled((PROJECT,), lambda work: work.find(Task, where, limit=MOST_RETRIED))

    # --- commands ---

    def addition(self) -> commands.Command:
        """The title says which request made it: one that was done twice shows."""
        request, retry = self.new_id(), self.dice.choice((RETRY, PATIENT))
        return commands.Add(project=PROJECT, task=replace(TASK, title=request, retry=retry), request_id=request)

    def claim(self) -> commands.Command:
        return commands.ClaimNext(
            project=PROJECT, agent=self.name, session=self.name, lease=LEASE, request_id=self.new_id()
        )

    def submission(self, receipt: str) -> commands.Command:
        request = self.new_id()
        return commands.Submit(project=PROJECT, receipt=receipt, data={"by": request}, request_id=request)

    def sign_of_work(self, receipt: str) -> commands.Command:
        request = self.new_id()
        held: dict[str, Any] = {"project": PROJECT, "receipt": receipt, "request_id": request}
        return self.dice.choice(
            (
                commands.Renew(**held),
                commands.Start(**held),
                commands.Progress(**held, percent=50, step=request),
                commands.SaveCheckpoint(**held, data={"by": request}),
            )
        )

    def last_word(self, receipt: str) -> commands.Command | None:
        """How it ends; None: it walks away with the receipt in its pocket."""
        held: dict[str, Any] = {"project": PROJECT, "receipt": receipt, "request_id": self.new_id()}
        fate = self.dice.random()
        if fate < 0.60:
            return self.submission(receipt)
        if fate < 0.74:
            return commands.Fail(**held, error_class="task", message="as the dice would have it")
        if fate < 0.78 and self.troubles < MOST_TROUBLES:
            self.troubles += 1
            return commands.Fail(**held, error_class="environment", message="not the task's fault")
        return commands.Release(**held) if fate < 0.88 else None
