"""Settle first: every batch brings the due rows of its projects up to `now` before it decides anything.

What it is. Leases expire, retries fall due, offers and pauses end, deadlines pass, hung holders are aborted: all at a
time, without a command. No process has to run for that. Each row knows when something on it falls due next (`due_at`,
indexed), and each transaction settles the due rows of its projects before its first command, at the transaction's own
`now`. Queries do the same on rows that are never saved. The sweep (`duties/sweep.py`) runs this code too; it only makes
events prompt.

Restated rules. None. The rules are in `core/settle.py`: `settle` applies the earliest item that is due on one row,
`stamp` computes `due_at` at every write. This module only finds due rows, orders them, and applies the effects on other
rows (`effects.spread`).

Why it is safe.
- No answer depends on the sweep. A command at `now` sees the same rows whether the sweep ran a second ago or never: the
  item is applied at the instant at which it fell due (`work.instant`), and later times, such as a retry's delay, count
  from that instant.
- Items are applied in the order in which they fell due, across all rows of the project, one at a time. A row's second
  item may come after another row's first, and both may touch a third row. `_Queue` is therefore a heap that takes up
  what each item left due (`work.overdue`).
- The store still returns rows that this transaction has settled but not written. `_Queue.seen` skips them, and each
  page is larger by their number, so that a page full of them cannot hide the others.
- A batch is equal to its commands one by one: `settle_overdue` runs between two commands and settles what the first
  left due at the same `now`. Its events belong to no principal.
- More than PAGE due rows are settled in separate transactions before the batch, so that no transaction grows without
  bound. Each of them is complete in itself.
- A rule that fails on one row must not block a project. The error is confined to the row (`undo_to`) and reported by
  the sweep; the row stays due and all others are settled.
- Settling is idempotent: a settled row has a later `due_at`, or none. An assertion in `settle_once` holds every rule to
  that.

Which tests prove it.
- `tests/core/test_settle.py`: settled twice is settled once, for generated rows.
- `tests/stateful/test_model.py` plays histories with sweeps never, sometimes and after every turn, and one by one or in
  batches: the answers must be equal.
- `testing/engine/upkeep.py`: more than a page of due rows; a page of rows that cannot be settled.

What a new field must do. A field that holds a time at which something happens without a command goes into `due_at` of
`core/settle.py` and gets a branch in `settle` there. That branch must move or clear the field, so that the row is not
due again at once, and must return the event with the instant at which the item fell due.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator

from tenure.core import claims, settle
from tenure.core.commands import Principal
from tenure.core.records import Brief, Claim, Task
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, UnitOfWork

PAGE = 500  # rows per transaction; more are settled in separate transactions first


class Report:
    """What a sweep did: the number settled, the kinds of events, and rows that one of our rules could not settle."""

    def __init__(self) -> None:
        self.settled = 0
        self.events: Counter[str] = Counter()  # by kind of event
        self.failed: dict[str, str] = {}
        self.more = False

    def add(self, other: Report) -> None:
        self.settled += other.settled
        self.events += other.events
        self.failed |= other.failed


def settle_due(work: UnitOfWork, projects: Iterable[str], report: Report, limit: int | None = None) -> None:
    """Settle everything due in these projects, or at most `limit` items (`report.more`: more are waiting).

    An error is confined to its row: the row stays as it is and the others are settled.
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
    """The due items of a project, in the order in which they fell due, across all rows.

    One item at a time: a row's second item may come after another row's first, and both may touch a third row.
    """

    def __init__(self, work: UnitOfWork, project: str) -> None:
        self.work, self.project = work, project
        self.heap: list[tuple[int, str]] = []
        self.seen: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        while True:
            asked = PAGE + len(self.seen)  # the store still returns rows that this unit of work has settled
            page = self.work.tx.due(self.project, self.work.now, asked)
            for row in page:
                if row.id not in self.seen:
                    self._push(row)
            is_last = len(page) < asked
            until = self.work.now if is_last else page[-1].due_at or 0  # later items were not read yet
            while self.heap and self.heap[0][0] <= until:
                yield heapq.heappop(self.heap)[1]
            if is_last:
                return

    def take_overdue(self, report: Report) -> None:
        """Queue what the last item left due: more on its own row, or on the rows that it touched."""
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
    """Settle what an earlier command of the batch left due at this `now`, as if the commands ran one by one."""
    if not work.overdue:
        return
    work.begin_command(Principal(), None)  # settling is not the act of the previous command
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
    """Settle one item of one row, with all its effects on others."""
    bookmark = work.bookmark()
    try:
        task = work.get(Task, project, id)
        if task is not None and settle_once(work, task) is not None:
            spread(work)
            report.events.update(event.kind for event in work.events[bookmark[1] :])
        report.settled += 1
    except OUR_FAULTS as error:
        work.undo_to(bookmark)
        report.failed[id] = f"{type(error).__name__}: {error}"
    finally:
        work.instant = work.now


def settle_once(work: UnitOfWork, task: Task) -> Task | None:
    """The row after its earliest due item, with `work.instant` at that moment; None if nothing is due."""
    claim = brief = None
    if settle.needs_claim(task):
        claim = work.get(Claim, task.project, claims.claim_id(task.id, task.generation))
        brief = work.get(Brief, task.project, task.id)
        assert claim is not None, f"{task.key} is held without its claim"
        assert brief is not None, f"{task.key} has no brief"
    due = settle.settle(task, claim, brief, work.epoch, work.now, work.chance.fraction())
    if due is None:
        if task.due_at is not None and task.due_at <= work.now:  # its position in the order has changed
            ranked = work.put(task)
            assert ranked.due_at is None or ranked.due_at > work.now, f"{task.key} stays due at {ranked.due_at}"
        return None
    work.instant = due.at
    return work.record(
        due.kind, *([due.claim] if due.claim else []), task=due.task, details=due.details,
        agent=task.agent, session=task.session,
        level="warning" if due.claim or due.kind in ("task.warned", "task.deadline_missed") else "info",
    )  # fmt: skip
