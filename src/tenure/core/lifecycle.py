"""The states of a task, the one table of moves between them, how claims end, and why a task is paused or cancelled.

Everything else uses this module; no other place compares states to decide whether a move is allowed. The docs page
and the diagram are generated from `MOVES` and `ENDINGS`.

Invariants:
- a task is held exactly while it is `claimed` or `running`;
- a failed attempt is an event on the way to `retrying` or `dead_lettered`, not a state;
- every open task has a next step: a dependency, a due time, a holder's lease, or a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from tenure.core import limits
from tenure.core.errors import Bug

CREATED = "created"
PENDING = "pending"
READY = "ready"
CLAIMED = "claimed"
RUNNING = "running"
PAUSED = "paused"
VALIDATING = "validating"
COMPLETED = "completed"
RETRYING = "retrying"
DEAD_LETTERED = "dead_lettered"
CANCELLED = "cancelled"

STATES = (
    CREATED, PENDING, READY, CLAIMED, RUNNING, PAUSED, VALIDATING, COMPLETED, RETRYING, DEAD_LETTERED, CANCELLED,
)  # fmt: skip
HELD = (CLAIMED, RUNNING)
FINISHED = (COMPLETED, CANCELLED)
ENDED = (COMPLETED, CANCELLED, DEAD_LETTERED)  # nothing more happens without a person
FAILED = (CANCELLED, DEAD_LETTERED)  # a failed dependency for dependents
OPEN = tuple(s for s in STATES if s not in FINISHED)
PASSED_OVER = {"waiting": (PENDING, RETRYING), "held": HELD, "ready_for_others": (READY,)}  # what NO_TASK counts
LATE_SUBMIT_STATES = (READY, RETRYING, PAUSED)  # where a late submit may still be accepted


class Move(msgspec.Struct, frozen=True):
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    by: str


MOVES: tuple[Move, ...] = (
    Move((CREATED,), (PENDING, READY), "publish"),
    Move((PENDING,), (READY,), "last dependency met, start time reached"),
    Move((READY,), (PENDING,), "a dependency was added; reset upstream"),
    Move((READY,), (CLAIMED,), "claim"),
    Move((CLAIMED,), (RUNNING,), "start, or any receipted write but release"),
    Move(
        HELD,
        (READY, RETRYING, DEAD_LETTERED),
        "release; fail; lease expired; process gone; abort; recover; reassign; new epoch",
    ),
    Move(HELD, (PENDING,), "waits for subtasks; any end of the claim while a dependency is unmet again"),
    Move((*HELD, *LATE_SUBMIT_STATES), (VALIDATING, COMPLETED), "submit"),
    Move((VALIDATING,), (COMPLETED, RETRYING, DEAD_LETTERED), "verdict, landing"),
    Move((VALIDATING,), (PENDING, READY), "edit with supersede"),
    Move((RETRYING,), (READY, PENDING), "due (pending where a dependency is unmet again)"),
    Move((PENDING, READY, *HELD, RETRYING, VALIDATING), (PAUSED,), "a person, budget, question, review, drain, loss"),
    Move((PAUSED,), (PENDING, READY, RETRYING, VALIDATING), "the last cause is gone: resume, answer, budget, time"),
    Move((PAUSED,), (DEAD_LETTERED,), "a verdict against the result of a paused task"),
    Move((DEAD_LETTERED,), (PENDING, READY), "retry, modify_and_retry"),
    Move((PENDING, READY, RETRYING, PAUSED, DEAD_LETTERED), (COMPLETED,), "adopt"),
    Move((READY,), (DEAD_LETTERED,), "generation limit reached"),
    Move((COMPLETED,), (PENDING, READY), "reset"),
    Move(tuple(s for s in STATES if s not in FINISHED), (CANCELLED,), "cancel, cascade, parent cancelled"),
    Move((CANCELLED,), (CREATED, PENDING, READY, RETRYING, PAUSED, VALIDATING, DEAD_LETTERED), "undo; retry upstream"),
    Move((PENDING, READY), (COMPLETED, DEAD_LETTERED), "undo of reset or retry"),
)

ALLOWED = frozenset((source, target) for move in MOVES for source in move.sources for target in move.targets)


# States as people spell them, and as lists show them.
_WORDS = {"draft": CREATED, "dead letter": DEAD_LETTERED, "dead": DEAD_LETTERED, "done": COMPLETED}


def state_named(word: str) -> str:
    """The state that a word names: its own name, or the one that people see (`draft`, `dead-letter`)."""
    plain = word.strip().lower().replace("-", " ").replace("_", " ")
    return _WORDS.get(plain, word.strip().lower().replace("-", "_").replace(" ", "_"))


_SPOKEN = {CREATED: "a draft", DEAD_LETTERED: "a dead letter"}


def spoken(state: str) -> str:
    """What a task in this state is, in a sentence: `a dead letter`, not `dead_lettered`."""
    return _SPOKEN.get(state, state)


def check_move(key: str, source: str, target: str) -> None:
    """Raise where the table has no such move. Rules answer a user earlier, so this is our bug."""
    if source != target and (source, target) not in ALLOWED:
        raise Bug(f"{key}: no move from {source} to {target}")


# The effect of a claim's end on its attempt.
COUNTS = "counts"
GIVEN_BACK = "given back"  # at most MOST_GIVEN_BACK times a run; later ones count
FREE = "free"  # never counts: only max_generations_per_task bounds it


class Ending(msgspec.Struct, frozen=True):
    """How a claim ends: the reason in the lineage, the claim's state, the effect on the attempt."""

    reason: str
    state: str
    attempt: str
    late_submit: bool
    by: str


COMPLETED_BY = Ending("COMPLETED", "released", COUNTS, False, "submit accepted")
SUBMITTED_BY = Ending("SUBMITTED", "released", COUNTS, False, "submit to a validator")
FAILED_COUNTING = Ending("FAILED", "error", COUNTS, False, "fail: task, crash, timeout, invalid_output, permanent")
FAILED_GIVEN_BACK = Ending(
    "FAILED", "error", GIVEN_BACK, False, "fail: environment, auth_failure, upstream_timeout, rate_limit"
)
EXPIRED_BY = Ending("EXPIRED", "expired", COUNTS, True, "lease expired; process proven gone")
RELEASED_BY = Ending("VOLUNTARY", "released", GIVEN_BACK, False, "release, leave")
STOPPED_BY = Ending("STOPPED", "released", GIVEN_BACK, False, "release, or an unfinished result, of a stopped holder")
PAUSED_BY = Ending("PAUSED", "released", FREE, True, "pause, budget, question")
WAITING_BY = Ending("WAITING", "released", FREE, False, "waits for subtasks")
CANCELLED_BY = Ending("CANCELLED", "released", FREE, False, "cancel")
ABORTED_BY = Ending("SUPERSEDED", "superseded", COUNTS, False, "hung, or over max_duration: abort")
SUPERSEDED_BY = Ending(
    "SUPERSEDED", "superseded", FREE, False, "recover, reassign, terminate, edit or adopt with supersede"
)
ERROR_BY = Ending("ERROR", "error", GIVEN_BACK, False, "new epoch; spawn failed; claimed while the clock was ahead")

ENDINGS = (
    COMPLETED_BY, SUBMITTED_BY, FAILED_COUNTING, FAILED_GIVEN_BACK, EXPIRED_BY, RELEASED_BY, STOPPED_BY, PAUSED_BY,
    WAITING_BY, CANCELLED_BY, ABORTED_BY, SUPERSEDED_BY, ERROR_BY,
)  # fmt: skip
NO_FAILURES = (RELEASED_BY, STOPPED_BY, ERROR_BY)  # an attempt that counts after these has not failed
WITH_RESULT = (COMPLETED_BY, SUBMITTED_BY)  # these end with a result: none of them uses up the last attempt
MOVED_ON = (*WITH_RESULT, FAILED_COUNTING, ABORTED_BY, PAUSED_BY, CANCELLED_BY)  # the task does not wait after these
MOST_GIVEN_BACK = limits.GIVEN_BACK


# --- causes: typed, so that no text has to be parsed --------------------------------------------------------

PERSON = "person"  # a person paused or cancelled it
BUDGET = "budget"  # a budget is overspent; `source` names it
QUESTION = "question"  # its holder asked a person
REVIEW = "review"  # a person must review the result, or why no verdict was reached
DRAIN = "drain"  # paused once its holder releases it
LOST = "lost"  # its holder was lost and `on_lost` is hold
RESUMABLE = (PERSON, DRAIN, LOST)  # what a person's `resume` lifts

# What lifts each, in words for people.
REMEDIES = {
    PERSON: "resume it", DRAIN: "resume it", LOST: "resume it", BUDGET: "raise the budget, or resume with --budget",
    QUESTION: "answer the question", REVIEW: "approve or reject the result, or resume once more",
}  # fmt: skip

CASCADE = "cascade"  # a task that it depends on failed; `source` is its id
PARENT = "parent"  # its parent was cancelled; `source` is its id
UNDO = "undo"  # the command that created it was undone
PRUNE = "prune"  # its plan no longer names it
DRAINED = "drained: paused when its holder let go"


class PauseCause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cause of a pause; a task resumes when the last is gone."""

    cause: str
    reason: str = ""
    at: int | None = None  # None: from a version without causes
    by: str | None = None
    source: str | None = None
    until: int | None = None  # when it ends without a command


class Cancelled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a task was cancelled, and which pauses it had then."""

    cause: str
    reason: str = ""
    by: str | None = None
    source: str | None = None
    origin: str | None = None  # of a cascade: the dead letter it began with, else the task; None: of an old version
    pauses: tuple[PauseCause, ...] = ()


def with_pause(pauses: Iterable[PauseCause], new: PauseCause) -> tuple[PauseCause, ...]:
    """Add a cause; the same cause of the same source is replaced."""
    return (*(p for p in pauses if (p.cause, p.source) != (new.cause, new.source)), new)


def reason_of(pauses: Sequence[PauseCause], cancelled: Cancelled | None) -> str | None:
    """In one text for people."""
    if cancelled is not None:
        return cancelled.reason or cancelled.cause
    if not pauses:
        return None
    return "; ".join(p.reason or p.cause for p in pauses) or None


def cause_view(cause: PauseCause | Cancelled) -> dict[str, Any]:
    """For a view: the set fields, without what a cancellation keeps for its undo."""
    return {name: value for name, value in asdict(cause).items() if value is not None and name != "pauses"}
