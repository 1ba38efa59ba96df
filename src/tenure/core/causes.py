"""Why a task is paused, and why it was cancelled: typed, so that no text has to be parsed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict

PERSON = "person"  # a person paused or cancelled it
BUDGET = "budget"  # a budget is overspent; `source` names it
QUESTION = "question"  # its holder asked a person
REVIEW = "review"  # a person must review the result, or why no verdict was reached
DRAIN = "drain"  # paused once its holder releases it
LOST = "lost"  # its holder was lost and `on_lost` is hold
PAUSES = (PERSON, BUDGET, QUESTION, REVIEW, DRAIN, LOST)

OWN = (PERSON, DRAIN, LOST)  # what a person's `resume` lifts

# What lifts each, in words for people.
WAYS = {
    PERSON: "resume it", DRAIN: "resume it", LOST: "resume it", BUDGET: "raise the budget, or resume with --budget",
    QUESTION: "answer the question", REVIEW: "approve or reject the result, or resume once more",
}  # fmt: skip

CASCADE = "cascade"  # a task that it depends on failed; `source` is its id
PARENT = "parent"  # its parent was cancelled; `source` is its id
UNDO = "undo"  # the command that created it was undone
PRUNE = "prune"  # its plan no longer names it
CANCELLATIONS = (PERSON, CASCADE, PARENT, UNDO, PRUNE)

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
    pauses: tuple[PauseCause, ...] = ()


def with_pause(pauses: Iterable[PauseCause], new: PauseCause) -> tuple[PauseCause, ...]:
    """Add a cause; the same cause of the same source is replaced."""
    return (*(p for p in pauses if (p.cause, p.source) != (new.cause, new.source)), new)


def reason_of(pauses: Iterable[PauseCause], cancelled: Cancelled | None) -> str | None:
    """In one text for people."""
    if cancelled is not None:
        return cancelled.reason or cancelled.cause
    return "; ".join(p.reason or p.cause for p in pauses) or None


def told(cause: PauseCause | Cancelled) -> dict[str, Any]:
    """For a view: the set fields, without what a cancellation keeps for its undo."""
    return {name: value for name, value in asdict(cause).items() if value is not None and name != "pauses"}
