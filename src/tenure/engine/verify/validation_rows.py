"""Verify validations: a task that waits for a verdict has one open, and each verdict is of the claim it names."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.core import claims, lifecycle, validation
from tenure.core.records import Claim, Result, Task, Validation
from tenure.engine.verify.replay import Tables


def validation_rows(rows: Tables) -> Iterator[str]:
    waiting = set()
    for row in rows[Validation].values():
        task, claim = rows[Task].get((row.project, row.task)), rows[Claim].get((row.project, row.id))
        result = rows[Result].get((row.project, row.result))
        if task is None or claim is None or result is None:
            yield f"{row.id}: a validation without its task, claim or result"
            continue
        if row.id != claims.claim_id(row.task, row.claimed) or result.generation != row.claimed:
            yield f"{row.id}: a validation of generation {row.claimed} for the result of {result.generation}"
        if validation.is_open(row, task) and _is_waiting(task):
            waiting.add((row.project, row.task))
        elif row.state == validation.OPEN:
            yield f"{row.id}: waits for a verdict, but {task.key} is {task.state}"
        if (row.state == validation.PASSED) != (result.accepted and result.reason == "ACCEPTED"):
            yield f"{row.id}: is {row.state}, but its result is {result.reason}"
        if row.tries > row.generation or row.tries > validation.MOST_TRIES:
            yield f"{row.id}: {row.tries} tries, {row.generation} takers"
    for task in rows[Task].values():
        if task.state == lifecycle.VALIDATING and (task.project, task.id) not in waiting:
            yield f"{task.key}: validating, but has no open validation"


def _is_waiting(task: Task) -> bool:
    """Paused and cancelled tasks return to their former state."""
    if task.state == lifecycle.PAUSED:
        return task.state_before == lifecycle.VALIDATING
    return task.state in (lifecycle.VALIDATING, lifecycle.CANCELLED)
