"""Plain tasks: a claim, a renewal or an accepted result concerns only the row itself and its claim.

A store may do these three for plain rows in one statement, guard and stamp only; every other row takes the slow path
through `claims`. The mark is set at every write of the row (`settle.stamp`), so only this module defines a plain task.
"""

from __future__ import annotations

from tenure.core.lifecycle import HELD, READY
from tenure.core.records import Task


def is_plain(task: Task) -> bool:
    if task.checked or task.metered or task.artifacts:  # validated, learnt from, or with artifacts to pass on
        return False
    if task.capped or task.funded or task.reserved or task.pauses or task.unseen_since is not None:
        return False
    if task.guarded or task.models or task.fallback_models or task.waits_on or task.wanted is not None:
        return False
    if not (task.deadline is None is task.max_duration is task.done_by is task.warned_at):
        return False
    if task.state in HELD:
        return True
    return task.state == READY and _is_fresh(task)


def _is_fresh(task: Task) -> bool:
    """Never claimed, and without traces of earlier events: a claim has nothing to undo."""
    return (
        task.generation == 0
        and task.attempts == 0
        and task.renewals == 0
        and not task.late_submit_open
        and not task.cool_offs
        and task.retry_at is None
        and task.offer_until is None
        and task.percent is None
        and task.step is None
        and task.progress_at is None
        and task.cancelled is None
        and task.state_before is None
    )
