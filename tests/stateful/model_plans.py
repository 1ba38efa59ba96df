"""The model's plans, and what undo puts back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tests.stateful.model_budgets import Budgets
from tests.stateful.model_rows import UNSTARTED, Answer, Refused, Task

SAME, UNCLEAR, MOVED = "same", "unclear", "moved"


@dataclass
class Done:
    """A command that had an effect, as undo finds it."""

    verb: str
    before: dict[str, Task]
    since: dict[str, str]  # the tasks that it changed, and what has happened to them since


class Plans(Budgets):
    def __init__(self, now: int, fraction: float = 0.5) -> None:
        super().__init__(now, fraction)
        self.done: dict[str, Done] = {}

    # --- plans --------------------------------------------------------------------------------------------

    def plan(self, plan: str, tasks: list[dict[str, Any]], prune: bool = False) -> Answer:
        """A dag of that name. Applied again: new ones are made, changed ones edited unless somebody began them."""
        kept = deepcopy(self.tasks)
        try:
            return self._apply(plan, {t["name"]: t for t in tasks}, prune)
        except Refused:
            self.tasks = kept
            raise

    def _apply(self, plan: str, wanted: dict[str, dict[str, Any]], prune: bool) -> Answer:
        mine = [t for t in self.tasks.values() if t.name.startswith(f"{plan}.") and t.parent is None]
        there = {t.name.removeprefix(f"{plan}."): t for t in mine}
        edges = {name: self._edges(plan, wanted, t) for name, t in wanted.items()}
        for name, task in there.items():  # a subtask is waited for in any case
            if name in edges:
                edges[name] = {n: how for n, how in edges[name].items() if n not in self._children(task)}
        changed = {
            name: task
            for name, task in there.items()
            if name in wanted and self._differs(task, wanted[name], edges[name])
        }
        edited = {n: t for n, t in changed.items() if not t.claims and t.state in UNSTARTED}
        left = [t for n, t in changed.items() if n not in edited]
        added = {name: self._drop_edges(task, edges[name]) for name, task in edited.items()}  # first: no false cycles
        made = [self._make(f"{plan}.{name}", priority=t.get("priority", 50)) for name, t in wanted.items()
                if name not in there]  # fmt: skip
        for task in made:
            task.needs = dict(edges[task.name.removeprefix(f"{plan}.")])
        if any(self._reaches(needed, task.name) for task in made for needed in task.needs):
            raise Refused("CYCLE")
        for task in made:
            self._open(task, self.now)
        for task in made:
            if task.state != "cancelled":
                self._suffer(task, task.needs)
        self._look_again(self.now)
        for name, task in edited.items():
            task.text += bool(task.description)
            task.priority, task.another_spec, task.description = wanted[name].get("priority", 50), False, 0
            self._add_edges(task, added[name])
        gone = [t for name, t in there.items() if name not in wanted and t.state not in ("completed", "cancelled")]
        for task in [*gone] if prune else ():
            if not task.claims:
                gone.remove(task)
                edited[task.name] = task
                self._cancel(task, self.now, by=None)
        outcome = "CREATED" if made and not there else "UPDATED" if made or edited else "UNCHANGED"
        return {
            "outcome": outcome,
            "tasks": [t.ref for t in made],
            "changed_keys": {t.ref for t in edited.values()},
            "left": {t.ref for t in left},
            "missing": {t.ref for t in gone},
        }

    def _edges(self, plan: str, wanted: dict[str, Any], task: dict[str, Any]) -> dict[str, str]:
        return {f"{plan}.{name}" if name in wanted else name: how for name, how in task.get("needs", ())}

    def _children(self, task: Task) -> set[str]:
        return {t.name for t in self.tasks.values() if t.parent == task.name}

    def _differs(self, task: Task, new: dict[str, Any], edges: dict[str, str]) -> bool:
        own = {n: how for n, how in task.needs.items() if n not in self._children(task)}
        as_planned = (task.priority, own) == (new.get("priority", 50), edges)
        return not as_planned or bool(task.another_spec or task.description)

    def _drop_edges(self, task: Task, new: dict[str, str]) -> dict[str, str]:
        """The edges to add, once those that are no longer wanted are gone."""
        for name, how in [*task.needs.items()]:
            if name not in self._children(task) and new.get(name) != how:
                del task.needs[name]
        self._look_again(self.now)
        return {name: how for name, how in new.items() if name not in task.needs}

    def _add_edges(self, task: Task, new: dict[str, str]) -> None:
        for name, how in new.items():
            if self._reaches(name, task.name):
                raise Refused("CYCLE")
            task.needs[name] = how
            self._suffer(task, [name])
            self._look_again(self.now)

    def dags(self) -> dict[str, str]:
        """Plan → how its dag stands: with its subtasks it has ended once nothing in it can go on."""
        found: dict[str, list[Task]] = {}
        for task in self.tasks.values():
            top = task
            while top.parent:
                top = self.tasks[top.parent]
            plan, dot, _ = top.name.partition(".")
            if dot:
                found.setdefault(plan, []).append(task)
        return {plan: self._status(tasks) for plan, tasks in found.items()}

    def _status(self, tasks: list[Task]) -> str:
        states = {task.state for task in tasks}
        if states == {"cancelled"}:
            return "cancelled"
        if states <= {"completed", "cancelled"}:
            return "completed"
        ended = ("completed", "cancelled", "dead_lettered", "created")
        waits = [task for task in tasks if task.state == "pending" and self.unmet(task)]
        can_go_on = any(task.state not in ended and task not in waits for task in tasks)
        return "failed" if "dead_lettered" in states and not can_go_on else "open"

    # --- undo ---------------------------------------------------------------------------------------------

    def do(self, verb: str, /, mark: str | None = None, **arguments: Any) -> Answer:
        """`mark`: the name by which an undo may speak of this command later."""
        self.settle()
        before = deepcopy(self.tasks) if mark else {}
        with self._watched({arguments.get("task"), (arguments.get("receipt") or ("",))[0]}):
            answer = super().do(verb, **arguments)
        if (
            mark
            and answer.get("outcome") in ("UPDATED", "CREATED")
            and (verb != "plan" or answer["outcome"] == "CREATED")
        ):
            self.done[mark] = Done(verb, before, dict.fromkeys(self._changed_by(verb, before, arguments), SAME))
        return answer

    def settle(self) -> None:
        with self._watched(set()):
            super().settle()

    def new_epoch(self) -> None:
        with self._watched(set()):
            super().new_epoch()

    @contextmanager
    def _watched(self, spoken_of: set[Any]) -> Iterator[None]:
        """Note which tasks change, and which might have without the model's notice: somebody spoke of them."""
        if not self.done:
            yield
            return
        before = {name: _seen(task) for name, task in self.tasks.items()}
        yield
        for done in self.done.values():
            for name, how in done.since.items():
                if name not in self.tasks or before.get(name) != _seen(self.tasks[name]):
                    done.since[name] = MOVED
                elif name in spoken_of and how == SAME:
                    done.since[name] = UNCLEAR

    def _changed_by(self, verb: str, before: dict[str, Task], arguments: dict[str, Any]) -> list[str]:
        """The tasks to which the command did what undo takes back, in the order in which it did."""
        changes = {
            "cancel": lambda old, new: old.state != "cancelled" == new.state,
            "reset": lambda old, new: old.run != new.run,
            "retry": lambda old, new: old.run != new.run,
        }
        if verb in ("add", "plan"):
            return [name for name in self.tasks if name not in before]
        if verb in changes:
            return [n for n, task in self.tasks.items() if n in before and changes[verb](before[n], task)]
        return [arguments["task"]]

    def is_clear(self, mark: str) -> bool:
        """Whether the model can say what an undo of that command must answer."""
        self.settle()
        if mark not in self.done:
            return False
        since = self.done[mark].since
        # a deadline that passes is told in the task's log, at an instant of which the model knows nothing
        if any((self.tasks[name].deadline or self.now + 1) <= self.now for name in since):
            return False
        return MOVED in since.values() or UNCLEAR not in since.values()

    def _has_opposite(self, done: Done) -> bool:
        """Of the retries only those of dead letters: another state is not put back."""
        if done.verb == "retry":
            return any(done.before[name].state == "dead_lettered" for name in done.since)
        return done.verb != "pause"

    def undo(self, of: str) -> Answer:
        done = self.done[of]
        if not self._has_opposite(done) or MOVED in done.since.values():
            return {"outcome": "CANNOT_UNDO"}
        for name in reversed(done.since):
            task, old = self.tasks[name], done.before.get(name)
            if done.verb in ("add", "plan") or old is None:
                self._cancel(task, self.now, by=None)
                task.cancelled_by = None  # also where something else had cancelled it before
            elif done.verb == "cancel":
                self._come_back(task)
            elif done.verb == "archive":
                task.archived = False
            elif done.verb == "edit":
                task.priority = old.priority
            else:
                task.run, task.attempts, task.given_back = old.run, old.attempts, old.given_back
                task.failures = old.failures
                if done.verb == "reset":
                    task.state = "completed"
                else:
                    self._dead_letter(task, self.now)
            self._look_again(self.now)
        done.since = dict.fromkeys(done.since, MOVED)
        return {"outcome": "UPDATED", "changed_keys": {self.tasks[name].ref for name in done.since}}


def _seen(task: Task) -> tuple[Any, ...]:
    """What changes by an event of the task alone. A lease is renewed, and an offer runs out, without one."""
    claims = [(c.reason, c.refused) for c in task.claims]
    return (
        task.state,
        task.causes.copy(),
        task.text,
        task.run,
        task.attempts,
        task.priority,
        dict(task.needs),
        task.archived,
        claims,
        len(task.kept),
        task.waits and (task.waits.taker, task.waits.begun, task.waits.retry_at, task.waits.holder),
    )
