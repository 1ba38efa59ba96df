"""Every change of a task's state: one constructor for each. Nothing else sets `state`.

`KEPT` lists the state-bound fields that a state may have; entering a state clears all others, so that nothing of the
former state survives. `FIELDS` lists for each constructor the fields it may change. The statements of the fast path
write the same fields: a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tenure.core.lifecycle import (
    CANCELLED,
    CLAIMED,
    COMPLETED,
    CREATED,
    DEAD_LETTERED,
    DRAIN,
    PAUSED,
    PENDING,
    PERSON,
    READY,
    RETRYING,
    RUNNING,
    STATES,
    VALIDATING,
    Cancelled,
    PauseCause,
    with_pause,
)
from tenure.core.records import LastError, Task, replace

# --- what belongs to which state ----------------------------------------------------------------------------

_HOLD: dict[str, Any] = {
    "agent": None, "session": None, "claimed_at": None, "lease": None, "lease_until": None, "renewals": 0,
    "presented_at": None, "claim_epoch": None, "wanted": None, "done_by": None, "warned_at": None, "funded": False,
    "reserved": False, "unseen_since": None,
}  # fmt: skip
# Fields that belong to some states only, with their value in the others.
BOUND: dict[str, Any] = _HOLD | {
    "offer_to": None,
    "offer_until": None,
    "offer_term": None,
    "set_aside_for": None,
    "price": None,
    "retry_at": None,
    "pauses": (),
    "state_before": None,
    "cancelled": None,
    "completed_at": None,
    "work_product": None,
    "dead_lettered_at": None,
    "archived_at": None,
}
KEPT: dict[str, frozenset[str]] = dict.fromkeys(STATES, frozenset()) | {
    READY: frozenset({"offer_to", "offer_until", "offer_term", "set_aside_for", "price"}),
    CLAIMED: frozenset({*_HOLD, "pauses"}),
    RUNNING: frozenset({*_HOLD, "pauses"}),
    PAUSED: frozenset({"pauses", "state_before", "retry_at"}),
    VALIDATING: frozenset({"pauses"}),
    COMPLETED: frozenset({"completed_at", "work_product", "archived_at"}),
    RETRYING: frozenset({"retry_at"}),
    DEAD_LETTERED: frozenset({"dead_lettered_at"}),
    # and the state it returns to on undo
    CANCELLED: frozenset({"cancelled", "state_before", "retry_at", "dead_lettered_at", "archived_at"}),
}
_CLEARED = {state: {name: BOUND[name] for name in BOUND if name not in KEPT[state]} for state in STATES}


def _moved(task: Task, state: str, **changes: Any) -> Task:
    return replace(task, **{**_CLEARED[state], "state": state, **changes})


def _fields(*targets: str, more: tuple[str, ...] = ()) -> frozenset[str]:
    return frozenset({"state", *more, *(name for target in targets for name in _CLEARED[target])})


_WAITING = (PENDING, READY)
_GRANTED = (
    *_HOLD, "generation", "attempts", "losses", "late_submit_open", "percent", "step", "progress_at",
)  # fmt: skip
_RUN = ("run", "attempts", "given_back", "failures")

# constructor → the fields that it may change
FIELDS: dict[str, frozenset[str]] = {
    "waiting": _fields(*_WAITING, more=("ready_at",)),
    "granted": _fields(CLAIMED, more=_GRANTED) - {"funded", "reserved"},
    "started": frozenset({"state", "started_at"}),
    "freed": _fields(
        *_WAITING, PAUSED, more=("ready_at", "attempts", "given_back", "late_submit_open", "state_before"),
    ),
    "paused": _fields(PAUSED, more=("pauses", "state_before")),
    "lifted": _fields(*_WAITING, RETRYING, VALIDATING, more=("ready_at", "pauses", "wanted")),
    "retrying": _fields(RETRYING, more=("retry_at", "state_before")),
    "validating": _fields(VALIDATING, more=("late_submit_open", "percent", "started_at")),
    "refused": _fields(*_WAITING, PAUSED, more=("ready_at", "state_before", "percent", "failed_at", "last_error")),
    "withdrawn": _fields(*_WAITING, PAUSED, more=("ready_at", "state_before", "percent", "attempts")),
    "completed": _fields(COMPLETED, more=("completed_at", "work_product", "late_submit_open", "percent", "started_at")),
    "dead_lettered": _fields(DEAD_LETTERED, more=("dead_lettered_at", "late_submit_open")),
    "cancelled": _fields(CANCELLED, more=("cancelled", "state_before", "late_submit_open")),
    "uncancelled": _fields(CREATED, *_WAITING, DEAD_LETTERED, more=("ready_at", "pauses", "state_before")),
    "new_run": _fields(
        *_WAITING, more=(*_RUN, "ready_at", "troubled", "cool_offs", "late_submit_open", "percent", "step"),
    ),
    "reset_undone": _fields(
        COMPLETED, more=(*_RUN, "completed_at", "work_product", "late_submit_open", "percent", "started_at"),
    ),
    "retry_undone": _fields(DEAD_LETTERED, more=(*_RUN, "dead_lettered_at", "late_submit_open")),
}  # fmt: skip


# --- waiting for anybody ------------------------------------------------------------------------------------


def waiting_state(task: Task, at: int) -> str:
    """The state of a task that nobody holds and nothing delays."""
    return READY if is_startable(task.unmet, task.not_before, at) else PENDING


def is_startable(unmet: int, not_before: int | None, at: int) -> bool:
    """Whether nothing that was planned keeps a task from starting: no dependency, no start time."""
    return unmet <= 0 and (not_before is None or not_before <= at)


def waiting(task: Task, at: int) -> Task:
    """Ready, or pending on its dependencies. A task already there stays as it is, with its offer."""
    state = waiting_state(task, at)
    if state == task.state:
        return task
    return _moved(task, READY, ready_at=at) if state == READY else _moved(task, PENDING)


# --- held ---------------------------------------------------------------------------------------------------


def granted(
    task: Task, *, agent: str, session: str, lease: int, at: int, epoch: str, counts: bool, losses: int = 0
) -> Task:
    """Held from `at`; `counts`: it is a new attempt; `losses`: that its session has had in a row before."""
    return _moved(
        task, CLAIMED, generation=task.generation + 1, attempts=task.attempts + counts, losses=losses,
        agent=agent, session=session, claimed_at=at, lease=lease, lease_until=at + lease, presented_at=at,
        claim_epoch=epoch, renewals=0, wanted=None, done_by=None, warned_at=None, unseen_since=None,
        late_submit_open=False, percent=None, step=None, progress_at=None,
    )  # fmt: skip


def started(task: Task, at: int) -> Task:
    """A holder's first write starts its work."""
    return replace(task, state=RUNNING, started_at=at) if task.state == CLAIMED else task


def freed(
    task: Task,
    at: int,
    *,
    attempts: int,
    given_back: int,
    late_submit_open: bool,
    drains: bool = True,
    rests: bool = True,
) -> Task:
    """No longer held: it waits for any agent, or is paused where that was requested (`drains`).

    `rests`: it stays there; else the caller moves it on, and it was not ready in between.
    """
    counted: dict[str, Any] = {"attempts": attempts, "given_back": given_back, "late_submit_open": late_submit_open}
    if task.pauses and drains:
        return _moved(task, PAUSED, state_before=READY, **counted)
    state = waiting_state(task, at)
    if state == READY and rests:
        counted["ready_at"] = at
    return _moved(task, state, **counted)


# --- paused -------------------------------------------------------------------------------------------------


def paused(task: Task, pause: PauseCause) -> Task:
    """Add one pause cause; a claim must be ended before."""
    pauses = with_pause(task.pauses, pause)
    if task.state == PAUSED:
        return replace(task, pauses=pauses)
    return _moved(task, PAUSED, state_before=task.state, pauses=pauses)


def lifted(task: Task, is_over: Callable[[PauseCause], bool], at: int) -> Task:
    """Without the causes that are over; a paused task resumes its former state when the last is gone."""
    left = tuple(pause for pause in task.pauses if not is_over(pause))
    if task.state != PAUSED:
        drains = any(pause.cause == DRAIN for pause in left)
        return replace(task, pauses=left, wanted=task.wanted if drains or task.wanted != "pause" else None)
    if left:
        return replace(task, pauses=left)
    if task.state_before == VALIDATING:
        return _moved(task, VALIDATING, pauses=())
    if task.state_before == RETRYING and task.retry_at is not None and task.retry_at > at:
        return _moved(task, RETRYING)
    return waiting(task, at)


# --- failing, waiting for another attempt -------------------------------------------------------------------


def retrying(task: Task, until: int) -> Task:
    """Retried at `until`; a paused task stays paused and waits from there."""
    if task.state == PAUSED:
        return replace(task, state_before=RETRYING, retry_at=until)
    return _moved(task, RETRYING, retry_at=until)


def dead_lettered(task: Task, at: int) -> Task:
    return _moved(task, DEAD_LETTERED, dead_lettered_at=at, late_submit_open=False)


# --- results ------------------------------------------------------------------------------------------------


def validating(task: Task, at: int) -> Task:
    """A result waits for its verdict, or to be landed; the task's pauses return if the result is refused."""
    return _moved(task, VALIDATING, late_submit_open=False, percent=100, started_at=task.started_at or at)


def refused(task: Task, at: int, error: LastError) -> Task:
    """A verdict against the result: the task continues as without a submit."""
    fields: dict[str, Any] = {"percent": None, "failed_at": at, "last_error": error}
    if task.pauses:
        return _moved(task, PAUSED, state_before=READY, **fields)
    state = waiting_state(task, at)
    return _moved(task, state, ready_at=at if state == READY else task.ready_at, **fields)


def withdrawn(task: Task, at: int, *, attempts: int) -> Task:
    """The submitted result is for an older text: the task waits as without a submit."""
    if task.state == PAUSED:
        return replace(task, state_before=READY, attempts=attempts, percent=None)
    if task.pauses:
        return _moved(task, PAUSED, state_before=READY, attempts=attempts, percent=None)
    return replace(waiting(task, at), attempts=attempts, percent=None)


def completed(task: Task, at: int, product: str | None) -> Task:
    """The same for a holder, a verdict, a person, or an undo."""
    return _moved(
        task, COMPLETED, completed_at=at, work_product=product, late_submit_open=False, percent=100,
        started_at=task.started_at or at,
    )  # fmt: skip


# --- cancelled ----------------------------------------------------------------------------------------------


def cancelled(task: Task, why: Cancelled) -> Task:
    """Cancelled where it was; a claim must be ended before."""
    kept = replace(why, pauses=task.pauses)
    return _moved(task, CANCELLED, cancelled=kept, state_before=task.state, late_submit_open=False)


# The pause of a task that was cancelled before causes were kept.
BEFORE_IT = PauseCause(cause=PERSON, reason="it was paused before it was cancelled")


def uncancelled(task: Task, at: int, *, paused_from: str | None = None) -> Task:
    """Back to its former state, as far as that still exists. `paused_from`: where a paused one continues."""
    was, pauses = task.state_before, task.cancelled.pauses if task.cancelled is not None else ()
    if was == PAUSED:
        pauses = pauses or (BEFORE_IT,)
        back = paused_from or (RETRYING if task.retry_at is not None else READY)
        return _moved(task, PAUSED, state_before=back, pauses=pauses)
    if was == VALIDATING:
        return _moved(task, VALIDATING, pauses=pauses)
    if was is not None and was in (DEAD_LETTERED, CREATED):
        return _moved(task, was)
    if was == RETRYING and task.retry_at is not None and task.retry_at > at:
        return _moved(task, RETRYING)
    return waiting(task, at)


# --- runs ---------------------------------------------------------------------------------------------------


def new_run(task: Task, at: int) -> Task:
    """Started over by a person: attempts begin at 0, the generation continues, no late submit for older receipts."""
    fresh = replace(
        task, run=task.run + 1, attempts=0, given_back=0, failures=(), troubled=(), cool_offs={},
        late_submit_open=False, percent=None, step=None,
    )  # fmt: skip
    return waiting(fresh, at)


def _run_before(task: Task, before: Mapping[str, Any]) -> Task:
    return replace(
        task, run=before["run"], attempts=before["attempts"], given_back=before["given_back"],
        failures=tuple(before.get("failures", ())),
    )  # fmt: skip


def reset_undone(task: Task, before: Mapping[str, Any]) -> Task:
    """The result of the earlier run counts again."""
    return completed(_run_before(task, before), before["completed_at"], before["work_product"])


def retry_undone(task: Task, before: Mapping[str, Any]) -> Task:
    """A dead letter again, as of the earlier run."""
    return dead_lettered(_run_before(task, before), before["dead_lettered_at"])
