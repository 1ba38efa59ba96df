"""Budgets: amount, remainder, projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from tenure.core.budgets import CONTINUE, CURRENCIES, PERIODS, SCOPES, THROTTLE
from tenure.core.views.task_views import Instant

Amount = Annotated[str | int, Meta(description="dollars as a decimal text, or tokens as a number")]
Currency = Annotated[str, Meta(extra_json_schema={"enum": list(CURRENCIES)})]


class AlertView(TypedDict):
    """A crossed threshold; listed until spending is below it again."""

    budget: str
    level: Annotated[int, Meta(description="per cent of the allocation")]
    percent: Annotated[int, Meta(description="per cent spent now")]
    message: str
    since: Instant


class BudgetView(TypedDict):
    """What a scope may spend."""

    id: Annotated[str, Meta(description="`tenant`, `project`, `dag:ID`, `task:ID` or `agent:NAME`")]
    scope: Annotated[str, Meta(extra_json_schema={"enum": list(SCOPES)})]
    task: NotRequired[Annotated[str, Meta(description="its key, of a task's budget")]]
    currency: Currency
    allocated: Amount
    consumed: Annotated[Amount, Meta(description="spent in this period")]
    reserved: Annotated[Amount, Meta(description="reserved by live claims")]
    remaining: Annotated[Amount, Meta(description="neither spent nor reserved; negative after an overrun")]
    doubtful: NotRequired[
        Annotated[Amount, Meta(description="reported in its scope, and not spent until a person confirms it")]
    ]
    percent: Annotated[int, Meta(description="per cent spent")]
    default_estimate: Amount
    period: Annotated[str, Meta(extra_json_schema={"enum": list(PERIODS)})] | None
    zone: str
    begins_at: Instant | None
    ends_at: Instant | None
    since: Annotated[Instant, Meta(description="when this period began")]
    until: Annotated[Instant | None, Meta(description="when the next one begins")]
    throttle: bool
    next_claim_at: Annotated[Instant | None, Meta(description="throttled: nothing is reserved before this time")]
    alerts: Sequence[AlertView]
    created_at: Instant
    created_by: str


class BurnView(TypedDict):
    """Spending in one hour."""

    at: Instant
    spent: Amount


class BudgetInFull(BudgetView):
    """With spending by hour in the last week, oldest first; hours without any are left out."""

    burn: Sequence[BurnView]


class ShortfallView(TypedDict):
    """What all open tasks will probably take, compared with the remainder."""

    tasks: int
    estimate: Amount
    remaining: Amount
    shortfall: Annotated[Amount, Meta(description="the missing amount; zero if none")]
    counted: Annotated[int, Meta(description="tasks estimated one by one; the others count as tasks of unknown size")]


class WindowView(TypedDict):
    """Spending in a span of time."""

    spent: Amount
    seconds: Annotated[float, Meta(description="its length: that of a younger budget is its age")]


class ProjectionView(TypedDict):
    """The projection of a budget."""

    budget: str
    currency: Currency
    allocated: Amount
    consumed: Amount
    reserved: Amount
    remaining: Amount
    day: Annotated[WindowView, Meta(description="the last 24 hours")]
    week: Annotated[WindowView, Meta(description="the last 7 days")]
    last_day: Annotated[Amount, Meta(description="spent in the last 24 hours")]
    last_week: Annotated[Amount, Meta(description="spent per day, on average of the last 7 days")]
    decided: Annotated[
        bool, Meta(description="whether enough time has passed to project; a throttled budget is judged at once")
    ]
    days_left: Annotated[float | None, Meta(description="None while nothing is spent, and until it is decided")]
    exhausted_at: Instant | None
    advice: Annotated[str, Meta(extra_json_schema={"enum": [CONTINUE, THROTTLE]})]
    open_tasks: ShortfallView | None


class ShortageView(TypedDict):
    """Which budget does not cover something, and what can be done about it."""

    scope: str
    currency: Currency
    wanted: NotRequired[Amount]
    missing: NotRequired[Amount]
    throttled: NotRequired[bool]
    recommendation: str


class RoomView(TypedDict):
    """What can be reserved in one budget."""

    budget: str
    currency: Currency
    headroom: Amount


class HeadroomView(TypedDict):
    """Whether an agent could claim anything as far as budgets go, and if not, why and until when."""

    ok: bool
    budgets: Sequence[RoomView]
    reason: NotRequired[str]
    recommendation: NotRequired[str]
    retry_at: NotRequired[Instant]
    retry_in: NotRequired[Annotated[float, Meta(description="seconds until then")]]
