"""Settle first: every batch brings what is due in its projects up to `now` before it decides anything."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator

from tenure.core import claims, settle
from tenure.core.commands import Principal
from tenure.core.records import Brief, Claim, Task
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, UnitOfWork

PAGE = 500  # rows a transaction; more are settled in transactions of their own, before


class Report:
    """What a sweep did: things settled, the events that told of it, and rows that a rule of ours could not settle."""

    def __init__(self) -> None:
        self.settled = 0
        self.told: Counter[str] = Counter()  # kinds of events
        self.failed: dict[str, str] = {}
        self.more = False

    def add(self, other: Report) -> None:
        self.settled += other.settled
        self.told += other.told
        self.failed |= other.failed


def settle_due(work: UnitOfWork, projects: Iterable[str], report: Report, limit: int | None = None) -> None:
    """Settle all that is due in these projects, or at most `limit` things (`report.more` then says that more wait).

    An error on one row is kept apart: the row stays as it is, the rest goes on.
    """
    for project in projects:
        if not work.tx.is_due(project):
            continue
        queue = _Queue(work, project)
        for id in queue:
            if limit is not None and report.settled >= limit:
                report.more = True
                return
            settle_apart(work, project, id, report)
            queue.take_overdue(report)


class _Queue:
    """What is due in a project, in the order in which it fell due, whichever row it is on.

    One thing at a time: a row's second due thing may come after another row's first, and both may touch a third.
    """

    def __init__(self, work: UnitOfWork, project: str) -> None:
        self.work, self.project = work, project
        self.heap: list[tuple[int, str]] = []
        self.seen: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        while True:
            asked = PAGE + len(self.seen)  # the store still shows those that this work has settled
            page = self.work.tx.due(self.project, self.work.now, asked)
            for row in page:
                if row.id not in self.seen:
                    self._push(row)
            is_last = len(page) < asked
            until = self.work.now if is_last else page[-1].due_at or 0  # beyond it lies what was not read yet
            while self.heap and self.heap[0][0] <= until:
                yield heapq.heappop(self.heap)[1]
            if is_last:
                return

    def take_overdue(self, report: Report) -> None:
        """What the last thing left due: more on its own row, or on those that it touched."""
        while self.work.overdue:
            project, id = self.work.overdue.pop()
            task = self.work.get(Task, project, id)
            if task is not None and id not in report.failed:
                self._push(task)

    def _push(self, task: Task) -> None:
        self.seen.add(task.id)
        if task.due_at is not None and task.due_at <= self.work.now:
            heapq.heappush(self.heap, (task.due_at, task.id))


def settle_overdue(work: UnitOfWork) -> None:
    """What an earlier command of the batch left due at this very `now`: one by one it would have been settled."""
    if not work.overdue:
        return
    work.begin_command(Principal(), None)  # what time brings is not the doing of the command before
    report = Report()
    heap: list[tuple[int, str, str]] = []
    while work.overdue or heap:
        while work.overdue:
            project, id = work.overdue.pop()
            task = work.get(Task, project, id)
            if task is not None and task.due_at is not None and task.due_at <= work.now and id not in report.failed:
                heapq.heappush(heap, (task.due_at, project, id))
        if heap:
            _, project, id = heapq.heappop(heap)
            settle_apart(work, project, id, report)


def settle_apart(work: UnitOfWork, project: str, id: str, report: Report) -> None:
    """Settle one thing of one row, with all that follows from it for others."""
    bookmark = work.bookmark()
    try:
        task = work.get(Task, project, id)
        if task is not None and settle_once(work, task) is not None:
            spread(work)
            report.told.update(event.kind for event in work.events[bookmark[1] :])
        report.settled += 1
    except OUR_FAULTS as error:
        work.undo_to(bookmark)
        report.failed[id] = f"{type(error).__name__}: {error}"
    finally:
        work.instant = work.now


def settle_once(work: UnitOfWork, task: Task) -> Task | None:
    """The row after the earliest thing that is due on it, with `work.instant` at that moment; None without any."""
    claim = brief = None
    if settle.needs_claim(task):
        claim = work.get(Claim, task.project, claims.claim_id(task.id, task.generation))
        brief = work.get(Brief, task.project, task.id)
        assert claim is not None, f"{task.key} is held without its claim"
        assert brief is not None, f"{task.key} has no brief"
    due = settle.settle(task, claim, brief, work.epoch, work.now, work.chance.fraction())
    if due is None:
        if task.due_at is not None and task.due_at <= work.now:  # its place in the order has changed
            ranked = work.put(task)
            assert ranked.due_at is None or ranked.due_at > work.now, f"{task.key} stays due at {ranked.due_at}"
        return None
    work.instant = due.at
    return work.record(
        due.kind, *([due.claim] if due.claim else []), task=due.task, details=due.details,
        agent=task.agent, session=task.session,
        level="warning" if due.claim or due.kind in ("task.warned", "task.deadline_missed") else "info",
    )  # fmt: skip
