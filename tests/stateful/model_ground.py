"""The model's ground: time that passes, the graph of dependencies, and how a claim ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tests.stateful.model_rows import (
    FAILED,
    MOST_GIVEN_BACK,
    NO_OFFER,
    POISON,
    SECOND,
    Agent,
    Alone,
    Answer,
    Claim,
    Mail,
    Receipt,
    Refused,
    Task,
)  # fmt: skip


class Ground:
    def __init__(self, now: int, fraction: float = 0.5) -> None:
        self.now = self.clock = now
        self.fraction = fraction
        self.epoch = 0
        self.tasks: dict[str, Task] = {}
        self.agents: dict[str, Agent] = {}
        self.stopped: set[str] = set()
        self.receipts: dict[str, Receipt] = {}
        self.requests: dict[str, Answer] = {}  # granted claims by request id
        self.alone: dict[str, Alone] = {}  # reservations without a claim, by the name of their receipt
        self.mail: list[Mail] = []

    def do(self, verb: str, /, **arguments: Any) -> Answer:
        self.settle()
        try:
            return getattr(self, verb)(**arguments)
        except Refused as refused:
            return {"error": refused.code}

    # --- time ---------------------------------------------------------------------------------------------

    def advance(self, span: int) -> None:
        self.clock += span
        self.now = max(self.now, self.clock)

    def jump_back(self, span: int) -> None:
        """The clock goes back right after something happened: time stands still until it has caught up."""
        self.clock -= span

    def settle(self) -> None:
        while dues := [due for due in self._dues() if due[0] <= self.now]:
            at, _, task = min(dues, key=lambda due: due[:2])
            self._come_due(task, at)

    def next_due(self) -> int | None:
        return min((at for at, _, _ in self._dues()), default=None)

    def _dues(self) -> Iterator[tuple[int, int, Task]]:
        """What will come due: the instant, and the task's age to choose between those of the same instant."""
        for age, task in enumerate(self.tasks.values()):
            if task.held:
                yield self._held_until(task), age, task
            elif task.state == "retrying":
                yield task.retry_at or 0, age, task
            elif task.state == "pending" and not self.unmet(task):
                yield task.not_before, age, task

    def _come_due(self, task: Task, at: int) -> None:
        if not task.held:
            self._open(task, at)
            return
        if at < task.claims[-1].until:
            self._abort(task, at)
            return
        self._end(task, "EXPIRED")
        task.losses += 1
        if self._counted(task, at, "lease_expired", by_class=False):
            return
        self._free(task, at)
        if task.on_lost == "back_off":
            self._retry_at(task, at + self._delay(task))
        elif task.on_lost == "hold":
            self._pause(task, "lost")

    @staticmethod
    def _held_until(task: Task) -> int:
        claim = task.claims[-1]
        return min(claim.until, claim.at + (task.max_duration or claim.until))

    def _abort(self, task: Task, at: int) -> None:
        """Taken away: counts as a timed-out attempt, and is offered sooner then, but never made critical."""
        self._end(task, "SUPERSEDED")
        self._failed(task, "timeout", at)
        if task.priority > 10:
            task.priority = max(10, task.priority - 10)

    def _failed(self, task: Task, error_class: str, at: int, retry_after: int | None = None) -> None:
        """A counted attempt has failed: another follows after a delay, unless they are used up or not wanted."""
        if not self._counted(task, at, error_class):
            self._free(task, at)
            self._retry_at(task, at + (self._delay(task) if retry_after is None else retry_after))

    def _counted(self, task: Task, at: int, error_class: str | None, by_class: bool = True) -> bool:
        """Whether an attempt that came to nothing was the last; then it is a dead letter now.

        Used up, of a class that is not retried, or a poison pill: three failures, by two agents or more.
        """
        claim = task.claims[-1]
        if error_class and not claim.goes_on:
            task.failures.append(claim.agent)
        poison = len(task.failures) >= POISON and len(set(task.failures)) >= 2
        unwanted = by_class and error_class is not None and not self._is_retried(task, error_class)
        is_last = task.attempts >= task.max_attempts or poison or unwanted
        if is_last:
            self._dead_letter(task, at)
        return is_last

    @staticmethod
    def _is_retried(task: Task, error_class: str) -> bool:
        allowed, never = task.retry.get("retry_on", ()), (*task.retry.get("no_retry_on", ()), "permanent")
        return error_class not in never and (not allowed or error_class in allowed)

    # --- what holds a task back ---------------------------------------------------------------------------

    def _free(self, task: Task, at: int) -> None:
        """Nobody holds it now: it waits, or is paused if it was to be drained."""
        if task.causes:
            task.state, task.before, task.retry_at = "paused", "ready", None
        else:
            self._open(task, at)

    def _retry_at(self, task: Task, at: int) -> None:
        if task.state == "paused":
            task.before = "retrying"
        else:
            task.state = "retrying"
        task.retry_at = at

    @staticmethod
    def _pause(task: Task, cause: str) -> None:
        """One cause more, whatever else holds it back."""
        task.causes.add(cause)
        if task.state != "paused":
            task.before, task.state, task.offer = task.state, "paused", NO_OFFER

    def _lift(self, task: Task, causes: set[str]) -> None:
        """Without these causes; it goes on from where it was when the last is gone."""
        task.causes -= causes
        if task.state != "paused" or task.causes:
            return
        if task.before == "retrying" and (task.retry_at or 0) > self.now:
            task.state = "retrying"
        else:
            self._open(task, self.now)

    def _delay(self, task: Task) -> int:
        policy = {"strategy": "exponential", "initial_delay": 10, "multiplier": 2.0, "cap": 300,
                  "jitter": 0.5} | task.retry  # fmt: skip
        if policy["strategy"] == "immediate":
            return 0
        factor = policy["multiplier"] ** (task.attempts - 1) if policy["strategy"] == "exponential" else 1
        delay = min(policy["cap"], policy["initial_delay"] * factor)
        return int(delay * SECOND * (1 + policy["jitter"] * (2 * self.fraction - 1)))

    def new_epoch(self) -> None:
        """After a restore: older receipts are void, what was held is free again."""
        self.settle()
        self.epoch += 1
        for task in self.tasks.values():
            if task.held and not self._end_given_back(task, "ERROR"):
                self._free(task, self.now)
            task.late_submit_open = False
        self.alone.clear()

    # --- the graph ----------------------------------------------------------------------------------------

    def unmet(self, task: Task) -> list[Task]:
        """What it waits for: dependencies not completed, and not failed under an edge that ignores it."""
        needed = [(self.tasks[name], on_failure) for name, on_failure in task.needs.items()]
        return [
            other
            for other, on_failure in needed
            if other.state != "completed" and not (on_failure == "ignore" and other.state in FAILED)
        ]

    def dependents(self, task: Task, *edges: str) -> list[Task]:
        return [t for t in self.tasks.values() if task.name in t.needs and (not edges or t.needs[task.name] in edges)]

    def children(self, task: Task) -> list[Task]:
        return [t for t in self.tasks.values() if t.parent == task.name]

    def descendants(self, task: Task) -> list[Task]:
        return [t for child in self.children(task) for t in (child, *self.descendants(child))]

    def _reaches(self, start: str, goal: str) -> bool:
        return start == goal or any(self._reaches(name, goal) for name in self.tasks[start].needs)

    def _longest_path_below(self, task: Task) -> int:
        return max((1 + self._longest_path_below(t) for t in self.dependents(task)), default=0)

    def _open(self, task: Task, at: int) -> None:
        task.state = "pending" if self.unmet(task) or task.not_before > at else "ready"
        task.ready_at = at
        task.retry_at = None

    def _look_again(self, at: int) -> None:
        """After a dependency has moved: who waited for nothing else is ready, who was ready may have to wait."""
        for task in self.tasks.values():
            if task.state == "ready" and self.unmet(task):
                task.state, task.offer = "pending", NO_OFFER  # an offer is of a ready task
            elif task.state == "pending" and not self.unmet(task) and task.not_before <= at:
                self._open(task, at)

    def _dead_letter(self, task: Task, at: int) -> None:
        task.state, task.retry_at, task.causes, task.late_submit_open = "dead_lettered", None, set(), False
        task.offer = NO_OFFER
        for dependent in self.dependents(task, "cancel"):
            self._cancel(dependent, at, by=task.name)
        self._look_again(at)

    def _cancel(self, task: Task, at: int, by: str | None) -> None:
        """The task, its subtasks at any depth, and those who chose to be cancelled with it."""
        if task.state in ("completed", "cancelled"):
            return
        if task.held:
            self._end(task, "CANCELLED", free=True)
            if task.causes:
                self._free(task, at)
        task.was = task.state
        task.state, task.cancelled_by, task.late_submit_open, task.offer = "cancelled", by, False, NO_OFFER
        for other in [*self.descendants(task), *self.dependents(task, "cancel")]:
            self._cancel(other, at, by)
        self._look_again(at)

    def _complete(self, task: Task, claim: Claim, data: Any) -> None:
        task.state, task.late_submit_open, task.retry_at, task.offer = "completed", False, None, NO_OFFER
        task.causes = set()
        claim.accepted = True
        claim.accepted_data.append(data)
        self._look_again(self.now)

    def _start_over(self, task: Task) -> None:
        task.run += 1
        task.archived = False
        task.attempts = task.given_back = 0
        task.failures = []
        task.late_submit_open = False
        task.troubled, task.cool_offs, task.causes = set(), {}, set()
        self._open(task, self.now)
        self._look_again(self.now)

    def _suffer(self, task: Task, needed: Iterable[str]) -> None:
        """A new edge to what has failed already works as if it failed now."""
        for name in needed:
            other, on_failure = self.tasks[name], task.needs[name]
            if on_failure == "cancel" and other.state in FAILED:
                origin = other.name if other.state == "dead_lettered" else other.cancelled_by
                self._cancel(task, self.now, by=origin)

    def _come_back(self, task: Task) -> None:
        """To the state before it was cancelled; what was held then has no holder now."""
        task.archived = False
        if task.was in ("created", "paused", "dead_lettered"):
            task.state = task.was
        elif task.was == "retrying" and (task.retry_at or 0) > self.now:
            task.state = "retrying"
        else:
            self._open(task, self.now)

    # --- how claims end -------------------------------------------------------------------------------------------

    def _end(self, task: Task, reason: str, *, free: bool = False, by: str | None = None) -> None:
        """`free`: pauses, questions, waiting and persons' verbs never count as attempts."""
        claim = task.claims[-1]
        claim.reason, claim.by = reason, by
        task.late_submit_open = reason in ("EXPIRED", "PAUSED")
        if free:
            self._take_back(task)

    def _end_given_back(self, task: Task, reason: str, by: str | None = None) -> bool:
        """The attempt is given back, at most ten times a run; later ones count. Whether that was the last."""
        self._end(task, reason, by=by)
        if task.given_back < MOST_GIVEN_BACK:
            self._give_back(task)
            return False
        return self._counted(task, self.now, None)

    def _give_back(self, task: Task) -> None:
        task.given_back += 1
        self._take_back(task)

    @staticmethod
    def _take_back(task: Task) -> None:
        """As if it had not been tried, with the failure of the lost claim that it went on from."""
        task.attempts -= 1
        if task.claims[-1].goes_on and task.failures:
            task.failures.pop()

    def _supersede(self, task: Task) -> None:
        """A person takes it away: also what was asked of its holder is over."""
        self._end(task, "SUPERSEDED", free=True)
        task.causes = set()

    # --- names ---------------------------------------------------------------------------------------------

    def _named(self, name: str) -> Task:
        if name not in self.tasks:
            raise Refused("NOT_FOUND")
        return self.tasks[name]

    def _make(self, name: str, **fields: Any) -> Task:
        parent = self.tasks.get(fields.get("parent") or "")
        if parent:
            track, sequence = parent.track, parent.sequence
            ref = f"{parent.ref}::{len(self.children(parent)) + 1}"
        else:
            track = fields.pop("track", "A")
            sequence = 1 + sum(t.track == track and t.parent is None for t in self.tasks.values())
            ref = f"{track}-{sequence:03d}"
        task = Task(name=name, ref=ref, track=track, sequence=sequence, state="created", created_at=self.now, **fields)
        self.tasks[name] = task
        return task
