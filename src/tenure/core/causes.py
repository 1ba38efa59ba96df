"""Why a task is paused, and why it was cancelled: typed, so that nothing has to be read out of a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict

PERSON = "person"  # somebody paused or cancelled it
BUDGET = "budget"  # more was spent than there is; `source` names the budget
QUESTION = "question"  # its holder asked a person
REVIEW = "review"  # a person has to see the result, or why nobody could decide on it
DRAIN = "drain"  # to be paused once its holder lets go
LOST = "lost"  # its holder was lost, and `on_lost` is hold
PAUSES = (PERSON, BUDGET, QUESTION, REVIEW, DRAIN, LOST)

OWN = (PERSON, DRAIN, LOST)  # what a person's `resume` lifts

# What lifts each, in words for people.
WAYS = {
    PERSON: "resume it", DRAIN: "resume it", LOST: "resume it", BUDGET: "raise the budget, or resume with --budget",
    QUESTION: "answer the question", REVIEW: "approve or reject the result, or resume once more",
}  # fmt: skip

CASCADE = "cascade"  # a task that it depends on failed; `source` is its id
PARENT = "parent"  # the task of which it is a subtask was cancelled; `source` is its id
UNDO = "undo"  # the command that made it was undone
PRUNE = "prune"  # a plan does not name it any more
CANCELLATIONS = (PERSON, CASCADE, PARENT, UNDO, PRUNE)

DRAINED = "drained: paused when its holder let go"


class PauseCause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cause that holds a task back; a task goes on when the last is gone."""

    cause: str
    reason: str = ""
    at: int | None = None  # None: from before causes were kept
    by: str | None = None
    source: str | None = None
    until: int | None = None  # when it ends by itself


class Cancelled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a task was cancelled, and what held it back until then."""

    cause: str
    reason: str = ""
    by: str | None = None
    source: str | None = None
    pauses: tuple[PauseCause, ...] = ()


def with_pause(pauses: Iterable[PauseCause], new: PauseCause) -> tuple[PauseCause, ...]:
    """One cause more; the same cause of the same source gives way to its newer word."""
    return (*(p for p in pauses if (p.cause, p.source) != (new.cause, new.source)), new)


def reason_of(pauses: Iterable[PauseCause], cancelled: Cancelled | None) -> str | None:
    """In one text for people."""
    if cancelled is not None:
        return cancelled.reason or cancelled.cause
    return "; ".join(p.reason or p.cause for p in pauses) or None


def told(cause: PauseCause | Cancelled) -> dict[str, Any]:
    """For a view: what is set, without what a cancellation keeps for its undo."""
    return {name: value for name, value in asdict(cause).items() if value is not None and name != "pauses"}
