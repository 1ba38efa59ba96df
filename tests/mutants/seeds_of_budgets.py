"""Seeded bugs of budgets."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on_each

BUDGETS = (
    Mutant(
        "nobody looks whether the budget can pay",
        "core/budgets.py",
        "    if wanted <= headroom(budget, now):\n        return None\n",
        "    if wanted:\n        return None\n",
    ),
    Mutant(
        "the guard of a reservation is open",
        "core/budgets.py",
        "if amount < 0 or amount > headroom(budget, now):",
        "if amount < 0:",
        ("tests/core/test_budgets.py",),
    ),
    Mutant(
        "reserve outside the transaction",
        "engine/budgets/budget_guard.py",
        "        work.put(budgets.reserved(row, amounts[row.id], work.now))\n",
        "        budgets.reserved(row, amounts[row.id], work.now)\n",
    ),
    Mutant(
        "what a claim did not use stays reserved",
        "engine/runtime/effects.py",
        "            release(work, after)\n",
        "            pass\n",
    ),
    Mutant(
        "late usage counts against the task",
        "engine/budgets/budget_guard.py",
        "if not more or (late and row.id == own):",
        "if not more:",
    ),
    Mutant(
        "a zombie's bill is taken from the live claim",
        "engine/budgets/budget_guard.py",
        "now_is = work.get(Claim, claim.project, claim.id) or claim",
        "now_is = current_claim(work, current(work, task))",
    ),
    Mutant(
        "a submission books with the reservation that it has given back",
        "engine/budgets/budget_guard.py",
        "now_is = work.get(Claim, claim.project, claim.id) or claim",
        "now_is = claim",
    ),
    Mutant(
        "a budget resumes what a person paused",
        "engine/budgets/budget_verbs.py",
        "return pause.cause == causes.BUDGET and pause.source == id",
        "return True",
    ),
    Mutant(
        "a removed budget gets back what it never gave",
        "engine/budgets/budget_verbs.py",
        "if claim is not None and row.id in (claim.funds or {}):",
        "if False:",
    ),
    Mutant(
        "holders go on above a hundred per cent",
        "core/budgets.py",
        "return budget.consumed > budget.allocated",
        "return False",
    ),
    Mutant(
        "a new period remembers what was spent",
        "core/budgets.py",
        "until=next_period(budget, now), consumed=0, earlier",
        "until=next_period(budget, now), earlier",
    ),
    Mutant(
        "parked tasks never come back",
        "engine/budgets/unaffordable.py",
        "            work.put(replace(task, parked=None, price=None))\n",
        "            pass\n",
    ),
    Mutant(
        "an agent's own budget hides tasks from others",
        "engine/budgets/unaffordable.py",
        "if short.budget.scope == AGENT or (key",
        "if (key",
    ),
    Mutant(
        "new projects do not know of the tenant's budget",
        "engine/budgets/budget_verbs.py",
        "    return replace(project, funded=(TENANT, *funded))\n",
        "    return replace(project, funded=funded)\n",
    ),
    Mutant(
        "a new period keeps the throttle of the last",
        "core/budgets.py",
        "        alerts={}, next_claim_at=None,\n",
        "        alerts={},\n",
        first=on_each("test_a_new_period_begins_without_the_throttle_of_the_last"),
    ),
)
