"""`budget set|list|show|move|remove|alerts|projection`: what scopes may spend, and forecasts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options, shown, verb_of
from tenure.cli.option_kinds import at as instant_at
from tenure.cli.option_kinds import instant
from tenure.cli.status import AT, moment_of
from tenure.cli.text_format import lasting, moment, money, plain, style, table
from tenure.client.wire import plain as wire
from tenure.core import commands as c
from tenure.core.budgets import ENOUGH, USD

HOUR = 3600 * 1_000_000
DAY = 24 * HOUR
BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH = 40
SCOPE = arg("scope", nargs="?", default="project", help="tenant, project, dag:ID, task:KEY or agent:NAME (project)")


@options(
    SCOPE,
    arg("--usd", metavar="AMOUNT", help="the amount, in dollars"),
    arg("--tokens", type=int, metavar="N", help="or in tokens; cached ones do not count"),
    arg("--default-estimate", metavar="AMOUNT", help="what a task without an estimate reserves"),
    arg("--period", choices=("day", "week", "month", "once"), help="renews with each period; once: it does not"),
    arg("--zone", metavar="NAME", help="where days begin, as in Europe/Berlin (UTC)"),
    arg("--from", dest="begins_at", type=instant, metavar="TIME", help="no reservations before"),
    arg("--until", dest="ends_at", type=instant, metavar="TIME", help="no reservations after"),
    arg(
        "--throttle",
        action="store_true",
        default=None,
        help="space out claims while the budget would last less than a week",
    ),
    arg("--no-throttle", dest="throttle", action="store_false", help="do not space out claims"),
)
def set_(run: Run, given: Namespace) -> Answer:
    """Create or change a budget; omitted options keep their values. Raising it resumes the tasks it paused."""
    begins_at, ends_at = (instant_at(when, run.client.now) for when in (given.begins_at, given.ends_at))
    outcome = run.client.set_budget(
        given.scope, usd=given.usd, tokens=given.tokens, default_estimate=given.default_estimate, period=given.period,
        zone=given.zone, begins_at=begins_at, ends_at=ends_at, throttle=given.throttle,
    )  # fmt: skip
    resumed = f"\n  resumed: {', '.join(outcome.changed)}" if outcome.changed else ""
    text = line(outcome.budget) + resumed if outcome.budget and outcome.ok else ""
    return answered(outcome, text)


@options(
    arg("scope", nargs="?", choices=("tenant", "project", "dag", "task", "agent"), help="only of this kind"),
    arg("--limit", type=int, default=100, metavar="N", help="at most N (100)"),
    arg("--after", metavar="ID", help="continue after this budget, the last of the previous page"),
    AT,
)
def list_(run: Run, given: Namespace) -> Answer:
    """List budgets of the project, and the tenant's. `budget list task` lists those of single tasks."""
    nothing = "no budgets; `tenure budget set --usd 20` creates one"
    at = moment_of(run, given)
    found = run.client.budgets(given.scope, after=given.after, limit=given.limit, at=at)
    then = f" --at {at}" if at else ""
    return shown(found, lambda found: listed(found) or nothing, f"--after {found.next}{then}")


@options(SCOPE, AT)
def show(run: Run, given: Namespace) -> Answer:
    """Show one budget: the remainder, the last week's use, and the forecast; with --at as it was, without forecast."""
    at = moment_of(run, given)
    found = run.client.budget(given.scope, at=at)
    if run.is_json:
        return Answer(wire(found))
    if at is not None:
        return Answer(None, "\n".join([line(found), *_alerts(found)]))
    ahead = run.client.projection(given.scope)
    return Answer(None, "\n".join([line(found), *burn_down(found, run.client.now()), *_ahead(ahead), *_alerts(found)]))


move = verb_of(
    c.MoveBudget,
    "Move money between budgets of the same period atomically; only money that is neither spent nor reserved.",
    arg("source", help="from which budget"),
    arg("target", help="to which"),
    arg("amount", help="how much, in the currency of both"),
)
remove = verb_of(c.RemoveBudget, "Remove a budget: its scope may spend without a limit.", SCOPE)


_ATTEMPT = arg("--generation", type=int, metavar="N", help="only of the attempt with this generation")
confirm_usage = verb_of(
    c.ConfirmUsage,
    """Confirm a reported cost that is far above what its tokens cost: it was spent, and budgets count it from now on.

    Until then it is booked and shown, but pauses nobody and denies nobody a claim. Also takes a rejection back.
    """,
    arg("task", help="the task that reported it; `tenure todo` lists them"),
    _ATTEMPT,
)
reject_usage = verb_of(
    c.RejectUsage,
    """Reject a reported cost that is far above what its tokens cost: it was not spent, and no budget counts it.

    The part up to ten times of what the tokens cost stays. Also takes a confirmation back.
    """,
    arg("task", help="the task that reported it; `tenure todo` lists them"),
    _ATTEMPT,
)


def alerts(run: Run, given: Namespace) -> Answer:
    """List budgets of which 50, 90 or 100 per cent are spent."""
    now = run.client.now()
    return shown(run.client.alerts(), lambda found: "\n".join(_alert(alert, now) for alert in found) or "no alerts")


@options(SCOPE)
def projection(run: Run, given: Namespace) -> Answer:
    """Forecast a budget: burn rate, days left, and the cost of all open tasks."""
    found = run.client.projection(given.scope)
    return shown(found, lambda ahead: "\n".join([f"{ahead['budget']}: {_left(ahead)}", *_ahead(ahead)]))


# --- text ---------------------------------------------------------------------------------------------------


def spelled(currency: str, amount: str | int) -> str:
    if currency == "tokens":
        return f"{amount:,} tokens"
    return money(amount)


def _left(budget: Mapping[str, Any]) -> str:
    whole = spelled(budget["currency"], budget["allocated"])
    rest = Decimal(budget["remaining"])
    if rest > 0:
        return f"{spelled(budget['currency'], budget['remaining'])} of {whole} left"
    beyond = spelled(budget["currency"], str(-rest) if budget["currency"] == USD else -int(rest)) if rest else ""
    return f"nothing of {whole} left" + (f", and {beyond} beyond it" if beyond else "")


def line(budget: Mapping[str, Any]) -> str:
    """A budget in one line, with a bar."""
    spent, held = (spelled(budget["currency"], budget[name]) for name in ("consumed", "reserved"))
    name = budget.get("task") or budget["id"]
    period = f" a {budget['period']}" if budget["period"] else ""
    line = f"{style(plain(name), 'bold')}  {bar(budget)}  {_left(budget)}{period}: {spent} spent, {held} reserved"
    if not budget.get("doubtful"):
        return line
    doubtful = spelled(budget["currency"], budget["doubtful"])
    return (
        f"{line}; {doubtful} more was reported and is doubtful: it counts when a person confirms it, see `tenure todo`"
    )


def bar(budget: Mapping[str, Any], width: int = 20) -> str:
    whole = float(budget["allocated"]) or 1.0
    spent = min(width, round(width * float(budget["consumed"]) / whole))
    held = min(width - spent, round(width * float(budget["reserved"]) / whole))
    used = budget["percent"]
    colour = "red" if used >= 100 else "yellow" if used >= 90 else "green"
    return f"{style('█' * spent, colour)}{style('▒' * held, colour)}{'·' * (width - spent - held)} {used} %"


def listed(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            plain(b.get("task") or b["id"]),
            bar(b),
            *(spelled(b["currency"], b[n]) for n in ("allocated", "consumed", "reserved")),
            spelled(b["currency"], b["remaining"]) if Decimal(b["remaining"]) > 0 else "none",
            b["period"] or "once",
        )
        for b in found
    ]
    return table(rows, ("budget", "", "allocated", "spent", "reserved", "left", "period"))


def burn_down(budget: Mapping[str, Any], now: int) -> list[str]:
    """The remainder at the end of each part of the last week."""
    if not budget["burn"]:
        return ["  nothing was spent in the last week"]
    whole = float(budget["allocated"]) or 1.0
    part = 7 * DAY // WIDTH
    spent = [0.0] * WIDTH
    for burnt in budget["burn"]:
        at = WIDTH - 1 - min(WIDTH - 1, max(0, (now - burnt["at"]) // part))
        spent[at] += float(burnt["spent"])
    rest = whole - float(budget["consumed"])
    heights: list[float] = []
    for amount in reversed(spent):
        heights.insert(0, rest)
        rest += amount
    top = max(whole, *heights)
    drawn = "".join(BLOCKS[max(0, min(8, round(8 * height / top)))] for height in heights)
    return [f"  7 days  {drawn}  now"]


def _ahead(view: Mapping[str, Any]) -> list[str]:
    currency = view["currency"]
    spent = [
        f"{spelled(currency, view[of]['spent'])} in the last {_span(view[of]['seconds'])}" for of in ("day", "week")
    ]
    lines = [f"  spent   {', '.join(dict.fromkeys(spent))}"]
    if not view["decided"]:
        lines.append(f"  lasts   too early to say: a projection needs {lasting(ENOUGH / 1e6)} of spending")
    elif view["days_left"] == 0:
        lines.append(f"  lasts   nothing is left of it: {style(view['advice'], 'red')}")
    elif view["days_left"] is not None:
        lasts = f"{lasting(view['days_left'] * 86_400)}, until {moment(view['exhausted_at'], 0)[:16]}"
        colour = "yellow" if view["advice"] == "THROTTLE" else "green"
        lines.append(f"  lasts   {lasts}: {style(view['advice'], colour)}")
    waiting = view["open_tasks"]
    if waiting and waiting["tasks"]:
        needed, missing = (spelled(currency, waiting[name]) for name in ("estimate", "shortfall"))
        lack = style(f"{missing} short", "red") if float(waiting["shortfall"]) else "enough"
        lines.append(f"  open    {waiting['tasks']} tasks will take about {needed}: {lack}")
    return lines


def _span(seconds: float) -> str:
    """`24 h` and `7 days` where they are whole, else how long it is."""
    return {86_400.0: "24 h", 7 * 86_400.0: "7 days"}.get(seconds) or lasting(seconds)


def _alerts(budget: Mapping[str, Any]) -> list[str]:
    return [
        f"  alert   {alert['level']} % passed at {moment(alert['since'], 0)[:16]}" for alert in budget["alerts"][:1]
    ]


def _alert(alert: Mapping[str, Any], now: int) -> str:
    colour = {100: "red", 90: "yellow"}.get(alert["level"], "cyan")
    level = style(f"{alert['level']} %", colour)
    return f"{level}  {plain(alert['message'])}, since {lasting((now - alert['since']) / 1e6)}"
