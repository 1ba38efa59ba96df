"""Plain tasks: those of which a claim, a renewal or an accepted result is a matter of the row itself and its claim.

A store may do these three for plain rows in one statement, guard and stamp only; every other row takes the way through
`claims`. The mark is set whenever the row is written (`settle.stamp`), so what makes a task plain is said here alone.
"""

from __future__ import annotations

from tenure.core.lifecycle import HELD, READY
from tenure.core.records import Task


def is_plain(task: Task) -> bool:
    if task.checked or task.metered or task.artifacts:  # looked at first, learnt from, or more to hand on
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
    """Never claimed, and nothing is left of what befell it: a claim has nothing to take back."""
    return (
        task.generation == 0
        and task.attempts == 0
        and task.renewals == 0
        and not task.answerable
        and not task.cool_offs
        and task.retry_at is None
        and task.offer_until is None
        and task.percent is None
        and task.step is None
        and task.progress_at is None
        and task.cancelled is None
        and task.state_before is None
    )
