"""The row of a budget; `budgets.py` has its rules."""

from __future__ import annotations

import msgspec

from tenure.core.row import Row


class Budget(Row, frozen=True, kw_only=True):
    """What a scope may spend. Its id is `project`, `dag:ID`, `task:ID` or `agent:NAME`; the tenant's is `tenant`, in
    the project "".

    Amounts are nano-dollars or tokens. The last fields are counted in the transaction that books, reserves or returns,
    and have no events.
    """

    scope: str  # tenant, project, dag, task, agent
    currency: str  # usd, tokens
    allocated: int
    default_estimate: int  # what a task of unknown size reserves
    task: str | None = None  # of a task's budget
    period: str | None = None  # day, week, month: it starts over with each; None: once
    zone: str = "UTC"
    begins_at: int | None = None  # without a period: nothing is reserved before or after
    ends_at: int | None = None
    throttle: bool = False  # space claims out while it would be used up within a week
    created_at: int
    created_by: str
    priced_at: int = 0  # when `default_estimate` was last set

    consumed: int = 0  # in this period
    reserved: int = 0  # by live claims
    earlier: int = 0  # spent in the scope before this period
    since: int = 0  # when this period began
    until: int | None = None  # when the next one begins
    alerts: dict[str, int] = msgspec.field(default_factory=dict)  # crossed thresholds → since when
    burn: tuple[tuple[int, int], ...] = ()  # (hour, spent in it) of the last week, oldest first
    next_claim_at: int | None = None  # throttled: nothing is reserved before this time


# Fields that follow from claims, usage and time.
COUNTED = frozenset({"consumed", "reserved", "earlier", "since", "until", "alerts", "burn", "next_claim_at"})
