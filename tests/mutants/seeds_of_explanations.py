"""Seeded bugs in what is said of a task: who can claim it, why it is a dead letter."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

AGREE = "tests/engine/test_claim_rules.py::test_why_names_an_obstacle_exactly_where_a_claim_is_refused"
RULES = "engine/verbs/claim_rules.py"
SHARES = "engine/verbs/claim_shares.py"
LETTERS = "core/dead_letters.py"

EXPLANATIONS = (
    # --- why: each of its rules
    Mutant("why: knows no limits", RULES, '    "limit": _at_limit,\n', "", AGREE),
    Mutant("why: knows no generations", RULES, '    "generations": used_up,\n', "", AGREE),
    Mutant("why: knows no limit of sessions", RULES, '    "sessions": _session_limit,\n', "", AGREE),
    Mutant(
        "why: knows no tasks set aside",
        RULES,
        '    "set_aside": _is_aside,\n',
        "",
        "test_why_names_the_budget_for_which_a_dearer_agent_has_set_the_task_aside",
    ),
    Mutant("why: knows no runners", RULES, '    "runner": _works_for_a_runner,\n', "", AGREE),
    Mutant(
        "why: knows no budgets",
        RULES,
        '    "unaffordable": lambda claimant, task: _message(_denied_by_budget(claimant, task)),\n',
        "",
        AGREE,
    ),
    Mutant(
        "why: knows no secrets that cannot be opened",
        RULES,
        '    "unreadable": lambda claimant, task: why_unreadable(claimant.work, task),\n',
        "",
        "test_with_another_master_key_a_claim_is_refused_and_the_task_stays",
    ),
    Mutant(
        "why: a new session for an agent that has one",
        "engine/reads/why.py",
        "sessions.get(agent.id)), task)",
        "None), task)",
        AGREE,
    ),
    Mutant(
        "why: knows no limit of the tenant",
        SHARES,
        "    return _denial(work, most) if found.free + unused <= 0 else None\n",
        "    return None\n",
        AGREE,
    ),
    Mutant(
        "why: forgets the shares that other projects do not use",
        SHARES,
        "if found.free + unused <= 0",
        "if found.free <= 0",
        on("memory", "test_why_counts_the_shares_that_other_projects_do_not_use"),
    ),
    Mutant(
        "why: what keeps a task from everybody is said of each agent alone",
        "engine/reads/why.py",
        "        reasons += shared\n",
        "",
        "test_why_of_a_task_that_no_budget_covers_says_of_nobody_that_it_can_take_it",
    ),
    Mutant(
        "why: no word on what has ended",
        "engine/reads/why.py",
        '        reasons.append(f"completed{by}")\n',
        "        pass\n",
        AGREE,
    ),
    Mutant(
        "doctor: a process that holds nothing is an orphan",
        "cli/doctor/team_checks.py",
        'ended_holders(patient.client) if process["tasks"]]',
        "ended_holders(patient.client)]",
        "tests/cli/test_doctor.py::test_the_process_of_an_agent_that_ended_holding_nothing_is_no_finding",
    ),
    Mutant(
        "receipts: an ambiguous claim looks like a lost one",
        "agents/receipts.py",
        "class AmbiguousClaim(Ambiguous):",
        "class AmbiguousClaim(NoReceipt):",
        "tests/cli/test_verbs.py::test_with_two_tasks_held_the_text_needs_its_task",
    ),
    Mutant(
        "claim: by name nobody waits",
        "client/verbs.py",
        "if left <= 0 or not may_end(outcome):",
        "if True:",
        "tests/client/test_client.py::test_a_claim_by_name_waits_for_the_end_of_another_s_and_for_a_time",
    ),
    Mutant(
        "claim: waits for the end of its own claim",
        "core/claims.py",
        "in _MAY_END and not denial.yours",
        "in _MAY_END",
        "tests/core/test_claims.py::test_a_denial_by_ones_own_claim_or_of_a_dead_letter_does_not_end_by_waiting",
    ),
    Mutant(
        "plans: an id in the form of a key is a name alone",
        "plans/dialects.py",
        'if "id" in node.entries and "key" not in entries:',
        "if False:",
        "tests/plans/test_dialects.py::test_an_id_in_the_form_of_a_key_is_the_key_number_included",
    ),
    Mutant(
        "plans: the id of a subtask is taken for a key",
        "plans/dialects.py",
        "key is None or key.path or not",
        "key is None or not",
        "tests/plans/test_dialects.py::test_any_other_id_is_a_name_alone",
    ),
    Mutant(
        "limits: a preset is said to hold below it",
        "core/compliance.py",
        "kept is not None and kept < least",
        "False",
        "tests/cli/test_audit.py::test_a_preset_is_set_with_the_limits",
    ),
    Mutant(
        "run: ends well with a dead letter",
        "agents/runner/remains.py",
        "states.get(key) == DEAD_LETTERED)",
        "False)",
        "tests/runner/test_failures.py::test_a_failed_task_quotes_the_end_of_stderr",
    ),
    Mutant(
        "run: says nothing of tasks that wait for a person",
        "agents/runner/remains.py",
        "bool(client.todo(1))",
        "False",
        "tests/runner/test_failures.py::test_a_run_until_empty_says_by_its_exit_code_what_is_left",
    ),
    Mutant(
        "run: a refused result is none of its business",
        "agents/runner/remains.py",
        "if key in refused and",
        "if False and",
        "tests/runner/test_remains.py::test_a_refused_result_counts_until_the_task_is_completed",
    ),
    Mutant(
        "run: accepted work that has not landed is done",
        "agents/runner/remains.py",
        "one.state == COMPLETED and one.key in keys",
        "False",
        "tests/runner/test_remains.py::test_accepted_work_of_the_run_that_has_not_landed_counts",
    ),
    # --- dead letters
    Mutant(
        "dead letter: an older failure is its reason",
        LETTERS,
        "task.last_error.generation == task.generation:\n        return task.last_error\n    found",
        "True:\n        return task.last_error\n    found",
        "test_a_dead_letter_names_lost_claims_agents_and_attempts_in_every_view",
    ),
    Mutant(
        "dead letter: the failure before the losses is forgotten",
        LETTERS,
        "if before and has_before",
        "if False",
        "test_a_dead_letter_names_lost_claims_agents_and_attempts_in_every_view",
    ),
    Mutant(
        "dead letter: no word on a poison pill",
        LETTERS,
        "    elif is_poison(policy, task.failures):\n",
        "    elif False:\n",
        "test_a_dead_letter_names_lost_claims_agents_and_attempts_in_every_view",
    ),
    Mutant(
        "briefing: lost claims are not told to the next holder",
        "engine/reads/briefing.py",
        "_lost(work, task) or task.last_error",
        "task.last_error",
        "test_the_next_holder_reads_that_the_claims_before_were_lost",
    ),
)
