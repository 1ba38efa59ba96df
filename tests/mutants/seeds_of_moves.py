"""Seeded bugs in the moves of a task: its pauses, its attempts, and what changes under a holder."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PURE = ("tests/core/test_moves.py",)

MOVES = (
    Mutant(
        "moves: a result for an unseen description is accepted",
        "engine/verbs/brief.py",
        "if task.unseen_since is None or not claims.is_held(task):\n        return None",
        "if True:\n        return None",
    ),
    Mutant(
        "moves: an older number is enough",
        "engine/verbs/brief.py",
        "if task.unseen_since is None or seen < task.brief_number:",
        "if task.unseen_since is None:",
    ),
    Mutant(
        "moves: a new description leaves the late window open",
        "core/inputs.py",
        'CLOSES_WINDOW = ("description", "spec",',
        'CLOSES_WINDOW = ("spec",',
    ),
    Mutant(
        "moves: a pause of a paused task is dropped",
        "engine/verbs/operator_verbs.py",
        "if any(one.cause == cause for one in task.pauses) and (task.state == PAUSED or cause == causes.DRAIN):",
        "if task.state == PAUSED or any(one.cause == cause for one in task.pauses):",
    ),
    Mutant(
        "moves: a person's resume lifts a budget's pause",
        "engine/verbs/operator_verbs.py",
        "*((causes.BUDGET,) if cmd.budget else ())",
        "causes.BUDGET",
    ),
    Mutant(
        "moves: time lifts a person's pause",
        "core/settle.py",
        "moves.lifted(task, lambda pause: pause.until == at, at)",
        "moves.lifted(task, lambda pause: True, at)",
    ),
    Mutant(
        "moves: what is free counts after ten",
        "core/lifecycle.py",
        'Ending("WAITING", "released", FREE,',
        'Ending("WAITING", "released", GIVEN_BACK,',
    ),
    Mutant(
        "moves: no poison pills",
        "core/claims.py",
        "task.attempts >= task.max_attempts or is_poison(policy, task.failures)",
        "task.attempts >= task.max_attempts",
    ),
    Mutant(
        "moves: an edit leaks reservations",
        "engine/runtime/effects.py",
        "if before.reserved and before.state in HELD",
        "if after.guarded and before.state in HELD",
    ),
    Mutant(
        "moves: work for an unseen description is landed",
        "engine/verbs/land.py",
        "    if changed is not None:\n        return changed\n",
        "",
    ),
    Mutant(
        "moves: the fused verbs complete an unseen description",
        "core/plain_tasks.py",
        " or task.unseen_since is not None",
        "",
        ("tests/engine/test_on_postgres.py",),
    ),
    Mutant(
        "moves: something of the left state survives",
        "core/moves.py",
        "for name in BOUND if name not in KEPT[state]}",
        "for name in BOUND if name not in KEPT[state] and name != 'offer_to'}",
        PURE,
    ),
)
