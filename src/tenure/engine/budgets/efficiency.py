"""The efficiency check before acceptance: a result that used far more tokens than its diff suggests waits for a person.

Off unless the project has the limit `tokens_per_line`. The result is kept; a person adopts it or resumes the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenure.core import claims, commands, lifecycle, moves
from tenure.core.errors import InvalidInput
from tenure.core.models import tokens_of
from tenure.core.outcomes import Outcome
from tenure.core.records import Result, Usage, replace
from tenure.core.usage import check_all, is_thin, thin_text
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.holder_verbs import Hold
from tenure.engine.verbs.submit import new_result, signatures, submitted

REVIEW = "review"  # the release reason of the claim


def reviewed(work: UnitOfWork, hold: Hold, cmd: commands.Submit, encoded: bytes, digest: str) -> Outcome | None:
    """The answer to a result that needs a person's review; None where it does not."""
    baseline = hold.project.limits["tokens_per_line"]
    if hold.refusal is not None:
        return _reviewed_before(work, hold, digest)
    if cmd.lines is None:
        return None
    if min(cmd.lines, cmd.test_files) < 0:
        raise InvalidInput(f"lines and test_files must not be negative (got {cmd.lines} and {cmd.test_files})")
    tokens = _tokens(work, hold, cmd)
    if not is_thin(tokens, cmd.lines, cmd.test_files, baseline):
        return None
    why = thin_text(tokens, cmd.lines, cmd.test_files, baseline)
    result = new_result(work, hold, cmd, encoded, digest, accepted=False, reason="REVIEW", late=hold.is_late)
    over, free = hold.claim, hold.task
    if not hold.is_late:
        free, over = claims.ended(hold.task, hold.claim, lifecycle.PAUSED_BY, work.now)
        over = replace(over, error_class=REVIEW, error=why)
    over = replace(over, refused=over.refused + 1)
    # It was submitted: nothing more is expected under this claim.
    pause = lifecycle.PauseCause(cause=lifecycle.REVIEW, reason=why, at=work.now, by=f"agent:{over.agent}")
    free = replace(moves.paused(free, pause), late_submit_open=False)
    details = {"result": result.id, "tokens": tokens, "lines": cmd.lines}
    fields: dict[str, Any] = {"message": why, "level": "warning", "details": details}
    kept = work.record("task.paused", result, over, *signatures(work, hold, result), task=free, holder=over, **fields)
    spread(work)
    fields = {"version": kept.version, "hint": "a person must adopt the result or resume the task"}
    return submitted("REVIEW", kept, over, f"kept for {why}", result=result.id, **fields)


def _reviewed_before(work: UnitOfWork, hold: Hold, digest: str) -> Outcome | None:
    """The same result again by the receipt that submitted it: the same answer, no effect."""
    if not hold.verdict.genuine or hold.claim.error_class != REVIEW:
        return None
    where = {"project": hold.claim.project, "task": hold.claim.task, "generation": hold.claim.generation}
    kept = next((row for row in work.find(Result, where) if row.reason == "REVIEW" and row.digest == digest), None)
    if kept is None:
        return None
    why = f"kept for {hold.claim.error}"
    return submitted("REVIEW", hold.task, hold.claim, why, result=kept.id, again=True)


def _tokens(work: UnitOfWork, hold: Hold, cmd: commands.Submit) -> int:
    """The tokens that the claim has used, including what this submit reports."""
    where = {"project": hold.claim.project, "task": hold.claim.task, "generation": hold.claim.generation}
    rows = [row for row in work.find(Usage, where) if not row.late]
    reported = {one.pair: one.fresh + one.written + one.output for one in check_all(cmd.usage)}
    return sum(
        _of_model(model, rows, reported) for model in {row.model for row in rows} | {model for model, _ in reported}
    )


def _of_model(model: str, rows: Sequence[Usage], reported: Mapping[tuple[str, str], int]) -> int:
    """The highest of the booked total, the reported one and the sum of the operations."""
    booked = {row.operation: tokens_of(row) for row in rows if row.model == model}
    named = ({operation for one, operation in reported if one == model} | booked.keys()) - {""}
    parts = sum(max(booked.get(name, 0), reported.get((model, name), 0)) for name in named)
    return max(sum(booked.values()), reported.get((model, ""), 0), parts)
