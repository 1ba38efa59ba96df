"""Everything that waits for a person: questions, reviews, dead letters, pauses by a budget or after a loss, costs that
are far above their tokens, landings that are blocked or that nobody makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import dead_letters, lifecycle, limits, validation
from tenure.core import queries as q
from tenure.core.inputs import SECOND
from tenure.core.land_request import JUDGE
from tenure.core.land_request import LANDING as BEGUN
from tenure.core.money import usd_text
from tenure.core.records import Brief, Task
from tenure.engine.budgets import doubts
from tenure.engine.checks import validation_reads
from tenure.engine.reads.task_view import dependents_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views.task_views import TodoEntry

MOST_LISTED = limits.LISTED
PATIENCE = limits.LANDING_TODO * SECOND
QUESTION, REVIEW, DEAD_LETTER, BUDGET, LOST = "question", "review", "dead letter", "budget", "lost"
LANDING = "landing"
COST = "doubtful cost"

# What waits → the commands that end the wait.
DO = {
    QUESTION: ("answer",), REVIEW: ("approve", "reject"), DEAD_LETTER: ("retry", "edit", "adopt", "cancel"),
    BUDGET: ("budget set", "resume --budget"), LOST: ("resume", "cancel"),
    LANDING: ("land", "reject"),
    COST: ("usage confirm", "usage reject"),
}  # fmt: skip
# A pause by a person or a drain was wanted: nobody waits for a decision there.
_CAUSES = {
    lifecycle.QUESTION: QUESTION, lifecycle.REVIEW: REVIEW, lifecycle.BUDGET: BUDGET, lifecycle.LOST: LOST,
}  # fmt: skip


def todo(work: UnitOfWork, project: str, *, limit: int = 100) -> list[TodoEntry]:
    found: list[tuple[int, str, Task, str, str | None]] = []
    begun: set[str] = set()  # landings that may have happened: only they themselves say so
    # State by state: each is a part of an index, while two at once would read every task.
    waiting = [
        t
        for s in (lifecycle.PAUSED, lifecycle.DEAD_LETTERED)
        for t in work.find(Task, {"project": project, "state": s})
    ]
    for task in waiting:
        if task.state == lifecycle.DEAD_LETTERED:
            found.append((task.dead_lettered_at or 0, DEAD_LETTER, task, "", None))
            continue
        found += [
            (pause.at or task.updated_at, _CAUSES[pause.cause], task, pause.reason or pause.cause, pause.by)
            for pause in task.pauses
            if pause.cause in _CAUSES
        ]
    for task, row in validation_reads.open_rows(work, project):
        is_late = row.note is not None or work.now - (row.decided_at or row.created_at) >= PATIENCE
        if row.phase != JUDGE and is_late and not validation.is_running(row, work.epoch, work.now):
            text = validation_reads.landing_text(work, row)
            begun |= {task.id} if row.phase == BEGUN else set()
            found.append((row.decided_at or row.created_at, LANDING, task, text, None))
        elif row.validator == validation.REVIEW and row.phase == JUDGE:
            by = f"agent:{task.agent}" if task.agent else None
            found.append((row.created_at, REVIEW, task, "its result waits for a verdict", by))
    for task, amount, at in doubts.waiting(work, project):
        text = f"${usd_text(amount)} of its reported cost is far above its tokens; no budget counts that part"
        found.append((at, COST, task, text, None))
    found.sort(key=lambda entry: (entry[0], entry[2].id))
    tasks = [task for _, _, task, _, _ in found[:limit]]
    briefs = work.get_many(Brief, project, [task.id for task in tasks])
    entries = [_entry(work, briefs[one[2].id], *one) for one in found[:limit]]
    return [one | {"do": ("land",)} if one["what"] == LANDING and one["task"] in begun else one for one in entries]


def _entry(work: UnitOfWork, brief: Brief, since: int, what: str, task: Task, text: str, by: str | None) -> TodoEntry:
    text = dead_letters.why(task, brief.retry) if what == DEAD_LETTER else text
    entry: TodoEntry = {
        "what": what, "task": task.id, "key": task.key, "ref": task.ref, "title": brief.title, "since": since,
        "text": text,
        "blocks": len(dependents_of(work, task)), "do": DO[what],
    }  # fmt: skip
    if by:
        entry["by"] = by
    return entry


READS: Reads = {q.Todo: todo}
