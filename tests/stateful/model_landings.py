"""The model's results that are to be landed: who takes them, and what ends it. Edits of what was asked are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.stateful.model_repeats import Repeats
from tests.stateful.model_rows import Answer, Claim, Receipt, Task, overlap

MOST_TRIES = 5
LANDING = ("take_landing", "record_landing", "settle_landing", "block_landing")


@dataclass
class Waits:
    """A result that has passed; its taker may have begun to land it."""

    claim: Claim
    data: Any
    since: int
    taker: int = 0
    epoch: int = 0
    holder: str | None = None
    until: int = 0
    tries: int = 0
    retry_at: int = 0
    begun: bool = False
    over: str | None = None  # passed, refused or withdrawn


class Landings(Repeats):
    def __init__(self, now: int, fraction: float = 0.5) -> None:
        super().__init__(now, fraction)
        self.takers: dict[str, tuple[str, Waits, int, int]] = {}  # name → task, what it took, which taker, epoch

    def submit_to_land(self, receipt: Receipt, data: Any) -> Answer:
        task, claim, refusal = self._check(receipt, "submit")
        if refusal or claim.unseen:
            return self.submit(receipt, data)
        self._end(task, "SUBMITTED")
        task.state, task.waits = "validating", Waits(claim, data, self.now)
        task.has_waited = True
        return {"outcome": "VALIDATING", "state": "validating", "generation": claim.generation}

    # --- takers -------------------------------------------------------------------------------------------

    def take_landing(self, taker: str, checker: str, lease: int, task: str | None = None) -> Answer:
        if task is not None:
            wanted = self._named(task)
            if wanted.state != "validating":
                return {"outcome": "DENIED_STATE"}
            if self._is_taken(wanted.waits):
                return {"outcome": "DENIED_ACTIVE_CLAIM", "holder": wanted.waits.holder}
            if self._is_given_up(wanted.waits):
                self._give_up(wanted)
                return {"outcome": "DENIED_PAUSED", "state": "paused"}
            return self._take(wanted, taker, checker, lease)
        found = [t for t in self.tasks.values() if t.state == "validating"]
        for one in sorted(found, key=lambda t: (t.priority, t.waits.since, self._age(t))):
            if self._is_taken(one.waits) or one.waits.retry_at > self.now:
                continue
            if not self._is_given_up(one.waits):
                return self._take(one, taker, checker, lease)
            self._give_up(one)
        return {"outcome": "NO_TASK"}

    def _take(self, task: Task, taker: str, checker: str, lease: int) -> Answer:
        waits = task.waits
        waits.taker, waits.tries, waits.retry_at, waits.epoch = waits.taker + 1, waits.tries + 1, 0, self.epoch
        waits.holder, waits.until = checker, self.now + lease
        self.takers[taker] = (task.name, waits, waits.taker, self.epoch)
        return {"outcome": "GRANTED", "generation": waits.taker, "lease_until": waits.until, "state": "validating"}

    def _is_taken(self, waits: Waits) -> bool:
        return waits.holder is not None and waits.until > self.now and waits.epoch == self.epoch

    @staticmethod
    def _is_given_up(waits: Waits) -> bool:
        return waits.tries >= MOST_TRIES and not waits.begun

    def _give_up(self, task: Task) -> None:
        task.waits.holder, task.waits.retry_at = None, 0
        self._pause(task, "review")

    def _judged(self, taker: str) -> tuple[Task, Waits, str | None]:
        name, waits, number, epoch = self.takers[taker]
        task = self.tasks[name]
        code = None
        if epoch != self.epoch or waits.epoch != self.epoch:
            code = "STALE_EPOCH"
        elif number != waits.taker:
            code = "STALE_GENERATION"
        elif task.state == "cancelled":
            code = "TASK_CANCELLED"
        elif waits.over or waits.claim is not task.claims[-1] or waits.holder is None:
            code = "NO_CLAIM"
        elif task.state != "validating":
            code = "DENIED_PAUSED"
        return task, waits, code

    def record_landing(self, taker: str, new: str) -> Answer:
        task, waits, code = self._judged(taker)
        if code:
            return {"outcome": code}
        waits.begun = True
        return {"outcome": "OK", "state": task.state}

    def settle_landing(self, taker: str, how: str) -> Answer:
        task, waits, code = self._judged(taker)
        if code == "NO_CLAIM" and waits.over == ("passed" if how == "ok" else "refused"):
            return {"outcome": "ACCEPTED" if how == "ok" else "OK", "again": True}
        if code:
            return {"outcome": code}
        task.waits = None
        claim = waits.claim
        if how == "ok":
            waits.over = "passed"
            self._complete(task, claim, waits.data)
            self.agents[claim.agent].troubles = self.agents[claim.agent].cool_until = 0
            return {"outcome": "ACCEPTED", "generation": claim.generation}
        waits.over, claim.accepted = "refused", False
        if how == "red":
            task.causes.discard("review")
            self._failed(task, "invalid_output", self.now)
            return {"outcome": "OK", "state": task.state}
        attempts = task.attempts  # the delay is that of the attempt, also where it is given back
        delay = self._delay(task)
        if task.given_back < 10:
            task.given_back, task.attempts = task.given_back + 1, attempts - 1
        elif self._counted_in_a_conflict(task):
            return {"outcome": "OK", "state": task.state}
        self._free(task, self.now)
        self._retry_at(task, self.now + delay)
        return {"outcome": "OK", "state": task.state}

    def _counted_in_a_conflict(self, task: Task) -> bool:
        failures = [*task.failures]
        is_last = self._counted(task, self.now, None)
        task.failures = failures
        return is_last

    def block_landing(self, taker: str, blocked: bool, retry_after: int) -> Answer:
        task, waits, code = self._judged(taker)
        if code:
            return {"outcome": code}
        waits.holder, waits.begun, waits.tries = None, False, waits.tries - blocked
        waits.retry_at = self.now + retry_after
        if self._is_given_up(waits):
            self._give_up(task)
        return {"outcome": "OK", "state": task.state}

    # --- what others do to it -----------------------------------------------------------------------------

    @staticmethod
    def reserves(task: Task) -> bool:
        """What it touches stays reserved until its result is landed or refused."""
        is_open = task.state == "validating" or (task.state, task.before) == ("paused", "validating")
        return task.held or bool(is_open and task.waits and task.touches)

    def _in_the_way(self, patterns: Iterable[str], mode: str, task: Task | None, session: str) -> bool:
        held = [t.claims[-1].holds for t in self.tasks.values() if not t.held and t is not task and self.reserves(t)]
        mine = any(
            overlap(pattern, other)
            for pattern in patterns
            for holds in held
            for other, how in holds.items()
            if (mode, how) != ("shared", "shared")
        )
        return mine or super()._in_the_way(patterns, mode, task, session)

    def _has_begun(self, task: Task) -> bool:
        return bool(task.waits and task.waits.begun and task.state in ("validating", "paused"))

    def _cancel(self, task: Task, at: int, by: str | None) -> None:
        if not self._has_begun(task):
            super()._cancel(task, at, by)

    def _come_back(self, task: Task) -> None:
        if task.was == "validating":
            task.archived, task.state = False, "validating"
        else:
            super()._come_back(task)

    def _lift(self, task: Task, causes: set[str]) -> None:
        if (task.state, task.before) == ("paused", "validating") and not task.causes - causes:
            task.causes, task.state = set(), "validating"
            task.waits.tries = task.waits.retry_at = 0
        else:
            super()._lift(task, causes)

    def _start_over(self, task: Task) -> None:
        if task.waits:
            task.waits.over, task.waits.claim.accepted, task.waits = "withdrawn", False, None
        super()._start_over(task)
