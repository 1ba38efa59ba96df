"""Seeded bugs in estimates, routing and the cool-off of models."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

ROUTING = "engine/models/model_choice.py"
ESTIMATING = "engine/models/estimates.py"

MODELS = (
    Mutant(
        "models: no cool-off",
        "core/models.py",
        "until = now + (retry_after if",
        "until = now + (0 if",
        "test_a_repeated_claim_tells_the_same_though_models_cool_down_meanwhile",
    ),
    Mutant(
        "models: all try one that was limited",
        ROUTING,
        'claim.state == "active"',
        "False",
        "test_a_rate_limit_cools_the_model_for_all",
    ),
    Mutant(
        "models: a success clears nothing",
        "engine/verbs/submit.py",
        "works(work, project, claim)",
        "pass",
        "test_a_success_clears_the_model",
    ),
    Mutant(
        "models: trouble is never forgiven",
        ROUTING,
        "elif models.is_forgiven(row, work.now):",
        "elif False:",
        "test_trouble_that_is_long_past_is_forgiven",
    ),
    Mutant(
        "models: fallbacks never take over",
        "core/models.py",
        "wanted.failed >= FALLBACK_AFTER",
        "False",
        "test_fallback_models_take_over_with_the_second_failure",
    ),
    Mutant(
        "models: what the claim recorded is not returned",
        ROUTING,
        "if model is None:",
        "if True:",
        "test_a_repeated_claim_tells_the_same_though_models_cool_down_meanwhile",
    ),
    Mutant(
        "models: no time to come back",
        "engine/verbs/claim.py",
        "at = self.claimant.cooling.next_at()",
        "at = None",
        "test_where_all_that_an_agent_has_cools_down_it_is_told_when_to_come_back",
    ),
    Mutant(
        "models: the fast path ignores trouble",
        "engine/runtime/fast_path/next_claims.py",
        "project.stopped or project.limited or",
        "project.stopped or",
        on("postgres", "test_the_same_model_is_told_either_way[learning]"),
    ),
    Mutant(
        "models: the fast path clears no trouble",
        "engine/runtime/fast_path/held_claims.py",
        "if project.limited or",
        "if",
        on("postgres", "test_a_result_clears_the_trouble_of_its_model[eager]"),
    ),
    Mutant(
        "models: the fast path does not know the agent",
        "engine/runtime/fast_path/claim_models.py",
        "User(agent_type, tuple(msgspec.json.decode(models)))",
        "User()",
        on("postgres", "test_the_same_model_is_told_either_way[learning]"),
    ),
    Mutant(
        "estimates: usage reported before the result is lost",
        "core/settle.py",
        " or task.metered",
        "",
        on("postgres", "test_the_median_of_like_tasks_counts_from_the_fifth_on"),
    ),
    Mutant(
        "estimates: a task is learnt from twice",
        "core/models.py",
        "if f is not before",
        "if True",
        "test_a_task_counts_once_with_all_of_its_run",
    ),
    Mutant(
        "estimates: late usage counts",
        ESTIMATING,
        '"task": task.id, "late": False}',
        '"task": task.id}',
        "test_a_task_counts_once_with_all_of_its_run",
    ),
    Mutant(
        "estimates: earlier runs count",
        ESTIMATING,
        "if claim.run == task.run",
        "if True",
        "test_a_task_counts_once_with_all_of_its_run",
    ),
    Mutant(
        "estimates: medians are kept from claims",
        ESTIMATING,
        "if typical is not None and",
        "if False and",
        "test_the_median_of_like_tasks_counts_from_the_fifth_on",
    ),
)
