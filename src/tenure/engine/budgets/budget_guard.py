"""Budgets while work goes on: what a claim reserves, spends and gives back, and what is told of it.

Rows are counted in the transaction that claims, books or ends; so no two claims can be given the same money. A budget
is read by `rows_of` alone, which brings it up to `now`. All ends of a claim come by `release`: see `effects.spread`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tenure.core import budgets, claims, lifecycle, moves, retry
from tenure.core.budgets import AGENT, DAG, PROJECT, TASK, TENANT, TOKENS, USD, Short, amount_text, budget_id
from tenure.core.causes import BUDGET, PauseCause
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Budget, Claim, Project, Task, replace
from tenure.engine.models.estimates import estimate_of
from tenure.engine.runtime.effects import brief_of, current, current_claim, spread
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.holder_verbs import Hold

if TYPE_CHECKING:
    from tenure.core import views as v

WEAKER = ("continue", "warn")  # directives that a warning of a budget may take the place of


def counts_in(work: UnitOfWork, project: Project, task: Task, agent: str) -> list[str]:
    """Ids of the budgets that there may be: the tenant's first, the task's own and those above it at the end."""
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
        work.reach("")
        rows |= work.get_many(Budget, "", (TENANT,))
    rows |= work.get_many(Budget, project, [id for id in ids if id != TENANT])
    return [_settled(work, rows[id]) for id in ids if id in rows]


def _settled(work: UnitOfWork, budget: Budget) -> Budget:
    now_is = budgets.settled(budget, work.now)
    return budget if now_is is budget else work.put(now_is)


def keep(work: UnitOfWork, budget: Budget) -> Budget:
    """Put the row, and tell of thresholds that it has passed, or is below again."""
    known = budgets.alerted(budget, work.now)
    kept = work.put(known.budget)
    for kind, levels in (("budget.alert", known.passed), ("budget.alert_ended", known.ended)):
        for at in levels:
            work.record(
                kind, project=kept.project, message=f"budget {called(work, kept)}: {used(kept)}",
                level=budgets.LEVELS[at] if kind == "budget.alert" else "info",
                details={"budget": kept.id, "threshold": at, "percent": budgets.percent(kept)},
            )  # fmt: skip
    return kept


def called(work: UnitOfWork, budget: Budget) -> str:
    """As people name it: a task's by the task's key."""
    task = work.get(Task, budget.project, budget.task) if budget.task is not None else None
    return budget.id if task is None else budget_id(TASK, task.key)


def used(budget: Budget) -> str:
    spent, allocated = (amount_text(budget.currency, n) for n in (budget.consumed, budget.allocated))
    return f"{budgets.percent(budget)} % used, {spent} of {allocated}"


# --- claiming -----------------------------------------------------------------------------------------------


def prices(work: UnitOfWork, task: Task, rows: Sequence[Budget], agent: str) -> dict[str, int]:
    """What the task reserves in each of these budgets.

    What a task may cost is reserved whole, less what it has cost already. Others reserve what they will probably take,
    or what the budget takes a task for of which nobody knows; but no more than the budgets of tasks above have left.
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
    """The first budget that does not pay for the task now."""
    rows = rows_of(work, project, task, agent)
    amounts = prices(work, task, rows, agent)
    for row in rows:
        short = budgets.short(row, amounts[row.id] or row.default_estimate, work.now)
        if short is not None:
            return short
    return None


def reserve(work: UnitOfWork, project: Project, held: Task, claim: Claim) -> tuple[Task, Claim]:
    """Task and claim with what the claim has reserved. `short_of` has looked whether all can pay."""
    rows = rows_of(work, project, held, claim.agent)
    amounts = prices(work, held, rows, claim.agent)
    for row in rows:
        work.put(budgets.reserved(row, amounts[row.id], work.now))
    return replace(held, funded=bool(rows)), replace(claim, funds=amounts or None)


def denied(work: UnitOfWork, task: Task, short: Short) -> Outcome:
    """DENIED_BUDGET: what is missing where, and what can be done about it."""
    return Outcome(
        outcome="DENIED_BUDGET", state=task.state, retry_at=short.retry_at, retry_in=work.seconds_to(short.retry_at),
        message=f"{task.key}: {reason(work, short)}", hint=recommendation(work, short), shortage=shown(work, short),
    )  # fmt: skip


def reason(work: UnitOfWork, short: Short) -> str:
    budget = short.budget
    name = called(work, budget)
    if _is_hidden(work, budget):
        return f"the budget {name} does not allow it"
    wanted = amount_text(budget.currency, short.wanted)
    if short.is_throttled:
        return f"the budget {name} is throttled: {wanted} can be reserved later"
    if not budgets.is_open(budget, work.now):
        return f"the time of the budget {name} {'has ended' if short.retry_at is None else 'has not begun'}"
    has, spent, reserved = (
        amount_text(budget.currency, n) for n in (budgets.headroom(budget, work.now), budget.consumed, budget.reserved)
    )
    return f"would reserve {wanted}; the budget {name} has {has} left ({spent} spent, {reserved} reserved)"


def recommendation(work: UnitOfWork, short: Short) -> str:
    """What to do: raise it, wait, or ask for less."""
    budget = short.budget
    if short.is_throttled:
        return "wait: claims are spaced out so that the budget lasts; an admin can raise it, or end the throttling"
    ways = []
    if short.missing and (budgets.is_over(budget) or _is_hidden(work, budget)):
        ways.append("an admin can raise it")
    elif short.missing:
        ways.append(f"an admin can raise it by {amount_text(budget.currency, short.missing)}")
    if budget.reserved:
        ways.append("wait until claims give back what they do not use")
    if short.retry_at is not None:
        ways.append("wait until it begins anew")
    if budget.scope != TASK and budget.currency == USD:
        ways.append("give the task a lower max_cost_usd")
    return "; ".join(ways) or "an admin can give it a new time"


def shown(work: UnitOfWork, short: Short) -> v.ShortageView:
    budget = short.budget
    if _is_hidden(work, budget):
        return {"scope": budget.id, "currency": budget.currency, "recommendation": recommendation(work, short)}
    return {
        "scope": budget.id, "currency": budget.currency, "wanted": amount(budget, short.wanted),
        "missing": amount(budget, short.missing), "throttled": short.is_throttled,
        "recommendation": recommendation(work, short),
    }  # fmt: skip


def amount(budget: Budget, number: int) -> str | int:
    """As interfaces show it: money as a decimal text, tokens as a number."""
    if budget.currency == TOKENS:
        return number
    return amount_text(USD, number).replace("$", "")


def _is_hidden(work: UnitOfWork, budget: Budget) -> bool:
    """What all projects together have spent is not for who may see some."""
    return budget.scope == TENANT and bool(work.principal.projects)


# --- spending, ending ---------------------------------------------------------------------------------------


def book(work: UnitOfWork, project: Project, task: Task, claim: Claim, spent: Mapping[str, int], *, late: bool) -> None:
    """Count what was spent in every scope. Under a claim that lives it is taken from what that has reserved.

    What came with a stale receipt does not count against the task, and finds nothing that it could take.
    """
    if not (project.funded or task.capped):
        return
    now_is = work.get(Claim, claim.project, claim.id) or claim  # it may have ended in this very command
    funds = dict(now_is.funds or {})
    own = budget_id(TASK, task.id)
    for row in rows_of(work, project, task, claim.agent):
        more = spent[row.currency]
        if not more or (late and row.id == own):
            continue
        booked, rest = budgets.spent(row, more, funds.get(row.id, 0), work.now)
        keep(work, booked)
        if row.id in funds:
            funds[row.id] = rest
    if funds != (now_is.funds or {}):
        work.put(replace(now_is, funds=funds))


def release(work: UnitOfWork, task: Task) -> None:
    """The claim has ended: what it reserved and did not use is free again. Exactly that, whatever has changed since."""
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

    Where more was spent than there is the task is paused in this transaction: the claim is over, but answerable.
    """
    task = current(work, hold.task)
    if not claims.is_held(task):
        return answer
    rows = rows_of(work, hold.project, task, hold.claim.agent)
    over = next((row for row in rows if budgets.is_over(row)), None)
    if over is not None:
        return _paused(work, task, over, answer)
    near = max(rows, key=budgets.percent, default=None)
    if near is None or budgets.percent(near) < budgets.WARN or answer.directive not in WEAKER:
        return answer
    return replace(answer, directive="warn", directive_text=f"budget {_told(work, near)}")


def _told(work: UnitOfWork, budget: Budget) -> str:
    return f"{called(work, budget)}: {'nearly used up' if _is_hidden(work, budget) else used(budget)}"


def _paused(work: UnitOfWork, task: Task, budget: Budget, answer: Outcome) -> Outcome:
    why = f"budget {budget.id}: {used(budget)}"
    free, over = claims.ended(task, current_claim(work, task), lifecycle.PAUSED_BY, work.now)
    over = replace(over, error_class=retry.BUDGET, error=f"budget {called(work, budget)}: {used(budget)}")
    until = budgets.opens_at(budget, work.now)
    free = moves.paused(free, PauseCause(cause=BUDGET, reason=why, at=work.now, source=budget.id, until=until))
    kept = work.record(
        "task.paused", over, task=free, message=why, agent=task.agent, session=task.session, level="error",
        details={"budget": budget.id, "percent": budgets.percent(budget)},
    )  # fmt: skip
    spread(work)
    ended = {"outcome": "NO_CLAIM", "lease_until": None, "lease": None} if answer.outcome == "RENEWED" else {}
    return replace(
        answer, **ended, state=kept.state, directive="pause", directive_text=f"budget {_told(work, budget)}",
        message=f"{kept.key} is paused: the budget {_told(work, budget)}",
        hint="stop, and leave a checkpoint; it goes on when the budget is raised",
    )  # fmt: skip


def no_headroom(work: UnitOfWork, project: Project, task: Task, claim: Claim) -> Outcome | None:
    """DENIED_BUDGET where nothing is left for subtasks, not even of what their parent holds."""
    for row in rows_of(work, project, task, claim.agent):
        if not budgets.is_open(row, work.now) or budgets.left(row) + (claim.funds or {}).get(row.id, 0) <= 0:
            short = Short(row, row.default_estimate, row.default_estimate, budgets.opens_at(row, work.now))
            return replace(denied(work, task, short), directive="continue")
    return None


def lend(work: UnitOfWork, project: Project, parent: Task, claim: Claim, children: Sequence[Task]) -> None:
    """What a task may cost covers its subtasks: their holders can reserve what its own claim lets go of here."""
    own = budget_id(TASK, parent.id)
    funds = claim.funds or {}
    if own not in funds:
        return
    wanted: dict[str, int] = dict.fromkeys(funds, 0)
    rows = [row for row in rows_of(work, project, parent, claim.agent) if row.id in funds]
    for child in children:
        said = brief_of(work, child).constraints.get("max_cost_usd")
        estimate = estimate_of(work, child, brief_of(work, child))
        for row in rows:
            likely = estimate.tokens if row.currency == TOKENS else estimate.cost
            if said is not None and row.currency == USD:
                likely = budgets.parse_amount(str(said), USD, "max_cost_usd")
            wanted[row.id] += likely or row.default_estimate
    lent = {id: min(funds[id], wanted[id]) for id in wanted}
    give_back(work, claim, lent)
    work.put(replace(claim, funds={id: funds[id] - lent.get(id, 0) for id in funds}))
