"""Budgets: what may be reserved, spending, which alerts are due.

A claim reserves in each scope that its task counts in; its spending is taken from its own reservation first, and its
end returns the rest. `reserved` is the only function that makes a reservation, and it refuses one that would raise
spent plus reserved above allocated. Spending is never refused: it was paid.

A budget with a period starts over with each. No process is needed for that: `settled` brings a row up to `now` whenever
one is read. Reservations of live claims carry over into the new period.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import Bug, InvalidInput
from tenure.core.money import parse_usd, usd_text
from tenure.core.records import Budget, replace

TENANT, PROJECT, DAG, TASK, AGENT = "tenant", "project", "dag", "task", "agent"
SCOPES = (TENANT, PROJECT, DAG, TASK, AGENT)
NAMED = (DAG, TASK, AGENT)  # there may be many of these, so each has a name
USD, TOKENS = "usd", "tokens"
CURRENCIES = (USD, TOKENS)
PERIODS = {"day": "0 0 * * *", "week": "0 0 * * 1", "month": "0 0 1 * *"}
THRESHOLDS = (50, 90, 100)  # per cent of the allocation
WARN = 90
LEVELS = {50: "info", 90: "warning", 100: "error"}  # of the events
MOST_TOKENS = limits.BUDGET_TOKENS
# The default reservation of a task of unknown size, at most; and at most a tenth of the budget.
USUAL = {USD: 1_000_000_000, TOKENS: 100_000}
SHARE = 10


def budget_id(scope: str, name: str = "") -> str:
    return f"{scope}:{name}" if scope in NAMED else scope


def place(project: str, id: str) -> tuple[str, str]:
    """The project of the row: the tenant's budget has none."""
    return ("" if id == TENANT else project, id)


def split_scope(text: str) -> tuple[str, str]:
    """Scope and name, as people write them: `project`, `tenant`, `dag:ID`, `task:B-003`, `agent:ann`."""
    scope, _, name = text.partition(":")
    if scope not in SCOPES or (scope in NAMED) != bool(name):
        raise InvalidInput(
            f"budget scope {text[:80]!r} must be tenant, project, dag:ID, task:KEY or agent:NAME",
            "as in `tenure budget set project --usd 20`",
        )
    return scope, name


def default_estimate(currency: str, allocated: int) -> int:
    """What a task of unknown size reserves by default."""
    return max(1, min(USUAL[currency], allocated // SHARE))


def parse_amount(text: str, currency: str, what: str) -> int:
    """Nano-dollars from a decimal text, or whole tokens."""
    if currency == USD:
        return parse_usd(text, what, most=limits.BUDGET_USD)
    if not text.isascii() or not text.isdecimal() or int(text[:20]) > MOST_TOKENS:
        raise InvalidInput(f"{what} {text[:40]!r} must be a whole number of tokens, at most {MOST_TOKENS}")
    return int(text)


def amount_text(currency: str, amount: int) -> str:
    """For people: `$1.25`, `1,200 tokens`."""
    if currency == TOKENS:
        return f"{amount:,} tokens"
    return f"{'-' if amount < 0 else ''}${usd_text(abs(amount))}"


# --- time ---------------------------------------------------------------------------------------------------


def begun(budget: Budget, now: int) -> Budget:
    """A new budget, or one with a new period: the current period begins now."""
    return replace(budget, since=now, until=next_period(budget, now))


def next_period(budget: Budget, now: int) -> int | None:
    if budget.period is None:
        return None
    from tenure.core.schedules import next_tick  # most budgets do not repeat; keeps startup fast

    return next_tick(PERIODS[budget.period], budget.zone, now)


def settled(budget: Budget, now: int) -> Budget:
    """The row in the current period: earlier spending no longer counts, reservations stay."""
    if budget.until is None or budget.until > now:
        return budget
    from tenure.core.schedules import ONCE, due_ticks

    cron = PERIODS[budget.period or "day"]
    ticks = due_ticks(cron, budget.zone, since=budget.until - 1, now=now, misfire=ONCE).ticks
    return replace(
        budget, since=ticks[-1], until=next_period(budget, now), consumed=0, earlier=budget.earlier + budget.consumed,
        alerts={}, next_claim_at=None,
    )  # fmt: skip


def is_open(budget: Budget, now: int) -> bool:
    """Whether it is within its begin and end, if it has any."""
    return (budget.begins_at is None or budget.begins_at <= now) and (budget.ends_at is None or now < budget.ends_at)


def opens_at(budget: Budget, now: int) -> int | None:
    """When it next has more to give than now, as far as known."""
    if budget.begins_at is not None and now < budget.begins_at:
        return budget.begins_at
    if budget.ends_at is not None and budget.ends_at <= now:
        return None
    return budget.until


def check_same_period(source: Budget, target: Budget) -> None:
    """A moved amount counts in each period of both, so only in the same periods does one give what the other gets."""
    if (source.period, source.period and source.zone) != (target.period, target.period and target.zone):
        raise InvalidInput(
            f"budget {source.id} is for {_period_text(source)}, {target.id} for {_period_text(target)}:"
            " the same amount would count more often in one of them",
            "set the amount of each instead: `tenure budget set`",
        )


def _period_text(budget: Budget) -> str:
    return f"each {budget.period} ({budget.zone})" if budget.period else "all time"


# --- remainder ---------------------------------------------------------------------------------------------


def left(budget: Budget) -> int:
    """The part neither spent nor reserved; negative after an overrun."""
    return budget.allocated - budget.consumed - budget.reserved


def headroom(budget: Budget, now: int) -> int:
    """What can still be reserved."""
    return max(0, left(budget)) if is_open(budget, now) else 0


def percent(budget: Budget) -> int:
    """The spent part, in whole per cent."""
    return budget.consumed * 100 // budget.allocated if budget.allocated else 100 if budget.consumed else 0


def is_over(budget: Budget) -> bool:
    """Whether it is overspent: holders are paused."""
    return budget.consumed > budget.allocated


class Short(NamedTuple):
    """Why a budget does not cover a task: `missing` of `wanted`, or not before `retry_at`."""

    budget: Budget
    wanted: int
    missing: int
    retry_at: int | None
    is_throttled: bool = False


def short(budget: Budget, wanted: int, now: int) -> Short | None:
    """What keeps the budget from covering this amount now."""
    if budget.next_claim_at is not None and budget.next_claim_at > now:
        return Short(budget, wanted, 0, budget.next_claim_at, is_throttled=True)
    if wanted <= headroom(budget, now):
        return None
    has = left(budget) if is_open(budget, now) else 0
    return Short(budget, wanted, wanted - has, opens_at(budget, now))


# --- reserve, spend, return ------------------------------------------------------------------------------


def reserved(budget: Budget, amount: int, now: int) -> Budget:
    """The guard: no reservation raises spent plus reserved above allocated."""
    if amount < 0 or amount > headroom(budget, now):
        raise Bug(f"budget {budget.id}: {amount} reserved of {headroom(budget, now)}")
    more = replace(budget, reserved=budget.reserved + amount)
    return replace(more, next_claim_at=now + spacing(more, amount, now)) if budget.throttle else more


def returned(budget: Budget, amount: int) -> Budget:
    return replace(budget, reserved=budget.reserved - amount)


def spent(budget: Budget, amount: int, funds: int, now: int) -> tuple[Budget, int]:
    """The row after a claim has spent this amount, and the rest of its `funds`.

    A report may also lower a computed cost: that money is not reserved again.
    """
    taken = min(funds, max(0, amount))
    booked = replace(
        budget, consumed=max(0, budget.consumed + amount), reserved=budget.reserved - taken,
        burn=burnt(budget.burn, amount, now),
    )  # fmt: skip
    if budget.consumed + amount < 0:  # spent before this period
        booked = replace(booked, earlier=budget.earlier + budget.consumed + amount)
    return booked, funds - taken


class Alerted(NamedTuple):
    budget: Budget
    passed: tuple[int, ...]  # newly crossed thresholds
    ended: tuple[int, ...]  # thresholds no longer crossed


def alerted(budget: Budget, now: int) -> Alerted:
    """The row with the alerts that are due: each threshold is reported once, until spending is below it again."""
    used = percent(budget)
    over = [at for at in THRESHOLDS if used >= at]
    passed = tuple(at for at in over if str(at) not in budget.alerts)
    ended = tuple(int(at) for at in budget.alerts if int(at) not in over)
    if passed or ended:
        kept = {at: since for at, since in budget.alerts.items() if int(at) in over}
        budget = replace(budget, alerts=kept | {str(at): now for at in passed})
    return Alerted(budget, passed, ended)


# --- projection ---------------------------------------------------------------------------------------------

HOUR = 3600 * 1_000_000
DAY = 24 * HOUR
WEEK = 7 * DAY
ENOUGH = DAY // 4  # of spending before a projection: minutes of work do not predict a day
CONTINUE, THROTTLE = "CONTINUE", "THROTTLE"
LONGEST_SPACING = limits.SPACING_MAX

Burn = tuple[tuple[int, int], ...]


def burnt(burn: Burn, amount: int, now: int) -> Burn:
    """With this amount added to the current hour; hours older than a week are dropped."""
    hour = now // HOUR
    kept = tuple(part for part in burn if part[0] > hour - WEEK // HOUR and part[0] != hour)
    so_far = next((spent for at, spent in burn if at == hour), 0)
    return (*kept, (hour, so_far + amount))


def burned(burn: Burn, span: int, now: int) -> int:
    """Spending in the last `span`, by whole hours: the current one and those before it."""
    first = now // HOUR - span // HOUR
    return max(0, sum(spent for hour, spent in burn if hour > first))


class Window(NamedTuple):
    """Spending of the last `length`: a day or a week, or the age of a younger budget."""

    spent: int
    length: int

    @property
    def per_day(self) -> int:
        """The average of its days; less than a day is never made more of than it is."""
        return self.spent * DAY // max(DAY, self.length)


def window(budget: Budget, span: int, now: int) -> Window:
    return Window(burned(budget.burn, span, now), max(1, min(span, now - budget.created_at)))


class Projection(NamedTuple):
    """The projection: `days_left` is None where nothing is spent, and where it is not `decided`."""

    day: Window
    week: Window
    decided: bool  # whether enough of a day has passed to judge by
    days_left: float | None
    exhausted_at: int | None
    advice: str  # CONTINUE, or THROTTLE: it would be used up within a week, and before its next period


def projected(budget: Budget, now: int) -> Projection:
    """A budget that is to be throttled is judged from its first hour on: its claims may only come later. One of which
    nothing is left needs no time to be judged."""
    day, week = window(budget, DAY, now), window(budget, WEEK, now)
    if budget.consumed >= budget.allocated:
        return Projection(day, week, True, 0.0, now, THROTTLE)
    decided = budget.throttle or day.length >= ENOUGH
    spent, length = day if day.spent else week
    if not decided or not spent:
        return Projection(day, week, decided, None, None, CONTINUE)
    rest = max(0, budget.allocated - budget.consumed)
    lasts = rest * max(HOUR, length) // spent
    end = now + lasts
    ends_before = [at for at in (budget.until, budget.ends_at) if at is not None]
    is_soon = lasts < WEEK and all(end < at for at in ends_before)
    return Projection(day, week, decided, lasts / DAY, end, THROTTLE if is_soon else CONTINUE)


def spacing(budget: Budget, amount: int, now: int) -> int:
    """How long the next claim waits after one that reserved `amount`; zero while the budget lasts.

    As long as that amount must last, if the rest is to last until the next period, the budget's end, or
    for a week.
    """
    if projected(budget, now).advice == CONTINUE:
        return 0
    rest = max(1, budget.allocated - budget.consumed)
    until = min(at for at in (budget.until, budget.ends_at, now + WEEK) if at is not None)
    return int(min(LONGEST_SPACING, (until - now) * amount // rest))
