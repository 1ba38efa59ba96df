"""Validation of results: a taker has its own receipt; a person, or another agent, approves or rejects."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core.commands.command import PROJECT, TASK, Command, Declaration


class TakeValidation(Command, frozen=True, kw_only=True, tag="take_validation"):
    """Take a result that waits for a verdict: that of `task`, or the best one. Granted with its own receipt.

    With the phase `land` one that has passed, and whose commit is not on its branch yet.
    """

    declaration: ClassVar = Declaration("validation", "agent", "POST", PROJECT + "/validations")

    checker: str  # who it is, for people
    task: str | None = None
    validators: tuple[str, ...] = ()  # those that the taker can run; empty: any
    lease: float | None = None
    phase: str = "judge"  # or land


class RenewValidation(Command, frozen=True, kw_only=True, tag="renew_validation"):
    """Extend the lease of a validation; refused once its verdict is no longer needed."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", PROJECT + "/validations/renew")

    receipt: str
    lease: float | None = None


class Judge(Command, frozen=True, kw_only=True, tag="judge"):
    """Give the verdict on a result, by the receipt of its validation. A refused output is a failed attempt.

    By the receipt of its landing: whether its commit is on the branch now.
    """

    declaration: ClassVar = Declaration(
        "validation", "agent", "POST", PROJECT + "/validations/judge", printed=("reasons", "details")
    )

    receipt: str
    ok: bool
    reasons: tuple[str, ...] = ()
    details: dict[str, Any] = {}
    conflict: bool = False  # of a landing: the branch has other changes in the same lines; the attempt is given back


class Undecide(Command, frozen=True, kw_only=True, tag="undecide"):
    """Give up a validation without a verdict; it is retried, and at last a person is asked."""

    declaration: ClassVar = Declaration(
        "validation", "agent", "POST", PROJECT + "/validations/undecided", printed=("reason",)
    )

    receipt: str
    reason: str
    retry_after: float | None = None
    blocked: bool = False  # of a landing: the checkout is in the way; not counted as a try


class Approve(Command, frozen=True, kw_only=True, tag="approve"):
    """Approve the result that waits for a verdict: by a person, or for a review by an agent other than its author."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", TASK + "/approve")

    task: str
    note: str = ""


class Reject(Command, frozen=True, kw_only=True, tag="reject"):
    """Reject the result that waits for a verdict, or to be landed; the reason goes to the next holder."""

    declaration: ClassVar = Declaration("validation", "agent", "POST", TASK + "/reject")

    task: str
    reason: str
