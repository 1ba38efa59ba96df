"""The row of a budget; `budgets.py` has its rules."""

from __future__ import annotations

import msgspec

from tenure.core.row import Row


class Budget(Row, frozen=True, kw_only=True):
    """What a scope may spend. Its id is `project`, `dag:ID`, `task:ID` or `agent:NAME`; the tenant's is `tenant`, of
    the project "".

    Amounts are nano-dollars or tokens. Those at the end are counted in the transaction that books, reserves or returns,
    and no event tells of them.
    """

    scope: str  # tenant, project, dag, task, agent
    currency: str  # usd, tokens
    allocated: int
    default_estimate: int  # what a task that says nothing of its size reserves
    task: str | None = None  # of a task's own
    period: str | None = None  # day, week, month: it begins anew with each; None: once
    zone: str = "UTC"
    begins_at: int | None = None  # of one that is not repeated: nothing is reserved before and after
    ends_at: int | None = None
    throttle: bool = False  # claims are spaced out while it would be used up within a week
    created_at: int
    created_by: str
    priced_at: int = 0  # when a person last said what a task of unknown size reserves

    consumed: int = 0  # in this period
    reserved: int = 0  # by claims that live
    earlier: int = 0  # spent in the scope before this period
    since: int = 0  # when this period began
    until: int | None = None  # when the next one begins
    alerts: dict[str, int] = msgspec.field(default_factory=dict)  # thresholds that are passed → since when
    burn: tuple[tuple[int, int], ...] = ()  # (hour, spent in it) of the last week, oldest first
    next_claim_at: int | None = None  # throttled: nothing is reserved before


# What of it follows from claims, usage and time.
COUNTED = frozenset({"consumed", "reserved", "earlier", "since", "until", "alerts", "burn", "next_claim_at"})
