"""Seeded bugs of budgets."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BUDGETS = (
    Mutant(
        "the budget's headroom is not checked",
        "core/budgets.py",
        "    if wanted <= headroom(budget, now):\n        return None\n",
        "    if wanted:\n        return None\n",
        "test_a_budget_begins_anew_with_its_period_and_nobody_has_to_sweep",
    ),
    Mutant(
        "the guard of a reservation is open",
        "core/budgets.py",
        "if amount < 0 or amount > headroom(budget, now):",
        "if amount < 0:",
        "tests/core/test_budgets.py::test_no_reservation_lifts_what_is_spent_and_reserved_above_what_is_allocated",
    ),
    Mutant(
        "reserve outside the transaction",
        "engine/budgets/budget_guard.py",
        "        work.put(budgets.reserved(row, amounts[row.id], work.now))\n",
        "        budgets.reserved(row, amounts[row.id], work.now)\n",
        "test_a_budget_in_tokens_reserves_what_the_task_is_estimated_at",
    ),
    Mutant(
        "what a claim did not use stays reserved",
        "engine/runtime/effects.py",
        "            release(work, after)\n",
        "            pass\n",
        "test_however_a_claim_ends_what_it_did_not_use_is_free_again[submit]",
    ),
    Mutant(
        "late usage counts against the task",
        "engine/budgets/budget_guard.py",
        "if not more or (late and row.id == own):",
        "if not more:",
        "test_a_zombies_usage_is_late_and_touches_no_live_reservation",
    ),
    Mutant(
        "a zombie's bill is taken from the live claim",
        "engine/budgets/budget_guard.py",
        "now_is = work.get(Claim, claim.project, claim.id) or claim",
        "now_is = current_claim(work, current(work, task))",
        "test_a_zombies_usage_is_late_and_touches_no_live_reservation",
    ),
    Mutant(
        "a submission books with the reservation that it has given back",
        "engine/budgets/budget_guard.py",
        "now_is = work.get(Claim, claim.project, claim.id) or claim",
        "now_is = claim",
        "test_what_a_task_may_cost_goes_into_the_archive_with_it_and_comes_back",
    ),
    Mutant(
        "a budget resumes what a person paused",
        "engine/budgets/budget_verbs.py",
        "return pause.cause == lifecycle.BUDGET and pause.source == id",
        "return True",
        "test_raising_the_budget_resumes_those_that_it_paused_and_no_others",
    ),
    Mutant(
        "a removed budget gets back what it never gave",
        "engine/budgets/budget_verbs.py",
        "if claim is not None and row.id in (claim.funds or {}):",
        "if False:",
        "test_a_budget_that_was_removed_meanwhile_gets_nothing_back",
    ),
    Mutant(
        "holders go on above a hundred per cent",
        "core/budgets.py",
        "return budget.consumed > budget.allocated",
        "return False",
        "test_a_holder_is_paused_above_a_hundred_and_its_work_is_kept",
    ),
    Mutant(
        "a new period remembers what was spent",
        "core/budgets.py",
        "until=next_period(budget, now), consumed=0, earlier",
        "until=next_period(budget, now), earlier",
        "test_reservations_go_along_into_the_new_period",
    ),
    Mutant(
        "tasks set aside never come back",
        "engine/budgets/unaffordable.py",
        "            work.put(replace(task, set_aside_for=None, price=None))\n",
        "            pass\n",
        "test_removing_a_budget_frees_tasks_set_aside_for_it",
    ),
    Mutant(
        "an agent's own budget hides tasks from others",
        "engine/budgets/unaffordable.py",
        "if short.budget.scope == AGENT or (key",
        "if (key",
        "test_an_agents_own_budget_hides_nothing_from_others",
    ),
    Mutant(
        "new projects do not know of the tenant's budget",
        "engine/budgets/budget_verbs.py",
        "    return replace(project, funded=(TENANT, *funded))\n",
        "    return replace(project, funded=funded)\n",
        "test_the_tenants_budget_counts_in_every_project_also_in_new_ones",
    ),
    Mutant(
        "a new period keeps the throttle of the last",
        "core/budgets.py",
        "        alerts={}, next_claim_at=None,\n",
        "        alerts={},\n",
        "test_a_new_period_begins_without_the_throttle_of_the_last",
    ),
)
