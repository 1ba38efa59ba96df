"""One task as a sequential specification: what each verb answers, and the state it leaves behind.

Written from the chapters on the model and the operations, not from the code; it shares nothing with tenure.core. It
knows no other task, no priorities and no sweeps (which change no answer). Times are microseconds since the history
began, and pass only by the verb `advance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.reliability.checker import Operation

MOST_ATTEMPTS = 2
RETRY_DELAY = 500_000
LOSSES = 3  # in a row by one session: no verb here shows work

DENIALS = {
    "held": "DENIED_ACTIVE_CLAIM",
    "retrying": "DENIED_NOT_READY",
    "completed": "DENIED_COMPLETED",
    "cancelled": "DENIED_CANCELLED",
    "dead_lettered": "DENIED_DEAD_LETTERED",
}
REFUSALS = {"completed": "TASK_ALREADY_COMPLETED", "cancelled": "TASK_CANCELLED"}


class OneTask(NamedTuple):
    now: int = 0
    state: str = "ready"
    receipts: tuple[str, ...] = ()  # of generation 1, 2, …
    agent: str | None = None  # of the last claim, and its session
    session: str | None = None
    until: int = 0  # end of the lease while held
    ended: str | None = None  # how the last claim ended
    attempts: int = 0
    losses: int = 0
    retry_at: int = 0
    product: str | None = None  # the accepted data
    moves: tuple[tuple[int, int], ...] = ()  # of the clock: when that was answered, and by how much


# What the fast path may do. With a clock that tests hand in, its call brings the time along, read before the locks;
# the server's own clock is read after them.
BRINGS_TIME = frozenset({"claim", "renew", "submit"})


def step(task: OneTask, operation: Operation, *, has_fast_path: bool = False) -> Iterator[OneTask]:
    """The task after the operation; nothing where it would have answered otherwise."""
    if operation.verb == "advance":
        by = operation.given["by"]
        yield task._replace(now=task.now + by, moves=(*task.moves, (operation.answered, by)))
        return
    yield from _at(task, operation)
    if has_fast_path and operation.verb in BRINGS_TIME:
        now = task.now
        for answered, by in reversed(task.moves):
            if answered < operation.invoked:
                break
            now -= by
            yield from (after._replace(now=task.now) for after in _at(task._replace(now=now), operation))


def _at(task: OneTask, operation: Operation) -> Iterator[OneTask]:
    task = settled(task)
    if operation.verb == "sweep":
        yield task
        return
    answer = operation.answer
    expected, after = VERBS[operation.verb](task, operation.given)
    if any(answer.get(field) != value for field, value in expected.items()):
        return
    if expected.get("outcome") == "GRANTED":
        if (receipt := answer["receipt"]) not in task.receipts:
            yield after._replace(receipts=(*task.receipts, receipt))
    else:
        yield after


def settled(task: OneTask) -> OneTask:
    """What time alone has done."""
    if task.state == "held" and task.until <= task.now:
        state = "dead_lettered" if task.attempts >= MOST_ATTEMPTS else "ready"
        return task._replace(state=state, ended="EXPIRED", losses=task.losses + 1)
    if task.state == "retrying" and task.retry_at <= task.now:
        return task._replace(state="ready")
    return task


Answered = tuple[dict[str, Any], OneTask]


def claim(task: OneTask, given: dict[str, Any]) -> Answered:
    generation = len(task.receipts)
    if task.state == "held":
        yours = task.session == given["session"]
        return {"outcome": DENIALS["held"], "generation": generation, "lease_until": task.until, "yours": yours}, task
    if task.state != "ready":
        return {"outcome": DENIALS[task.state]}, task
    is_again = task.ended == "EXPIRED" and (task.agent, task.session) == (given["agent"], given["session"])
    losses = task.losses if is_again else 0
    attempts = task.attempts + (not 0 < losses < LOSSES)
    until = task.now + given["lease"]
    held = task._replace(
        state="held",
        agent=given["agent"],
        session=given["session"],
        until=until,
        ended=None,
        attempts=attempts,
        losses=losses,
    )
    return {"outcome": "GRANTED", "generation": generation + 1, "attempt": attempts, "lease_until": until}, held


def refusal(task: OneTask, receipt: str) -> str | None:
    """Why the bearer of a receipt may not go on: generation, nonce, then the state."""
    generation, current = int(receipt.partition("@")[2].partition(":")[0]), len(task.receipts)
    if generation != current:
        return "STALE_GENERATION" if generation < current else "FUTURE_GENERATION"
    if receipt != task.receipts[-1]:
        return "SESSION_MISMATCH"
    if task.state == "held":
        return None
    return REFUSALS.get(task.state) or ("ALREADY_EXPIRED" if task.ended == "EXPIRED" else "NO_CLAIM")


def renew(task: OneTask, given: dict[str, Any]) -> Answered:
    why = refusal(task, given["receipt"])
    if why is not None:
        return {"outcome": why, "current_generation": len(task.receipts)}, task
    until = task.now + given["lease"]
    return {"outcome": "RENEWED", "generation": len(task.receipts), "lease_until": until}, task._replace(until=until)


def submit(task: OneTask, given: dict[str, Any]) -> Answered:
    receipt, data = given["receipt"], given["data"]
    why = refusal(task, receipt)
    accepted = {"outcome": "ACCEPTED", "generation": len(task.receipts), "work_lost": False}
    if why == "TASK_ALREADY_COMPLETED" and task.product == data:
        return accepted | {"again": True}, task
    if why is None:
        return accepted | {"again": False}, task._replace(state="completed", ended="COMPLETED", product=data)
    if why == "ALREADY_EXPIRED":
        if task.state == "ready":  # nobody has claimed since: the late result is taken
            return accepted | {"again": False}, task._replace(state="completed", product=data)
        why = "NO_CLAIM"
    return {"outcome": why, "current_generation": len(task.receipts), "work_lost": receipt in task.receipts}, task


def fail(task: OneTask, given: dict[str, Any]) -> Answered:
    dead = task.attempts >= MOST_ATTEMPTS
    after = task._replace(state="dead_lettered" if dead else "retrying", retry_at=task.now + RETRY_DELAY)
    return _given_up(task, given["receipt"], "FAILED", after)


def release(task: OneTask, given: dict[str, Any]) -> Answered:
    """The attempt is given back. (Only ten are in a run; no history has as many.)"""
    return _given_up(task, given["receipt"], "VOLUNTARY", task._replace(state="ready", attempts=task.attempts - 1))


def _given_up(task: OneTask, receipt: str, reason: str, after: OneTask) -> Answered:
    why = refusal(task, receipt)
    if why is None:
        return {"outcome": "OK", "again": False, "state": after.state}, after._replace(ended=reason)
    if why in ("NO_CLAIM", *REFUSALS.values()) and task.ended == reason:
        return {"outcome": "OK", "again": True, "state": task.state}, task
    return {"outcome": why, "current_generation": len(task.receipts)}, task


def cancel(task: OneTask, given: dict[str, Any]) -> Answered:
    if task.state == "cancelled":
        return {"outcome": "UNCHANGED"}, task
    if task.state == "completed":
        return {"outcome": "DENIED_STATE"}, task
    ended = "CANCELLED" if task.state == "held" else task.ended
    return {"outcome": "UPDATED", "state": "cancelled"}, task._replace(state="cancelled", ended=ended)


def look(task: OneTask, given: dict[str, Any]) -> Answered:
    return {"state": task.state, "generation": len(task.receipts)}, task


VERBS = {
    "claim": claim, "renew": renew, "submit": submit, "fail": fail, "release": release, "cancel": cancel, "look": look,
}  # fmt: skip
