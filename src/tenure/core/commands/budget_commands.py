"""Budgets."""

from __future__ import annotations

from typing import ClassVar

from tenure.core.commands.command import Command
from tenure.core.declaration import PROJECT, Declaration


class SetBudget(Command, frozen=True, kw_only=True, tag="set_budget"):
    """Make a budget, or change it; what is left out stays as it is. One of `usd` and `tokens` says how much there is.

    `scope` is `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`.
    """

    declaration: ClassVar = Declaration("budgets", "admin", "PUT", PROJECT + "/budgets/{scope}")

    scope: str = "project"
    usd: str | None = None  # a decimal text
    tokens: int | None = None
    default_estimate: str | None = None  # what a task reserves that says nothing of its size; in the budget's currency
    period: str | None = None  # day, week, month: it begins anew with each; once: it does not
    zone: str | None = None  # where days begin, as in Europe/Berlin
    begins_at: int | None = None  # of one that is not repeated: when it runs
    ends_at: int | None = None
    throttle: bool | None = None  # space claims out while it would be used up within a week


class RemoveBudget(Command, frozen=True, kw_only=True, tag="remove_budget"):
    """The scope may spend what it likes from now on."""

    declaration: ClassVar = Declaration("budgets", "admin", "POST", PROJECT + "/budgets/{scope}/remove")

    scope: str = "project"


class MoveBudget(Command, frozen=True, kw_only=True, tag="move_budget"):
    """Give a part of one budget that is neither spent nor reserved to another."""

    declaration: ClassVar = Declaration("budgets", "admin", "POST", PROJECT + "/move-budget")

    source: str
    target: str
    amount: str  # in the currency of both
