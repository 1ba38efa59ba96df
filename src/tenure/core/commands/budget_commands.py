"""Budgets."""

from __future__ import annotations

from typing import ClassVar

from tenure.core.commands.command import PROJECT, TASK, Command, Declaration


class SetBudget(Command, frozen=True, kw_only=True, tag="set_budget"):
    """Create or change a budget; omitted fields stay as they are. Either `usd` or `tokens` gives the amount.

    `scope` is `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`.
    """

    declaration: ClassVar = Declaration("budgets", "admin", "PUT", PROJECT + "/budgets/{scope}")

    scope: str = "project"
    usd: str | None = None  # a decimal text
    tokens: int | None = None
    default_estimate: str | None = None  # what a task of unknown size reserves; in the budget's currency
    period: str | None = None  # day, week, month: it starts over with each; once: it does not
    zone: str | None = None  # where days begin, as in Europe/Berlin
    begins_at: int | None = None  # without a period: when it applies
    ends_at: int | None = None
    throttle: bool | None = None  # space claims out while it would be used up within a week


class RemoveBudget(Command, frozen=True, kw_only=True, tag="remove_budget"):
    """Remove a budget; the scope's spending is no longer limited."""

    declaration: ClassVar = Declaration("budgets", "admin", "POST", PROJECT + "/budgets/{scope}/remove")

    scope: str = "project"


class MoveBudget(Command, frozen=True, kw_only=True, tag="move_budget"):
    """Move an unspent and unreserved part of one budget to another of the same period."""

    declaration: ClassVar = Declaration("budgets", "admin", "POST", PROJECT + "/move-budget")

    source: str
    target: str
    amount: str  # in the currency of both


class ConfirmUsage(Command, frozen=True, kw_only=True, tag="confirm_usage"):
    """Confirm a cost that is far above what its tokens cost: from now on budgets count it. By a person.

    Of every attempt of the task, or of the one with this `generation`; also a rejected one.
    """

    declaration: ClassVar = Declaration("doubts", "admin", "POST", TASK + "/confirm-usage")

    task: str
    generation: int | None = None


class RejectUsage(Command, frozen=True, kw_only=True, tag="reject_usage"):
    """Reject such a cost: it was not spent, and counts nowhere. By a person; also a confirmed one."""

    declaration: ClassVar = Declaration("doubts", "admin", "POST", TASK + "/reject-usage")

    task: str
    generation: int | None = None
