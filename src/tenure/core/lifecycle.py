"""The states of a task, the one table of moves between them, and how claims end.

Everything else uses this module; no other place compares states to decide whether a move is allowed. The docs page
and the diagram are generated from `MOVES` and `ENDINGS`.

Invariants:
- a task is held exactly while it is `claimed` or `running`;
- a failed attempt is an event on the way to `retrying` or `dead_lettered`, not a state;
- every open task has a next step: a dependency, a due time, a holder's lease, or a person.
"""

from __future__ import annotations

from typing import NamedTuple

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
LATE_SUBMIT_STATES = (READY, RETRYING, PAUSED)  # where a late submit may still be accepted


class Move(NamedTuple):
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
    Move((VALIDATING,), (COMPLETED, RETRYING, DEAD_LETTERED), "verdict"),
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


def check_move(key: str, source: str, target: str) -> None:
    """Raise where the table has no such move. Rules answer a user earlier, so this is our bug."""
    if source != target and (source, target) not in ALLOWED:
        raise Bug(f"{key}: no move from {source} to {target}")


# The effect of a claim's end on its attempt.
COUNTS = "counts"
GIVEN_BACK = "given back"  # at most MOST_GIVEN_BACK times a run; later ones count
FREE = "free"  # never counts: only max_generations_per_task bounds it


class Ending(NamedTuple):
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
PAUSED_BY = Ending("PAUSED", "released", FREE, True, "pause, budget, question")
WAITING_BY = Ending("WAITING", "released", FREE, False, "waits for subtasks")
CANCELLED_BY = Ending("CANCELLED", "released", FREE, False, "cancel")
ABORTED_BY = Ending("SUPERSEDED", "superseded", COUNTS, False, "hung, or over max_duration: abort")
SUPERSEDED_BY = Ending(
    "SUPERSEDED", "superseded", FREE, False, "recover, reassign, terminate, edit or adopt with supersede"
)
ERROR_BY = Ending("ERROR", "error", GIVEN_BACK, False, "new epoch; spawn failed; claimed while the clock was ahead")

ENDINGS = (
    COMPLETED_BY, SUBMITTED_BY, FAILED_COUNTING, FAILED_GIVEN_BACK, EXPIRED_BY, RELEASED_BY, PAUSED_BY, WAITING_BY,
    CANCELLED_BY, ABORTED_BY, SUPERSEDED_BY, ERROR_BY,
)  # fmt: skip
WITH_RESULT = (COMPLETED_BY, SUBMITTED_BY)  # these end with a result: none of them uses up the last attempt
MOVED_ON = (*WITH_RESULT, FAILED_COUNTING, ABORTED_BY, PAUSED_BY, CANCELLED_BY)  # the task does not wait after these
MOST_GIVEN_BACK = limits.GIVEN_BACK
