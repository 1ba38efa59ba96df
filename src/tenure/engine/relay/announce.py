"""Repeats the command of tasks that stay ready, so that a broker need not keep a million of them and may be wiped.

Which tasks were announced is remembered by this process alone: a new leader announces once more, and a claim decides
what a repeated command does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tenure.core import limits
from tenure.core.records import Brief, Project, Sink, Task
from tenure.sinks.envelope import ANNOUNCED_AGAIN, Facts, execute
from tenure.sinks.port import Message

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.stores.port import Transaction

SECOND = 1_000_000
READY_FOR = 60 * SECOND  # before a task is announced again
DEPTH = 50  # of each lane


class _Announced(NamedTuple):
    version: int
    next_at: int
    pause: int


class Announcer:
    """The memory of one relay."""

    def __init__(self) -> None:
        self._announced: dict[str, _Announced] = {}

    def forget(self) -> None:
        """The sink has forgotten everything: announce every ready task at once."""
        self._announced.clear()

    def sweep(self, engine: Engine, row: Sink, *, everything: bool = False) -> list[Message]:
        """The commands to send again. `everything`: also of tasks that have just become ready."""

        def ask(tx: Transaction) -> tuple[list[Message], dict[str, _Announced]]:
            found: list[Message] = []
            kept: dict[str, _Announced] = {}
            for project in tx.find(Project, {}):
                if not row.reads(project.id):
                    continue
                heads = [head.id for lane in tx.lanes(project.id, DEPTH).values() for head in lane]
                tasks = tx.load(Task, [(project.id, id) for id in heads])
                due = [task for task in tasks if self._is_due(task, tx.now, kept, everything=everything)]
                due = due[: limits.ANNOUNCEMENTS - len(found)]
                briefs = {brief.id: brief for brief in tx.load(Brief, [(project.id, task.id) for task in due])}
                for task in due:
                    brief = briefs.get(task.id)
                    facts = Facts(engine.tenant, target=brief.constraints.get("agent_type") if brief else None)
                    found.append(execute(facts, task, task.version, ANNOUNCED_AGAIN, now=tx.now))
                    kept[task.id] = self._again(task, tx.now)
            return found, kept

        found, self._announced = engine.read(ask)
        return found

    def _is_due(self, task: Task, now: int, kept: dict[str, _Announced], *, everything: bool) -> bool:
        before = self._announced.get(task.id)
        if before is None or before.version != task.version:
            return everything or (task.ready_at is not None and task.ready_at + READY_FOR <= now)
        kept[task.id] = before
        return before.next_at <= now

    def _again(self, task: Task, now: int) -> _Announced:
        before = self._announced.get(task.id)
        pause = (
            READY_FOR
            if before is None or before.version != task.version
            else min(before.pause * 2, limits.ANNOUNCED_AGAIN)
        )
        return _Announced(task.version, now + pause, pause)
