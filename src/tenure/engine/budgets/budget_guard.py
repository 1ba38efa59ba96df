"""Budgets during work: what a claim reserves, spends and gives back, and the warnings that follow.

Amounts are counted in the transaction that claims, books or ends, so no two claims can reserve the same money. Budgets
are read only by `rows_of`, which brings them up to `now`. Every end of a claim passes `release`: see `effects.spread`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tenure.core import budgets, claims, lifecycle, moves, retry
from tenure.core.budgets import AGENT, DAG, PROJECT, TASK, TENANT, TOKENS, USD, Short, amount_text, budget_id
from tenure.core.doubts import AMOUNT
from tenure.core.lifecycle import BUDGET, PauseCause
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Budget, Claim, Project, Task, Usage, replace
from tenure.engine.models.estimates import estimate_of
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current, current_claim
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.holder_verbs import Hold

if TYPE_CHECKING:
    from tenure.core import views as v


def counts_in(work: UnitOfWork, project: Project, task: Task, agent: str) -> list[str]:
    """Ids of the budgets that may apply: the tenant's first, the task's own and those above it last."""
    named = {TENANT: "", PROJECT: "", DAG: task.dag, AGENT: agent}
    found = [budget_id(scope, name) for scope, name in named.items() if scope in project.funded]
    above: Task | None = task if task.capped else None
    while above is not None:
        found.append(budget_id(TASK, above.id))
        above = work.get(Task, task.project, above.parent) if above.parent is not None else None
    return found


def rows_of(work: UnitOfWork, project: Project, task: Task, agent: str) -> list[Budget]:
    """The budgets that a task counts in while the agent holds it, in that order."""
    return kept_rows(work, project.id, counts_in(work, project, task, agent))


def kept_rows(work: UnitOfWork, project: str, ids: Sequence[str]) -> list[Budget]:
    rows: dict[str, Budget] = {}
    if TENANT in ids:
        work.need_locks("")
        rows |= work.get_many(Budget, "", (TENANT,))
    rows |= work.get_many(Budget, project, [id for id in ids if id != TENANT])
    return [_settled(work, rows[id]) for id in ids if id in rows]


def _settled(work: UnitOfWork, budget: Budget) -> Budget:
    now_is = budgets.settled(budget, work.now)
    return budget if now_is is budget else work.put(now_is)


def keep(work: UnitOfWork, budget: Budget) -> Budget:
    """Put the row, and append events for thresholds that it has crossed, up or down."""
    known = budgets.alerted(budget, work.now)
    kept = work.put(known.budget)
    for kind, levels in (("budget.alert", known.passed), ("budget.alert_ended", known.ended)):
        for at in levels:
            details = {"budget": kept.id, "threshold": at, "percent": budgets.percent(kept)}
            message = f"budget {called(work, kept)}: {used(kept)}"
            level = budgets.LEVELS[at] if kind == "budget.alert" else "info"
            work.record(kind, project=kept.project, message=message, level=level, details=details)
    return kept


def called(work: UnitOfWork, budget: Budget) -> str:
    """The name for people: a task's budget is named by the task's key."""
    task = work.get(Task, budget.project, budget.task) if budget.task is not None else None
    return budget.id if task is None else budget_id(TASK, task.key)


def next_claims(work: UnitOfWork, project: Project, claim: Claim) -> dict[str, int]:
    """Throttled budget → when its next claim may be, of the budgets that a new claim has reserved in."""
    rows = kept_rows(work, project.id, list(claim.funds or ()))
    return {row.id: row.next_claim_at for row in rows if row.next_claim_at is not None}


def used(budget: Budget) -> str:
    spent, allocated = (amount_text(budget.currency, n) for n in (budget.consumed, budget.allocated))
    return f"{budgets.percent(budget)} % used, {spent} of {allocated}"


# --- claiming -----------------------------------------------------------------------------------------------


def prices(work: UnitOfWork, task: Task, rows: Sequence[Budget], agent: str) -> dict[str, int]:
    """What the task reserves in each of these budgets.

    A cost cap is reserved whole, less what the task has cost so far. Other tasks reserve their estimate, or the
    budget's default for an unknown size; but no more than the budgets of tasks above have left.
    """
    caps = [row for row in rows if row.scope == TASK]
    own = {row.currency: budgets.left(row) for row in caps if row.task == task.id}
    known: dict[str, int | None] = {}
    if any(row.currency not in own for row in rows):
        estimate = estimate_of(work, task, brief_of(work, task), work.get(Agent, task.project, agent))
        known = {USD: estimate.cost, TOKENS: estimate.tokens}
    found = {}
    for row in rows:
        amount = own.get(row.currency) if row.currency in own else known[row.currency] or row.default_estimate
        rest = [budgets.left(cap) for cap in caps if cap.currency == row.currency]
        found[row.id] = max(0, min([amount or 0, *rest]))
    return found


def short_of(work: UnitOfWork, project: Project, task: Task, agent: str) -> Short | None:
    """The first budget that does not cover the task now."""
    rows = rows_of(work, project, task, agent)
    amounts = prices(work, task, rows, agent)
    for row in rows:
        short = budgets.short(row, amounts[row.id] or row.default_estimate, work.now)
        if short is not None:
            return short
    return None


def reserve(work: UnitOfWork, project: Project, held: Task, claim: Claim) -> tuple[Task, Claim]:
    """Task and claim with the claim's reservations. `short_of` has checked that all budgets cover them."""
    rows = rows_of(work, project, held, claim.agent)
    amounts = prices(work, held, rows, claim.agent)
    for row in rows:
        work.put(budgets.reserved(row, amounts[row.id], work.now))
    return replace(held, funded=bool(rows)), replace(claim, funds=amounts or None)


def denied(work: UnitOfWork, task: Task, short: Short) -> Outcome:
    """DENIED_BUDGET: which budget lacks how much, and what can be done about it."""
    return Outcome(
        outcome="DENIED_BUDGET",
        state=task.state,
        **work.retry_at(short.retry_at),
        message=f"{task.key}: {reason(work, short)}",
        hint=recommendation(work, short),
        shortage=shown(work, short),
    )


def reason(work: UnitOfWork, short: Short) -> str:
    budget = short.budget
    name = called(work, budget)
    if _is_hidden(work, budget):
        return f"budget {name} does not allow it"
    wanted = amount_text(budget.currency, short.wanted)
    if short.is_throttled:
        return f"budget {name} is throttled: {wanted} can be reserved later"
    if not budgets.is_open(budget, work.now):
        return f"the period of budget {name} {'has ended' if short.retry_at is None else 'has not begun'}"
    has, spent, reserved = (
        amount_text(budget.currency, n) for n in (budgets.headroom(budget, work.now), budget.consumed, budget.reserved)
    )
    return f"would reserve {wanted}; budget {name} has {has} left ({spent} spent, {reserved} reserved)"


def recommendation(work: UnitOfWork, short: Short) -> str:
    """What to do: raise it, wait, or request less."""
    budget = short.budget
    if short.is_throttled:
        return "wait: claims are spaced out so that the budget lasts; an admin can raise it, or disable throttling"
    ways = []
    if short.missing and (budgets.is_over(budget) or _is_hidden(work, budget)):
        ways.append("an admin can raise it")
    elif short.missing:
        ways.append(f"an admin can raise it by {amount_text(budget.currency, short.missing)}")
    if budget.reserved:
        ways.append("wait until claims return what they do not use")
    if short.retry_at is not None:
        ways.append("wait for its next period")
    if budget.scope != TASK and budget.currency == USD:
        ways.append("give the task a lower max_cost_usd")
    return "; ".join(ways) or "an admin can set a new period"


def shown(work: UnitOfWork, short: Short) -> v.ShortageView:
    budget = short.budget
    if _is_hidden(work, budget):
        return {"scope": budget.id, "currency": budget.currency, "recommendation": recommendation(work, short)}
    return {
        "scope": budget.id,
        "currency": budget.currency,
        "wanted": amount(budget, short.wanted),
        "missing": amount(budget, short.missing),
        "throttled": short.is_throttled,
        "recommendation": recommendation(work, short),
    }


def amount(budget: Budget, number: int) -> str | int:
    """As interfaces show it: money as a decimal text, tokens as a number."""
    if budget.currency == TOKENS:
        return number
    return amount_text(USD, number).replace("$", "")


def _is_hidden(work: UnitOfWork, budget: Budget) -> bool:
    """Whether to hide the amounts: spending of all projects is hidden from callers who may see only some."""
    return budget.scope == TENANT and bool(work.principal.projects)


# --- spending, ending ---------------------------------------------------------------------------------------


def book(
    work: UnitOfWork,
    project: Project,
    task: Task,
    claim: Claim,
    before: Mapping[str, Usage],
    after: Mapping[str, Usage],
) -> None:
    """Count in every scope by how much the claim's usage has changed. Under a live claim it is taken from the claim's
    reservation.

    Spending under a stale receipt does not count against the task and has no reservation to take from.
    """
    if not (project.funded or task.capped):
        return
    now_is = work.get(Claim, claim.project, claim.id) or claim  # it may have ended in this command
    funds = dict(now_is.funds or {})
    own = budget_id(TASK, task.id)
    for row in rows_of(work, project, task, claim.agent):
        then, now = (
            sum(AMOUNT[row.currency](one) for one in rows.values() if not (one.late and row.id == own))
            for rows in (before, after)
        )
        more = now - then
        if not more:
            continue
        booked, rest = budgets.spent(row, more, funds.get(row.id, 0), work.now)
        keep(work, booked)
        if row.id in funds:
            funds[row.id] = rest
    if funds != (now_is.funds or {}):
        work.put(replace(now_is, funds=funds))


def release(work: UnitOfWork, task: Task) -> None:
    """The claim has ended: return exactly the unused part of its reservation, whatever has changed since."""
    claim = current_claim(work, task)
    if claim.funds is None:
        return
    give_back(work, claim, claim.funds)
    work.put(replace(current_claim(work, task), funds=None))


def give_back(work: UnitOfWork, claim: Claim, amounts: Mapping[str, int]) -> None:
    for row in kept_rows(work, claim.project, list(amounts)):
        if amounts[row.id]:
            work.put(budgets.returned(row, amounts[row.id]))


# --- check points -------------------------------------------------------------------------------------------


def checked(work: UnitOfWork, hold: Hold, answer: Outcome) -> Outcome:
    """The answer to a holder's sign of life, with a warning where a budget is nearly used up.

    Where a budget is overspent the task is paused in this transaction: the claim ends, and a late submit stays open.
    """
    task = current(work, hold.task)
    if not claims.is_held(task):
        return answer
    rows = rows_of(work, hold.project, task, hold.claim.agent)
    over = next((row for row in rows if budgets.is_over(row)), None)
    if over is not None:
        return _paused(work, task, over, answer)
    near = _near(work, rows) if answer.directive == "continue" else None  # it was booked after the answer was made
    return answer if near is None else replace(answer, directive="warn", directive_text=near)


def warning(work: UnitOfWork, project: Project, task: Task) -> str | None:
    """The warning for the holder of a task, where one of its budgets is nearly used up."""
    return _near(work, rows_of(work, project, task, task.agent or ""))


def _near(work: UnitOfWork, rows: Sequence[Budget]) -> str | None:
    near = max(rows, key=budgets.percent, default=None)
    if near is None or budgets.percent(near) < budgets.WARN:
        return None
    return f"budget {_text(work, near)}: finish soon, or save a checkpoint; the task is paused when more is spent"


def _text(work: UnitOfWork, budget: Budget) -> str:
    return f"{called(work, budget)}: {'nearly used up' if _is_hidden(work, budget) else used(budget)}"


def _paused(work: UnitOfWork, task: Task, budget: Budget, answer: Outcome) -> Outcome:
    why = f"budget {budget.id}: {used(budget)}"
    free, over = claims.ended(task, current_claim(work, task), lifecycle.PAUSED_BY, work.now)
    over = replace(over, error_class=retry.BUDGET, error=f"budget {called(work, budget)}: {used(budget)}")
    until = budgets.opens_at(budget, work.now)
    free = moves.paused(free, PauseCause(cause=BUDGET, reason=why, at=work.now, source=budget.id, until=until))
    details = {"budget": budget.id, "percent": budgets.percent(budget)}
    kept = work.record("task.paused", over, task=free, message=why, level="error", details=details)
    spread(work)
    ended = {"outcome": "NO_CLAIM", "lease_until": None, "lease": None} if answer.outcome == "RENEWED" else {}
    return replace(
        answer,
        **ended,
        state=kept.state,
        directive="pause",
        directive_text=f"budget {_text(work, budget)}",
        message=f"{kept.key} is paused: budget {_text(work, budget)}",
        hint="stop and save a checkpoint; the task resumes when the budget is raised",
    )


def no_headroom(work: UnitOfWork, project: Project, task: Task, claim: Claim) -> Outcome | None:
    """DENIED_BUDGET where nothing is left for subtasks, not even in the parent's reservation."""
    for row in rows_of(work, project, task, claim.agent):
        if not budgets.is_open(row, work.now) or budgets.left(row) + (claim.funds or {}).get(row.id, 0) <= 0:
            short = Short(row, row.default_estimate, row.default_estimate, budgets.opens_at(row, work.now))
            return replace(denied(work, task, short), directive="continue")
    return None


def lend(work: UnitOfWork, project: Project, parent: Task, claim: Claim, children: Sequence[Task]) -> None:
    """A cost cap covers subtasks: their holders can reserve what the parent's claim releases here."""
    own = budget_id(TASK, parent.id)
    funds = claim.funds or {}
    if own not in funds:
        return
    wanted: dict[str, int] = dict.fromkeys(funds, 0)
    rows = [row for row in rows_of(work, project, parent, claim.agent) if row.id in funds]
    for child in children:
        cap = brief_of(work, child).constraints.get("max_cost_usd")
        estimate = estimate_of(work, child, brief_of(work, child))
        for row in rows:
            likely = estimate.tokens if row.currency == TOKENS else estimate.cost
            if cap is not None and row.currency == USD:
                likely = budgets.parse_amount(str(cap), USD, "max_cost_usd")
            wanted[row.id] += likely or row.default_estimate
    lent = {id: min(funds[id], wanted[id]) for id in wanted}
    give_back(work, claim, lent)
    work.put(replace(claim, funds={id: funds[id] - lent.get(id, 0) for id in funds}))
