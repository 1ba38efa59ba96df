"""Seeded bugs in the moves of a task: its pauses, its attempts, and what changes under a holder."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_MOVES = "tests/core/test_moves.py"


MOVES = (
    Mutant(
        "moves: a result for an unseen description is accepted",
        "engine/verbs/brief.py",
        "if task.unseen_since is None or not claims.is_held(task):\n        return None",
        "if True:\n        return None",
        "test_a_result_for_the_old_text_is_refused_until_the_new_one_was_seen",
    ),
    Mutant(
        "moves: an older number is enough",
        "engine/verbs/brief.py",
        "if task.unseen_since is None or seen < task.brief_number:",
        "if task.unseen_since is None:",
        "test_a_result_for_the_old_text_is_refused_until_the_new_one_was_seen",
    ),
    Mutant(
        "moves: a new description leaves the late window open",
        "core/inputs.py",
        'CLOSES_WINDOW = ("description", "spec",',
        'CLOSES_WINDOW = ("spec",',
        "test_the_window_closes",
    ),
    Mutant(
        "moves: a pause of a paused task is dropped",
        "engine/verbs/operator_verbs.py",
        "if any(one.cause == cause for one in task.pauses) and (task.state == PAUSED or cause == lifecycle.DRAIN):",
        "if task.state == PAUSED or any(one.cause == cause for one in task.pauses):",
        "test_a_person_s_pause_outlives_the_budget_s",
    ),
    Mutant(
        "moves: a person's resume lifts a budget's pause",
        "engine/verbs/operator_verbs.py",
        "*((lifecycle.BUDGET,) if cmd.budget else ())",
        "lifecycle.BUDGET",
        "test_a_person_s_resume_leaves_what_a_budget_has_paused",
    ),
    Mutant(
        "moves: time lifts a person's pause",
        "core/settle.py",
        "moves.lifted(task, lambda pause: pause.until == at, at)",
        "moves.lifted(task, lambda pause: True, at)",
        "test_a_person_s_pause_outlives_the_budget_s",
    ),
    Mutant(
        "moves: what is free counts after ten",
        "core/lifecycle.py",
        'Ending("WAITING", "released", FREE,',
        'Ending("WAITING", "released", GIVEN_BACK,',
        "test_waiting_asking_and_a_person_s_verbs_never_count[wait]",
    ),
    Mutant(
        "moves: a run has any number of claims",
        "engine/verbs/claim_rules.py",
        "    if task.generation < most or work.tally(Claim, of_run, most) < most:",
        "    if True:",
        "test_a_task_that_is_claimed_a_hundred_times_in_a_run_is_a_dead_letter",
    ),
    Mutant(
        "moves: no poison pills",
        "core/claims.py",
        "task.attempts >= task.max_attempts or is_poison(policy, task.failures)",
        "task.attempts >= task.max_attempts",
        "test_how_many_are_poison_is_the_task_s_to_say[5-4]",
    ),
    Mutant(
        "moves: an edit leaks reservations",
        "engine/runtime/effects.py",
        "if _may_reserve(before) and after.state not in HELD:",
        "if after.guarded and before.state in HELD and after.state not in HELD:",
        "test_an_edit_does_not_leak_what_the_claim_reserved[submit]",
    ),
    Mutant(
        "moves: work for an unseen description is landed",
        "engine/verbs/land.py",
        "    if changed is not None:\n        return changed\n",
        "",
        "test_no_work_for_an_older_description_is_landed",
    ),
    Mutant(
        "moves: the fast path completes an unseen description",
        "core/settle.py",
        " or task.unseen_since is not None",
        "",
        on("postgres", "test_a_result_for_the_old_text_is_refused_until_the_new_one_was_seen"),
    ),
    Mutant(
        "moves: something of the left state survives",
        "core/moves.py",
        "for name in BOUND if name not in KEPT[state]}",
        "for name in BOUND if name not in KEPT[state] and name != 'offer_to'}",
        f"{TEST_MOVES}::test_a_move_changes_what_it_declares_and_leaves_nothing_of_the_left_state[waiting-ready]",
    ),
    Mutant(
        "troubles: a first one ends a cool-off that is under way",
        "core/retry.py",
        "if troubles >= TROUBLES_IN_A_ROW else agent.cool_until",
        "if troubles >= TROUBLES_IN_A_ROW else None",
        "tests/core/test_retry.py::test_a_first_trouble_ends_no_cool_off_that_is_under_way",
    ),
)
