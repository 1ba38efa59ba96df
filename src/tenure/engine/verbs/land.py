"""Landing: a holder records which commit it is about to put on which branch, under its live receipt.

The record and the check of the receipt are one transaction, so a stale holder records nothing and may not update the
ref. After a crash between record and update, the next holder finds the record, with this receipt or a later one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import claims, commands, limits, runners
from tenure.core.errors import LimitReached
from tenure.core.land_request import is_of_landing
from tenure.core.landings import check_landing
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Landing, Row, Task, Validation
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import fields_of
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs import brief
from tenure.engine.verbs.holder_verbs import held, keep_started, up_to_date

if TYPE_CHECKING:
    from tenure.core.views import LandingView

MOST_RETURNED = limits.LANDINGS_NAMED
MOST = limits.LANDINGS


def land(work: UnitOfWork, cmd: commands.Land) -> Outcome:
    check_landing(cmd)
    if is_of_landing(cmd.receipt):
        from tenure.engine.checks.landing import recorded_by_taker  # few landings wait

        return recorded_by_taker(work, cmd)
    hold = held(work, cmd.project, cmd.receipt, late=True)
    claim = hold.claim
    if hold.is_late and not claims.is_late_landing_open(hold.task, claim):
        held(work, cmd.project, cmd.receipt)  # refuses it
    denial = runners.denied_result(hold.task, claim, cmd.request_id)
    if denial is not None:
        return denial
    hold, changed = up_to_date(work, hold, cmd.seen)
    if changed is not None:
        return changed
    landing, before, again = landing_of(work, cmd, hold.task, claim)
    if again:
        task = hold.task if hold.is_late else keep_started(work, hold.task)
    else:
        presented = hold.task if hold.is_late else claims.presented(hold.task, work.now)
        task = record(work, cmd, landing, task=presented)
    standing = fields_of(task, "state generation lease_until")
    return Outcome(outcome="OK", again=again, landings=before, **standing, **brief.directive(work, task))


def landing_of(
    work: UnitOfWork, cmd: commands.Land, task: Task, claim: Claim
) -> tuple[Landing, tuple[LandingView, ...], bool]:
    """The row of a landing under this claim, the task's earlier ones, and whether it was recorded before."""
    recorded = [row for row in of_task(work, task) if row.generation == claim.generation]
    if len(recorded) >= MOST:
        raise LimitReached(f"{task.key} has {MOST} landings under one claim", "release the task and claim it again")
    landing = Landing(
        project=cmd.project,
        id=landing_id(claim.id, len(recorded) + 1),
        **fields_of(claim, "task generation run agent"),
        **fields_of(cmd, "branch old new"),
        at=work.now,
    )
    same = [row for row in recorded if (row.branch, row.old, row.new) == (landing.branch, landing.old, landing.new)]
    before = tuple(view(work, row) for row in of_task(work, task, MOST_RETURNED) if row not in same)
    return landing, before, bool(same)


def record(work: UnitOfWork, cmd: commands.Land, *rows: Row, task: Task) -> Task:
    message = f"{cmd.branch}: {cmd.old[:12]} → {cmd.new[:12]}"
    kept = work.record("task.landing", *rows, task=task, message=message, details=fields_of(cmd, "branch old new"))
    spread(work)
    return kept


def landing_id(claim: str, number: int) -> str:
    """Each landing under a claim has its own row; ids sort as they were recorded."""
    return claim if number == 1 else f"{claim}#{number:04}"


def of_task(work: UnitOfWork, task: Task, limit: int | None = None) -> list[Landing]:
    """The landings that claims of the task have recorded, newest first."""
    return work.find(Landing, {"project": task.project, "task": task.id}, order="-generation", limit=limit)


def view(work: UnitOfWork, row: Landing) -> LandingView:
    claim = work.get(Claim, row.project, row.id.partition("#")[0])
    by_a_runner = claim is not None and runners.has_word(claim.metadata)
    reported = not by_a_runner and not _is_of_taker(work, row)
    answer: LandingView = fields_of(row, "generation run agent branch old new at") | {"reported": reported}
    return answer


def _is_of_taker(work: UnitOfWork, row: Landing) -> bool:
    """Whether it was recorded after the claim, with the receipt of one who lands what has passed."""
    waits = work.get(Validation, row.project, row.id.partition("#")[0])
    return waits is not None and waits.land is not None and row.at >= waits.created_at


HANDLERS: Handlers = {commands.Land: land}
