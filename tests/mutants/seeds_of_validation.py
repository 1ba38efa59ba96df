"""Seeded bugs in validation."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

RULES = "core/validation.py"
DECIDING = "engine/checks/validation_verbs.py"

VALIDATION = (
    Mutant(
        "validation: a stale taker's verdict counts",
        RULES,
        "if receipt.generation != row.generation:",
        "if receipt.generation > row.generation:",
        "test_two_cannot_have_one_check_and_a_stale_taker_is_refused",
    ),
    Mutant(
        "validation: no nonce check",
        RULES,
        "if not hmac.compare_digest(receipt.nonce, row.nonce):",
        "if False:",
        "test_nobody_judges_without_the_receipt",
    ),
    Mutant(
        "validation: no epoch check",
        RULES,
        "if receipt.epoch != epoch or row.epoch != epoch:",
        "if False:",
        "test_a_new_epoch_voids_the_receipts_of_takers",
    ),
    Mutant(
        "validation: a second verdict counts",
        RULES,
        "return row is not None and row.state == OPEN and",
        "return row is not None and",
        "test_one_verdict_counts_and_its_taker_is_told_so_again",
    ),
    Mutant(
        "validation: a verdict on a paused task counts",
        RULES,
        'None if task.state == VALIDATING else "DENIED_PAUSED"',
        "None",
        "test_a_paused_check_waits_and_goes_on_where_it_was",
    ),
    Mutant(
        "validation: two takers at once",
        RULES,
        "return row.state == OPEN and row.holder is not None and",
        "return False and",
        "test_two_cannot_have_one_check_and_a_stale_taker_is_refused",
    ),
    Mutant(
        "validation: tries without end",
        RULES,
        "return row.tries >= MOST_TRIES",
        "return False",
        "test_after_five_takers_without_a_verdict_a_person_is_asked",
    ),
    Mutant(
        "validation: a dying taker does not count",
        RULES,
        "tries=row.tries + 1,",
        "tries=row.tries,",
        "test_takers_that_die_count_too",
    ),
    Mutant(
        "validation: an older contract's verdict counts",
        "engine/checks/evidence.py",
        'asked = msgspec.json.encode((name, settings, output), order="sorted")',
        'asked = msgspec.json.encode((name, settings if output is None else {}, output), order="sorted")',
        "test_what_was_found_for_an_older_contract_does_not_count",
    ),
    Mutant(
        "validation: the maker reviews its own work",
        "core/roles.py",
        "if is_author(principal, claim):",
        "if False:",
        "test_a_review_is_a_person_s_word_or_another_agent_s",
    ),
    Mutant(
        "validation: an agent speaks for any validator",
        DECIDING,
        "        if row.validator != REVIEW:\n            raise",
        "        if False:\n            raise",
        "test_a_person_may_speak_for_any_validator_and_its_taker_is_refused_then",
    ),
    Mutant(
        "validation: an agent's key judges by another's receipt",
        DECIDING,
        'roles.check_mine(work.principal, row.agent or "nobody", f"the validation of {task.key}")',
        "pass",
        "test_an_agents_key_does_nothing_with_anothers_receipt",
    ),
    Mutant(
        "validation: checked tasks are plain",
        "core/settle.py",
        "task.checked or ",
        "",
        "test_only_tasks_with_a_contract_are_checked",
    ),
    Mutant(
        "validation: an edit changes what waits for its verdict",
        "engine/verbs/edit.py",
        "    if closing and _waits_for_verdict(work, task):",
        "    if False:",
        "test_what_is_asked_for_changes_under_a_result_only_if_it_is_superseded",
    ),
    Mutant(
        "validation: a refused output is offered again though it was paused",
        "core/moves.py",
        "    if task.pauses:\n        return _moved(task, PAUSED, state_before=READY, **fields)",
        "    if False:\n        return _moved(task, PAUSED, state_before=READY, **fields)",
        "test_a_drained_or_paused_task_is_paused_again_when_its_output_is_refused",
    ),
    Mutant(
        "validation: invalid outputs without end",
        "engine/checks/submission_checks.py",
        "is_last = marked.invalid >= MOST_INVALID",
        "is_last = False",
        "test_a_late_output_is_checked_too_and_the_third_bad_one_closes_its_window",
    ),
    Mutant(
        "validation: a batch waits for a check",
        "engine/runtime/engine.py",
        "return self._run_part(batch, TRIES, check)",
        "return self._run_part(batch, TRIES)",
        "tests/validators/test_claims_during_checks.py::test_nobody_waits_for_the_check_of_anothers_output[batcher]",
    ),
    Mutant(
        "validation: commands run without trust",
        "agents/result_checker.py",
        "section = Trusted(user_state(environ)).checked(path)",
        "from tenure.trust.grants import read_section; section = read_section(path)",
        "tests/cli/test_validating.py::test_a_cloned_repository_runs_nothing_until_it_is_trusted",
    ),
    Mutant(
        "validation: a retry of a cancelled task leaves its check open",
        "engine/verbs/operator_verbs.py",
        '"retry", cmd.note) + _unchecked(work, task)\n',
        '"retry", cmd.note)\n',
        "test_a_retry_of_a_cancelled_check_ends_it",
    ),
)
