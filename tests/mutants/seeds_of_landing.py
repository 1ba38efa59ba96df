"""Seeded bugs in the landing of results that have passed: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

RULES = "core/validation.py"
DECIDING = "engine/checks/validation_verbs.py"
RECORDING = "engine/checks/landing.py"
ROLES = "core/roles.py"
LANDING = "agents/land.py"
TAKING = "agents/landings.py"
LANDERS = "tests/worktrees/test_landings.py"
OWN = "tests/runner/test_own_submits.py"

LANDING_PHASE = (
    Mutant(
        "landing: a good verdict completes what is to be landed",
        DECIDING,
        "    if row.land is not None:\n        waiting",
        "    if False:\n        waiting",
        "test_a_verdict_comes_before_the_landing_and_lands_nothing",
    ),
    Mutant(
        "landing: a result without a validator is accepted at once",
        "engine/checks/submission_checks.py",
        "        if cmd.land is None:\n            return None\n        phase = LAND\n",
        "        return None\n",
        "test_a_result_without_a_validator_is_accepted_once_it_is_landed",
    ),
    Mutant(
        "landing: the fast path takes it",
        "engine/runtime/fast_path/held_claims.py",
        "command.stopped or command.land is not None:",
        "command.stopped:",
        on("postgres", "test_a_result_without_a_validator_is_accepted_once_it_is_landed"),
    ),
    Mutant(
        "landing: the nonce of the verdict lands",
        RULES,
        "    if row.phase != JUDGE and row.holder is None:",
        "    if False:",
        "test_the_receipt_of_a_verdict_never_completes_what_waits_to_be_landed",
    ),
    Mutant(
        "landing: the record does not hold the task",
        RECORDING,
        "replace(held.row, phase=LANDING)",
        "held.row",
        "test_from_the_record_on_only_the_landing_ends_it",
    ),
    Mutant(
        "landing: a taker is not judged when it records",
        RECORDING,
        "    held = held_by_taker(work, cmd.project, cmd.receipt)\n",
        "    from tenure.engine.checks.validation_verbs import _judged\n\n"
        "    held = _judged(work, cmd.project, cmd.receipt)\n",
        "test_a_stale_lander_records_and_settles_nothing",
    ),
    Mutant(
        "landing: any branch is landed on",
        RECORDING,
        "if cmd.branch != onto(held.row):",
        "if False:",
        "test_only_the_branch_of_the_result_is_landed_on",
    ),
    Mutant(
        "landing: a cancel takes the task from its commit",
        "engine/verbs/operator_verbs.py",
        '    _check_not_landing(work, task, "cancel")\n',
        "",
        "test_from_the_record_on_only_the_landing_ends_it",
    ),
    Mutant(
        "landing: a cancelled parent takes the task from its commit",
        "engine/runtime/effects.py",
        "child.state not in lifecycle.FINISHED and not _is_landing(work, child):",
        "child.state not in lifecycle.FINISHED:",
        "test_a_parent_that_is_cancelled_leaves_what_is_being_landed",
    ),
    Mutant(
        "landing: a blocked way is a try",
        RULES,
        "row.tries - blocked",
        "row.tries",
        "test_a_checkout_in_the_way_costs_nothing_however_often",
    ),
    Mutant(
        "landing: a conflict costs an attempt",
        RULES,
        "    if back:\n        free = replace(free, attempts",
        "    if False:\n        free = replace(free, attempts",
        "test_a_conflict_gives_the_attempt_back_and_names_the_commit",
    ),
    Mutant(
        "landing: conflicts cost nothing without end",
        RULES,
        "back = claim.counted and claims.is_given_back(task, lifecycle.FAILED_GIVEN_BACK)",
        "back = claim.counted",
        "test_conflicts_without_end_use_the_attempts_up",
    ),
    Mutant(
        "landing: what it touches is free before it is landed",
        "core/validation.py",
        "is_waiting and row is not None and is_open(row, task) and row.land is not None",
        "False",
        "test_what_it_touches_stays_reserved_until_it_is_landed_or_refused",
    ),
    Mutant(
        "landing: what it touches stays reserved for ever",
        "engine/runtime/effects.py",
        "return is_submitted or (task.reserved and task.state in HELD)",
        "return task.reserved and task.state in HELD",
        "test_what_it_touches_stays_reserved_until_it_is_landed_or_refused",
    ),
    Mutant(
        "landing: any key lands",
        ROLES,
        "CHECKER in principal.capabilities or (claim.key is not None and claim.key == principal.key)",
        "True",
        "test_who_may_land",
    ),
    Mutant(
        "landing: its receipt is enough",
        DECIDING,
        '        roles.check_lander(work.principal, current_claim(work, task), f"the landing of {task.key}")\n',
        "        pass\n",
        "test_who_may_land",
    ),
    Mutant(
        "landing: an edit makes the task forget its result",
        "core/inputs.py",
        "!= validation.NONE or validation.is_submitted(task),",
        "!= validation.NONE,",
        "test_an_edit_of_its_title_leaves_the_result_as_it_is",
    ),
    Mutant(
        "landing: what a person paused is submitted to be landed",
        "engine/verbs/submit.py",
        "        if is_paused and not claims.is_late_landing_open(hold.task, hold.claim):",
        "        if False:",
        "test_what_a_person_paused_while_it_was_held_is_not_submitted_to_be_landed",
    ),
    Mutant(
        "landing: work that is on the branch is merged again",
        LANDING,
        "        if not git.is_ancestor(self.folder, self.work.commit, tip):\n            return None\n        merge =",
        "        if True:\n            return None\n        merge =",
        f"{LANDERS}::test_work_that_a_person_merged_by_hand_is_accepted",
    ),
    Mutant(
        "landing: the swap ignores the fence",
        LANDING,
        "changes = [self.fence.verified, f",
        "changes = [f",
        f"{LANDERS}::test_who_gives_up_a_landing_has_fenced_the_earlier_lander_off",
    ),
    Mutant(
        "landing: who has no fence gives up what was recorded",
        TAKING,
        "if was_recorded and not is_fenced:",
        "if False:",
        f"{LANDERS}::test_who_cannot_take_the_fence_does_not_give_a_recorded_landing_up",
    ),
    Mutant(
        "landing: a clone settles what another repository has recorded",
        TAKING,
        'return not recorded or any(git.commit_id(self.folder, each["new"]) for each in recorded)',
        "return True",
        f"{LANDERS}::test_a_clone_leaves_a_recorded_landing_to_the_repository_that_has_the_merge",
    ),
    Mutant(
        "landing: any branch is landed on unasked",
        TAKING,
        'record.onto) == (self.client.project, one["task"], one["land"]["onto"])',
        'True) == (self.client.project, one["task"], True)',
        f"{LANDERS}::test_only_what_a_worktree_here_was_made_for_is_landed_unasked",
    ),
    Mutant(
        "landing: a checkout in the way is a try",
        TAKING,
        "error.message, after, blocked=is_blocked)",
        "error.message, after)",
        f"{LANDERS}::test_a_checkout_in_the_way_costs_nothing_and_lands_once_it_is_free",
    ),
    Mutant(
        "landing: a conflict is refused output",
        TAKING,
        "[why], conflict=True)",
        "[why])",
        f"{LANDERS}::test_a_conflict_gives_the_work_back_and_names_files_and_commit",
    ),
    Mutant(
        "landing: a branch that has moved is not checked again",
        TAKING,
        'details.get("base") != old:',
        "False:",
        f"{LANDERS}::test_a_branch_that_has_moved_is_checked_again_before_it_is_moved",
    ),
    Mutant(
        "landing: a machine checks what a person has approved",
        TAKING,
        'details.get("commit") and details.get("base") != old:',
        'details.get("base") != old:',
        f"{LANDERS}::test_the_verdict_of_a_person_stands_when_the_branch_has_moved",
    ),
    Mutant(
        "landing: a check sees the work alone",
        "agents/result_checker.py",
        "        if not land or self.tools.root is None",
        "        if True or self.tools.root is None",
        f"{LANDERS}::test_a_check_runs_in_the_merge_and_its_verdict_names_what_it_saw",
    ),
    Mutant(
        "landing: the runner forgets to ask for it",
        "agents/runner/conclusion.py",
        '        "land": land,\n',
        "",
        f"{OWN}::test_an_output_that_the_contract_accepts_is_landed",
    ),
    Mutant(
        "landing: what an agent left uncommitted is not submitted",
        "agents/runner_submits.py",
        "        worktrees.commit_all(path, merge_message(task, summary))\n",
        "        pass\n",
        f"{OWN}::test_an_agent_that_calls_done_submits_its_commits_and_they_are_on_main_for_the_next_task[land]",
    ),
    Mutant(
        "landing: a later run leaves what waits",
        "agents/runner/runner.py",
        "            lander=self.shared.lander(client),\n",
        "",
        f"{OWN}::test_a_later_run_lands_what_was_approved_when_its_runner_had_gone",
    ),
    Mutant(
        "landing: a result that another key must land is waited for",
        TAKING,
        '                self._not_allowed.add(one["id"])\n',
        "",
        f"{LANDERS}::test_who_may_not_land_one_result_lands_the_others_and_waits_for_none",
    ),
    Mutant(
        "landing: a check that ends with its runner is a try",
        TAKING,
        " or not is_wanted\n",
        "\n",
        f"{LANDERS}::test_a_check_that_is_ended_with_its_runner_is_no_try",
    ),
    Mutant(
        "landing: a runner lands whatever its agent names",
        "agents/landings.py",
        "found = self.waiting() if by_name else self.mine()",
        "found = self.waiting()",
        "tests/worktrees/test_landings.py::test_only_what_a_worktree_here_was_made_for_is_landed_unasked",
    ),
    Mutant(
        "landing: a new epoch frees what a result to be landed touches",
        "engine/runtime/epoch.py",
        " and (held.task is None or not living(work, [held]))",
        "",
        "test_what_it_touches_stays_reserved_in_a_new_epoch",
    ),
    Mutant(
        "landing: what a dead lander left stays in the checkout",
        "agents/landings.py",
        "                        move.put_back()",
        "                        pass",
        "tests/worktrees/test_landings.py::test_who_refuses_what_a_lander_died_in_puts_the_checkout_back",
    ),
    Mutant(
        "landing: what is being landed is offered for rejection",
        "engine/reads/todo.py",
        "begun |= {task.id} if row.phase == BEGUN else set()",
        "begun |= set()",
        "test_todo_offers_only_to_land_what_may_have_landed",
    ),
)
