"""Queries of validations: what waits for which validator or branch, who has taken it, the verdicts. They write
nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from tenure.core import claims, lifecycle, limits, validation
from tenure.core import queries as q
from tenure.core.instants import lasting
from tenure.core.land_request import COUNTED_AS, JUDGE, lander, waits_for
from tenure.core.records import Task, Validation
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import brief_of, fields_of, pages_by
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views.task_views import ValidationCounts, ValidationView, WaitingView

PAGE = limits.LISTED


def row_of_task(work: UnitOfWork, task: Task) -> Validation | None:
    """The open validation of the task's last claim, if any."""
    row = work.get(Validation, task.project, claims.claim_id(task.id, task.generation)) if task.checked else None
    return row if validation.is_open(row, task) else None


def is_reserving(work: UnitOfWork, task: Task) -> bool:
    """Whether what the task touches is still reserved: while it is held, and until its result is landed or refused."""
    if task.state in lifecycle.HELD:
        return True
    return task.guarded and task.checked and validation.is_reserving(row_of_task(work, task), task)


def open_rows(work: UnitOfWork, project: str) -> Iterator[tuple[Task, Validation]]:
    """Tasks that wait for a verdict or to be landed now, longest first; not those paused or cancelled meanwhile."""
    where = {"project": project, "state": validation.OPEN}
    for page in pages_by(work, Validation, where, "created_at", PAGE):
        tasks = work.get_many(Task, project, [row.task for row in page])
        for row in page:
            task = tasks.get(row.task)
            if task is not None and task.state == lifecycle.VALIDATING and validation.is_open(row, task):
                yield task, row


def of_task(work: UnitOfWork, task: Task) -> list[Validation]:
    """All validations of its results, by generation."""
    if not task.generation:
        return []
    found = work.find(Validation, {"project": task.project, "task": task.id})
    return sorted(found, key=lambda row: row.claimed)


def state_of(work: UnitOfWork, row: Validation) -> str:
    """waiting, running or review while open, landing once it has passed; else passed, refused or withdrawn."""
    if row.state != validation.OPEN:
        return row.state
    if row.phase != JUDGE:
        return "landing"
    if validation.is_running(row, work.epoch, work.now):
        return "running"
    return "review" if row.validator == validation.REVIEW else "waiting"


def view(work: UnitOfWork, row: Validation, task: Task) -> ValidationView:
    """No nonce is ever shown."""
    is_running = validation.is_running(row, work.epoch, work.now)
    running = fields_of(row, "holder taken_at until")
    answer: ValidationView = fields_of(
        row, "id run validator phase tries retry_at note result decided_at decided_by"
    ) | {
        "land": None if row.land is None else asdict(row.land),
        **(running if is_running else dict.fromkeys(running)),
        "key": task.key,
        "generation": row.claimed,
        "state": state_of(work, row),
        "since": row.created_at,
        "reasons": list(row.reasons),
        "details": task_view.unpacked(work, row.project, row.details),
    }
    return answer


def validations(work: UnitOfWork, project: str, *, limit: int = 100) -> list[WaitingView]:
    """Results that wait for a verdict or to be landed, longest first, with their contract."""
    found = islice(open_rows(work, project), limit)
    return [{**view(work, row, task), "settings": settings(work, task), "task": task.id} for task, row in found]


def settings(work: UnitOfWork, task: Task) -> dict[str, object]:

    return brief_of(work, task).output.get("settings") or {}


def counts(work: UnitOfWork, project: str) -> dict[str, ValidationCounts]:
    """How many wait for each validator, and how many are being checked; `land`: those that have passed."""
    found: dict[str, ValidationCounts] = {}
    for _, row in open_rows(work, project):
        name = row.validator if row.phase == JUDGE else COUNTED_AS
        count = found.setdefault(name, {"waiting": 0, "running": 0})
        count["running" if validation.is_running(row, work.epoch, work.now) else "waiting"] += 1
    return found


def sentences(work: UnitOfWork, task: Task) -> list[str]:
    """What a task in `validating` waits for, for people; None for any other."""
    row = row_of_task(work, task) if task.state == lifecycle.VALIDATING else None
    if row is None:
        return []
    if row.land is not None and row.phase != JUDGE:
        return [_landing_sentence(work, task, row)]
    return [_sentence(work, row)]


def landing_text(work: UnitOfWork, row: Validation) -> str:
    """Which commit waits to be landed on which branch, and the obstacle."""
    assert row.land is not None, row.id
    holder = row.holder if validation.is_running(row, work.epoch, work.now) else None
    return waits_for(row.land, row.phase, holder=holder, note=row.note)


def _landing_sentence(work: UnitOfWork, task: Task, row: Validation) -> str:
    did, at = ("submitted", row.created_at) if row.decided_at is None else ("passed", row.decided_at)
    text = f"{did} {lasting((work.now - at) / 1e6)} ago; {landing_text(work, row)}"
    if validation.is_running(row, work.epoch, work.now):
        return text
    if row.retry_at is not None and row.retry_at > work.now:
        text += f"; tried again in {lasting((row.retry_at - work.now) / 1e6)}"
    return f"{text}; {lander(task.ref)}"


def _sentence(work: UnitOfWork, row: Validation) -> str:
    seconds = (work.now - row.created_at) / 1e6
    text = f"submitted {seconds:.0f} s ago; "
    if row.validator == validation.REVIEW:
        return text + "waiting for a review: approve or reject it"
    if validation.is_running(row, work.epoch, work.now):
        return f"{text}{row.holder} runs {row.validator} (try {row.tries} of {validation.MOST_TRIES})"
    text += f"waiting for a process that runs {row.validator}"
    if row.tries:
        text += f", after {row.tries} of {validation.MOST_TRIES} tries"
    return f"{text}: {row.note}" if row.note else f"{text}; `run`, `daemon` and `serve` do"


READS: Reads = {q.Validations: validations}
