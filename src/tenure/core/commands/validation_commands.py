"""Checks of what was handed in: a taker has a receipt of its own; a person, or another agent, has a word."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core.commands.command import Command
from tenure.core.declaration import PROJECT, TASK, Declaration


class TakeValidation(Command, frozen=True, kw_only=True, tag="take_validation"):
    """Check a result that waits for a verdict: that of `task`, or the best one. Granted with a receipt of its own."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", PROJECT + "/validations")

    checker: str  # who it is, for people
    task: str | None = None
    validators: tuple[str, ...] = ()  # those that the taker can ask; empty: any
    lease: float | None = None


class RenewValidation(Command, frozen=True, kw_only=True, tag="renew_validation"):
    """Lengthen the lease of a check; refused once its verdict is not wanted any more."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", PROJECT + "/validations/renew")

    receipt: str
    lease: float | None = None


class Judge(Command, frozen=True, kw_only=True, tag="judge"):
    """The verdict on a result, by the receipt of its check. A refused output is a failed attempt."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", PROJECT + "/validations/judge")

    receipt: str
    ok: bool
    reasons: tuple[str, ...] = ()
    details: dict[str, Any] = {}


class Undecide(Command, frozen=True, kw_only=True, tag="undecide"):
    """Give a check up without a verdict; another try follows, and in the end a person is asked."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", PROJECT + "/validations/undecided")

    receipt: str
    reason: str
    retry_after: float | None = None


class Approve(Command, frozen=True, kw_only=True, tag="approve"):
    """The result that waits for a verdict is good: by a person, or for a review by another agent than its maker."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", TASK + "/approve")

    task: str
    note: str = ""


class Reject(Command, frozen=True, kw_only=True, tag="reject"):
    """It is not; the reason is for whoever tries again."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", TASK + "/reject")

    task: str
    reason: str
