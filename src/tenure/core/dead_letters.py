"""Why a task is a dead letter, and how its last claims were lost: one text for every interface.

A claim that was lost leaves no error of its holder. So its task would be a dead letter for an older failure, or for
none. `lost` says what happened in its place; the task keeps that as its last error when it becomes a dead letter, and
the next holder reads it before.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.core import limits
from tenure.core.records import Claim, LastError, RetryPolicy, Task
from tenure.core.retry import LOST, how_lost, is_poison, is_retried

NAMED = limits.LOST_NAMED


def last_error(task: Task, tried: Sequence[Claim]) -> LastError:
    """The error for which a task is a dead letter: that of its last claim, also where that was lost."""
    if task.last_error is not None and task.last_error.generation == task.generation:
        return task.last_error
    found = lost(task, tried)
    if found is not None:
        return found
    error = (tried[-1].error or f"its last claim ended as {tried[-1].reason}") if tried else "it was never claimed"
    return LastError(error_class=LOST, message=error, generation=task.generation, at=task.dead_lettered_at or 0)


def lost(task: Task, tried: Sequence[Claim]) -> LastError | None:
    """The error of the run's last claims, oldest first, where they were lost; None where the last one was not."""
    last: list[Claim] = []
    for claim in reversed(tried):
        if claim.reason != "EXPIRED" or claim.run != task.run:
            break
        last.insert(0, claim)
    if not last:
        return None
    one_by_one = "; ".join(f"generation {c.generation} of {c.agent}: {how_lost(c)}" for c in last[-NAMED:])
    count = f"the last {len(last)} claims were lost" if len(last) > 1 else "the last claim was lost"
    before = task.last_error
    first = last[0].generation
    has_before = before is not None and any(c.generation == before.generation < first for c in tried)
    earlier = f"; generation {before.generation} had failed: {before.message}" if before and has_before else ""
    end = last[-1]
    return LastError(
        error_class=LOST, message=f"{count} ({one_by_one}){earlier}", generation=end.generation,
        at=end.released_at or end.acquired_at,
    )  # fmt: skip


def why(task: Task, policy: RetryPolicy) -> str:
    """Why a dead letter is not tried again, in one text."""
    error = task.last_error
    used = f"after {task.attempts} of {task.max_attempts} attempts"
    if error is None or error.generation != task.generation:  # recorded before lost claims were named
        return f"{used}: its last claim left no error"
    if task.attempts >= task.max_attempts:
        rule = ""
    elif is_poison(policy, task.failures):
        rule = f"; {len(set(task.failures))} different agents failed it, so nobody tries it again"
    elif not is_retried(policy, error.error_class):
        rule = f"; {error.error_class} is not retried"
    else:
        rule = ""
    return f"{used}: {error.message or error.error_class}{rule}"
