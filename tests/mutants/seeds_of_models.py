"""Seeded bugs in estimates, routing and the cool-off of models: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SHORT_WAY = ("tests/engine/test_on_postgres.py",)
ROUTING = "engine/models/model_choice.py"
ESTIMATING = "engine/models/estimates.py"

MODELS = (
    Mutant("models: no cool-off", "core/retry.py", "until = now + (retry_after if", "until = now + (0 if"),
    Mutant("models: all try one that was limited", ROUTING, 'claim.state == "active"', "False"),
    Mutant("models: a success clears nothing", "engine/verbs/submit.py", "works(work, project, claim)", "pass"),
    Mutant("models: trouble is never forgiven", ROUTING, "elif retry.is_forgiven(row, work.now):", "elif False:"),
    Mutant("models: fallbacks never take over", "core/model_choice.py", "wanted.failed >= retry.FALLBACK_AFTER",
           "False"),
    Mutant("models: what the claim recorded is not told", ROUTING, "if model is None:", "if True:"),
    Mutant(
        "models: no time to come back",
        "engine/verbs/claim.py",
        "at = self.asker.cooling.next_at()",
        "at = None",
    ),
    Mutant(
        "models: the short way ignores trouble",
        "engine/runtime/fast_path/next_claims.py",
        "project.stopped or project.limited or",
        "project.stopped or",
        SHORT_WAY,
    ),
    Mutant(
        "models: the short way clears no trouble",
        "engine/runtime/fast_path/held_claims.py",
        "if project.limited or",
        "if",
        SHORT_WAY,
    ),
    Mutant(
        "models: the short way does not know the agent",
        "engine/runtime/fast_path/claim_models.py",
        "User(agent_type, tuple(msgspec.json.decode(models)))",
        "User()",
        SHORT_WAY,
    ),
    Mutant("estimates: what was told before the result is lost", "core/plain_tasks.py", " or task.metered", "",
           SHORT_WAY),
    Mutant("estimates: a task is learnt from twice", "core/estimates.py", "if f is not before", "if True"),
    Mutant("estimates: late usage counts", ESTIMATING, '"task": task.id, "late": False}', '"task": task.id}'),
    Mutant("estimates: earlier runs count", ESTIMATING, "if claim.run == task.run", "if True"),
    Mutant("estimates: medians are kept from claims", ESTIMATING, "if typical is not None and", "if False and"),
)  # fmt: skip
