"""Seeded bugs in what a runner keeps to itself, and in how runners leave each other room: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

RULE = "core/runners.py"
CLAIM = "engine/verbs/claim.py"
CLAIMS = "engine/verbs/runner_claims.py"
OWN = "tests/runner/test_own_submits.py"
NEIGHBOURS = "agents/runner/neighbours.py"
BESIDE = "tests/runner/test_neighbours.py"
SUPERVISOR = "tests/processes/test_supervisor.py"

RUNNERS = (
    Mutant(
        "runners: the agent submits where its runner lands",
        "engine/verbs/submit.py",
        "        answer = runners.denied_result(hold.task, hold.claim, cmd.request_id)\n",
        "        answer = None\n",
        "test_a_result_that_is_not_the_runners_is_refused_and_the_claim_stays",
    ),
    Mutant(
        "runners: any request shows the word",
        RULE,
        '_digest((request_id or "").partition(".")[0]) == claim.metadata[MARK][_SUBMITS]:',
        "request_id is not None:",
        "test_a_result_that_is_not_the_runners_is_refused_and_the_claim_stays",
    ),
    Mutant(
        "runners: the agent lands",
        "engine/verbs/land.py",
        "    if denial is not None:\n        return denial\n",
        "",
        "test_only_the_runner_records_its_landing",
    ),
    Mutant(
        "runners: a marked claim is plain",
        CLAIMS,
        "    return replace(held, reserved=True) if runners.has_word(claim.metadata) else held\n",
        "    return held\n",
        on("postgres", "test_a_result_that_is_not_the_runners_is_refused_and_the_claim_stays"),
    ),
    Mutant(
        "runners: the agent's claims take the fast path",
        CLAIMS,
        "        if agent.max_concurrent_tasks is None:\n",
        "        if False:\n",
        on("postgres", "test_its_session_claims_no_other_task"),
    ),
    Mutant(
        "runners: its session claims the next task",
        CLAIM,
        " or denied_by_runner(claimant, None)",
        "",
        "test_its_session_claims_no_other_task",
    ),
    Mutant(
        "runners: its session claims another task by name",
        "engine/verbs/claim_rules.py",
        "    denied_by_runner,\n    _denied_by_state,\n",
        "    _denied_by_state,\n",
        "test_its_session_claims_no_other_task",
    ),
    Mutant(
        "runners: its session claims no subtask",
        CLAIMS,
        "above = work.get(Task, project, above.parent) if above.parent is not None else None",
        "above = None",
        "test_its_session_claims_what_is_below_its_task_by_name",
    ),
    Mutant(
        "runners: a person's pause holds no branch",
        "core/claims.py",
        "return is_paused and all(pause.cause == lifecycle.BUDGET for pause in task.pauses)",
        "return is_paused",
        "test_a_persons_pause_holds_the_branch",
    ),
    Mutant(
        "runners: a lapsed claim lands late",
        "core/claims.py",
        "is_late_submit_open(task, claim) and task.state == PAUSED",
        "is_late_submit_open(task, claim)",
        "test_an_expired_claim_lands_nothing",
    ),
    Mutant(
        "runners: what a budget paused is not landed",
        "agents/land.py",
        'is_last = outcome.outcome == "NO_CLAIM" and outcome.state == PAUSED',
        "is_last = False",
        "tests/worktrees/test_land.py::test_work_that_a_budget_has_paused_is_landed",
    ),
    Mutant(
        "runners: work is landed before its verdict",
        "agents/landings.py",
        'if one["phase"] != JUDGE and one["land"]]',
        'if one["land"]]',
        "tests/worktrees/test_landings.py::test_what_waits_for_its_verdict_is_not_landed",
    ),
    Mutant(
        "runners: a claim that is taken again has no mark",
        "agents/runner/held_claim.py",
        "process=process, spawn=self._spawn, metadata=self._metadata",
        "process=process, spawn=self._spawn",
        f"{OWN}::test_a_claim_that_was_lost_and_taken_again_submits_the_commits_of_the_same_worktree",
    ),
    Mutant(
        "runners: the second works in the checkout of the first",
        "cli/run.py",
        " or given.spawn is not None or beside is not None",
        " or given.spawn is not None",
        f"{BESIDE}::test_the_second_runner_uses_worktrees_and_other_names_and_says_so",
    ),
    Mutant(
        "runners: two begin at once",
        NEIGHBOURS,
        "        fcntl.flock(lock, fcntl.LOCK_EX)\n",
        "",
        f"{BESIDE}::test_nobody_joins_while_another_does",
    ),
    Mutant(
        "runners: one that was killed still counts",
        NEIGHBOURS,
        "if process_table.has_ended(found.process.pid, found.process.start):",
        "if False:",
        f"{BESIDE}::test_a_runner_that_was_killed_leaves_checkout_and_name_to_the_next",
    ),
    Mutant(
        "runners: an agent that claims in the checkout is not seen",
        "agents/runner/slot.py",
        "who = holder_inside(self.client, options.checkout, options.home.folder)",
        "who = None",
        f"{BESIDE}::test_a_runner_gives_the_checkout_to_an_agent_that_claims_there",
    ),
    Mutant(
        "processes: a child is told the folder of its caller's shell",
        "processes/supervisor_script.py",
        ' | {"PWD": os.path.abspath(folder)}',
        "",
        f"{SUPERVISOR}::test_a_command_is_told_the_folder_that_it_starts_in",
    ),
    Mutant(
        "processes: a hook of git is told the folder of the caller's shell",
        "agents/git_settings.py",
        "own = environment_at(folder, kept) | VARIABLES",
        "own = kept | VARIABLES",
        "tests/worktrees/test_odd_repositories.py::test_a_hook_is_told_the_folder_of_its_worktree",
    ),
    Mutant(
        "an agent without a price starts under a budget in dollars",
        "agents/runner/prices.py",
        "    if budget is None:\n",
        "    if budget is not None:\n",
        "tests/runner/test_prices.py::test_a_run_whose_cost_no_budget_would_see_is_refused",
    ),
    Mutant(
        "the budget of the task is not looked at before its agent starts",
        "agents/runner/attempt.py",
        "        self._check_priced(start)\n",
        "",
        "tests/runner/test_prices.py::test_a_budget_of_the_task_counts_too",
    ),
    Mutant(
        "the settings of Codex are not read",
        "agents/runner/clis/codex_cli.py",
        "for settings in (chosen, project, user)",
        "for settings in (chosen,)",
        "tests/runner/test_prices.py::test_the_model_of_codex_is_read_from_its_settings",
    ),
)
