"""The model's ground: time that passes, the graph of dependencies, and how a claim ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.stateful.model_rows import (
    FAILED,
    MOST_GIVEN_BACK,
    SECOND,
    Agent,
    Answer,
    Claim,
    Receipt,
    Refused,
    Task,
)  # fmt: skip


class Ground:
    def __init__(self, now: int, fraction: float = 0.5) -> None:
        self.now = now
        self.fraction = fraction
        self.epoch = 0
        self.tasks: dict[str, Task] = {}
        self.agents: dict[str, Agent] = {}
        self.stopped: set[str] = set()
        self.receipts: dict[str, Receipt] = {}
        self.requests: dict[str, Answer] = {}  # granted claims by request id

    def do(self, verb: str, /, **arguments: Any) -> Answer:
        self.settle()
        try:
            return getattr(self, verb)(**arguments)
        except Refused as refused:
            return {"error": refused.code}

    # --- time ---------------------------------------------------------------------------------------------

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
        if self._is_last(task):
            self._dead_letter(task, at)
        elif task.on_lost == "back_off":
            task.state, task.retry_at = "retrying", at + self._delay(task)
        elif task.on_lost == "hold":
            self._pause(task, "lost")
        else:
            self._open(task, at)

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
        allowed, never = task.retry.get("retry_on", ()), (*task.retry.get("no_retry_on", ()), "permanent")
        is_last = self._is_last(task)
        if is_last or error_class in never or (allowed and error_class not in allowed):
            self._dead_letter(task, at)
        else:
            wait = self._delay(task) if retry_after is None else retry_after
            task.state, task.retry_at = "retrying", at + wait

    @staticmethod
    def _is_last(task: Task) -> bool:
        """A counted attempt has failed: were there as many as there may be, or enough by two agents?"""
        if not task.claims[-1].continues:
            task.failures.append(task.claims[-1].agent)
        poison = task.retry.get("poison", 3)
        is_poison = 0 < poison <= len(task.failures) and len(set(task.failures)) > 1
        return task.attempts >= task.max_attempts or is_poison

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
            if task.held:
                exhausted = task.given_back >= MOST_GIVEN_BACK and task.attempts >= task.max_attempts
                self._end(task, "ERROR", back=True)
                if exhausted:
                    self._dead_letter(task, self.now)
                else:
                    self._open(task, self.now)
            task.answerable = False

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
                task.state, task.offer = "pending", ("", 0)
            elif task.state == "pending" and not self.unmet(task) and task.not_before <= at:
                self._open(task, at)

    def _dead_letter(self, task: Task, at: int) -> None:
        task.state, task.retry_at = "dead_lettered", None
        for dependent in self.dependents(task, "cancel"):
            self._cancel(dependent, at, by=task.name)
        self._look_again(at)

    def _cancel(self, task: Task, at: int, by: str | None) -> None:
        """The task, its subtasks at any depth, and those who chose to be cancelled with it."""
        if task.state in ("completed", "cancelled"):
            return
        task.was = task.state
        if task.held:
            self._end(task, "CANCELLED", free=True)
        task.state, task.cancelled_by, task.answerable, task.offer = "cancelled", by, False, ("", 0)
        for other in [*self.descendants(task), *self.dependents(task, "cancel")]:
            self._cancel(other, at, by)
        self._look_again(at)

    def _complete(self, task: Task, claim: Claim, data: Any) -> None:
        task.state, task.answerable, task.retry_at, task.offer = "completed", False, None, ("", 0)
        task.pauses = set()
        claim.accepted = True
        claim.accepted_data.append(data)
        self._look_again(self.now)

    def _start_over(self, task: Task) -> None:
        task.run += 1
        task.archived = False
        task.attempts = task.given_back = 0
        task.answerable = False
        task.troubled, task.cool_offs, task.failures = set(), {}, []
        self._open(task, self.now)
        self._look_again(self.now)

    # --- how claims end -------------------------------------------------------------------------------------------

    @staticmethod
    def _pause(task: Task, cause: str) -> None:
        """One cause more; where it was before the first is where it goes on."""
        if task.state != "paused":
            task.before, task.state, task.offer = "ready" if task.held else task.state, "paused", ("", 0)
        task.pauses.add(cause)

    def _end(
        self, task: Task, reason: str, *, back: bool = False, free: bool = False, by: str | None = None
    ) -> None:  # fmt: skip
        claim = task.claims[-1]
        claim.reason, claim.by = reason, by
        task.answerable = reason in ("EXPIRED", "PAUSED")
        if back:
            self._give_back(task)
        if free:
            self._undo_attempt(task)

    def _give_back(self, task: Task) -> None:
        if task.given_back < MOST_GIVEN_BACK:
            self._undo_attempt(task)
            task.given_back += 1

    @staticmethod
    def _undo_attempt(task: Task) -> None:
        task.attempts -= 1
        if task.claims[-1].continues:
            task.failures.pop()

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
