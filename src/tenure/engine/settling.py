"""Settle first: every batch brings what is due in its projects up to `now` before it decides anything."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core import claims, settle
from tenure.core.records import Brief, Claim, Task
from tenure.engine.effects import spread
from tenure.engine.work import OUR_FAULTS, Work

PAGE = 500  # rows a transaction; more are settled in transactions of their own, before


class Report:
    """What a sweep did: rows settled, and rows that a rule of ours could not settle."""

    def __init__(self) -> None:
        self.settled = 0
        self.failed: dict[str, str] = {}
        self.more = False


def settle_due(work: Work, projects: Iterable[str], report: Report, limit: int | None = None) -> None:
    """Settle all that is due in these projects, or at most `limit` rows (`report.more` then says that more wait).

    An error on one row is kept apart: the row stays as it is, the rest goes on.
    """
    for project in projects:
        seen: set[str] = set()
        while True:
            asked = PAGE + len(seen)  # the store still shows those that this work has settled
            page = work.tx.due(project, work.now, asked)
            for row in page:
                if row.id in seen:
                    continue
                if limit is not None and report.settled + len(report.failed) >= limit:
                    report.more = True
                    return
                seen.add(row.id)
                settle_apart(work, project, row.id, report)
            if len(page) < asked:
                break


def settle_overdue(work: Work) -> None:
    """What an earlier command of the batch left due at this very `now`: one by one it would have been settled."""
    while work.overdue:
        settle_apart(work, *work.overdue.pop(), Report())


def settle_apart(work: Work, project: str, id: str, report: Report) -> None:
    bookmark = work.bookmark()
    try:
        task = work.get(Task, project, id)
        if task is not None:
            settle_task(work, task)
            spread(work)
        report.settled += 1
    except OUR_FAULTS as error:
        work.undo_to(bookmark)
        report.failed[id] = f"{type(error).__name__}: {error}"


def settle_task(work: Work, task: Task) -> Task:
    """Everything that is due on one row, one thing after another."""
    while True:
        claim = brief = None
        if settle.needs_claim(task):
            claim = work.get(Claim, task.project, claims.claim_id(task.id, task.generation))
            brief = work.get(Brief, task.project, task.id)
        due = settle.settle(task, claim, brief, work.epoch, work.now, work.chance.fraction())
        if due is None:
            # only its place in the order has changed, if anything
            return work.put(task) if task.due_at is not None and task.due_at <= work.now else task
        kept = work.record(
            due.kind, *([due.claim] if due.claim else []), task=due.task, at=due.at, details=due.details,
            agent=task.agent, session=task.session,
            level="warning" if due.claim or due.kind in ("task.warned", "task.deadline_missed") else "info",
        )  # fmt: skip
        task = kept
