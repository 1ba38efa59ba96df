"""Fields and texts of earlier versions, as the log and archived documents still have them.

Migrations change the tables; the log and archived documents stay as written and are read through here, so that replay
gives exactly the migrated rows.

0001: a task had `reason` and `resume_at` instead of `pauses` and `cancelled`; the cause was the start of the text.
0002: `late_submit_open` was `answerable`, `set_aside_for` was `parked`. Other fields renamed since are in no event and
in no archived document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.core import lifecycle
from tenure.core.lifecycle import CANCELLED, HELD, PAUSED, Cancelled, PauseCause

_RENAMED = {"answerable": "late_submit_open", "parked": "set_aside_for"}
_FORMER = ("reason", "resume_at")
_NOW = ("pauses", "cancelled")
_OLD = frozenset({*_RENAMED, *_FORMER})
_UNDECIDED = " could not be decided, "
_THIN = "review: "
_BY_TENURE = {"undo": lifecycle.UNDO, "pruned": lifecycle.PRUNE}


def pauses_of(reason: str, resume_at: int | None = None) -> tuple[PauseCause, ...]:
    """The pause causes in a reason of 0001; migration 0002 does the same in SQL."""
    if reason == "budget exceeded":
        return (PauseCause(cause=lifecycle.BUDGET, reason=reason),)
    if reason.startswith("budget ") and ": " in reason:
        source = reason[len("budget ") : reason.index(": ")]
        return (PauseCause(cause=lifecycle.BUDGET, reason=reason, source=source, until=resume_at),)
    if reason.startswith("question: "):
        return (PauseCause(cause=lifecycle.QUESTION, reason=reason),)
    if reason.startswith(_THIN) or _UNDECIDED in reason:
        return (PauseCause(cause=lifecycle.REVIEW, reason=reason),)
    if reason == lifecycle.DRAINED:
        return (PauseCause(cause=lifecycle.DRAIN, reason=reason),)
    if reason.endswith("; on_lost = hold"):
        return (PauseCause(cause=lifecycle.LOST, reason=reason),)
    return (PauseCause(cause=lifecycle.PERSON, reason=reason),)


def cancelled_of(reason: str | None) -> Cancelled:
    for cause in (lifecycle.CASCADE, lifecycle.PARENT):
        if reason is not None and reason.startswith(f"{cause}:"):
            return Cancelled(cause=cause, source=reason[len(cause) + 1 :])
    if reason in _BY_TENURE:
        return Cancelled(cause=_BY_TENURE[reason])
    return Cancelled(cause=lifecycle.PERSON, reason=reason or "")


class TaskFields:
    """The fields of one task as its patches leave them, including the former fields of early patches."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._former: dict[str, Any] = {}
        self._is_former = True  # until a patch has the current fields

    def update(self, patch: Mapping[str, Any]) -> None:
        if _OLD.isdisjoint(patch):
            self.values |= patch
        else:
            self.values |= {_RENAMED.get(name, name): value for name, value in patch.items() if name not in _FORMER}
        self._former |= {name: patch[name] for name in _FORMER if name in patch}
        if any(name in patch for name in _NOW):
            self._is_former = False
        if self._is_former:
            self._follow()

    def _follow(self) -> None:
        values, reason = self.values, self._former.get("reason")
        state = values.get("state")
        if state == PAUSED:
            if reason is not None:  # else it was drained by a version that keeps causes
                values["pauses"] = pauses_of(reason, self._former.get("resume_at"))
        elif state in HELD and values.get("wanted") == "pause":
            values["pauses"] = (PauseCause(cause=lifecycle.DRAIN, reason=lifecycle.DRAINED),)
        elif "pauses" in values:
            del values["pauses"]
        if state == CANCELLED:
            values["cancelled"] = cancelled_of(reason)
        else:
            values.pop("cancelled", None)


def task_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an archived task."""
    fields = TaskFields()
    fields.update(row)
    return fields.values
