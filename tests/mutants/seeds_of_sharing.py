"""Seeded bugs where writers of one project run side by side, and in their log."""

from __future__ import annotations

from tests.mutants.mutant import HOT, Mutant, on

TEST_POSTGRES_GUARDS = "tests/stores/test_postgres_guards.py"
TEST_POSTGRES_RACES = "tests/stores/test_postgres_races.py"
TEST_POSTGRES_SERVER = "tests/stores/test_postgres_server.py"
TEST_POSTGRES_SHARING = "tests/stores/test_postgres_sharing.py"

JOURNEYS = "stores/postgres/pipeline.py"
CALLS = "stores/postgres/hot_functions.py"
_GOES_BACK = f"{TEST_POSTGRES_GUARDS}::test_the_server_that_goes_back_in_time_does_not_take_the_log_with_it"
FUNCTIONS = "stores/postgres/migrations/0008_layout.sql"


SHARING = (
    # --- locks
    Mutant(
        "unordered locks",
        JOURNEYS,
        'sorted(self._locks("project", projects))',
        'self._locks("project", projects)',
        f"{TEST_POSTGRES_SERVER}::test_locks_of_several_projects_are_taken_in_one_order",
    ),
    Mutant(
        "dependents counted without lock",
        JOURNEYS,
        'sorted(self._locks("project", projects))',
        "[]",
        f"{TEST_POSTGRES_RACES}::test_a_mixed_load_over_several_projects_neither_fails_nor_deadlocks",
    ),
    Mutant(
        "claims side by side",
        CALLS,
        'store.lock_key("claim", tenant, project))\n            shared.append(False)',
        'store.lock_key("claim", tenant, project))\n            shared.append(True)',
        f"{TEST_POSTGRES_SHARING}::test_a_claim_holds_the_lock_of_claims_alone",
    ),
    Mutant(
        "who decides shares",
        "stores/postgres/statement_texts.py",
        "(SELECT count(pg_advisory_xact_lock(key)) FROM unnest(?::bigint[]) AS given (key)),",
        "(SELECT count(pg_advisory_xact_lock_shared(key)) FROM unnest(?::bigint[]) AS given (key)),",
        f"{TEST_POSTGRES_SHARING}::test_nobody_is_beside_one_who_decides",
    ),
    # --- what has to be decided alone
    # --- what goes with the commit
    Mutant(
        "fast path: tasks with more to report",
        HOT,
        "        OR strpos(w.description, '$body') > 0\n",
        "",
        on("postgres", "test_a_claim_of_a_task_with_large_values_returns_them[eager]"),
    ),
    Mutant(
        "fast path: what follows for dependents",
        HOT,
        "b.dependents > 0 OR b.children",
        "b.children",
        on("postgres", "test_a_lone_task_releases_the_task_that_was_linked_to_it[eager]"),
    ),
    Mutant(
        "fast path: what follows for a parent",
        HOT,
        "OR b.children > 0 OR",
        "OR",
        on("postgres", "test_a_lone_task_with_subtasks_is_counted_in_its_own_dag[eager]"),
    ),
    Mutant(
        "fast path: what follows for a dag",
        HOT,
        "OR b.dag <> 'dag_' || substr(b.id, 6) OR",
        "OR",
        on("postgres", "test_a_dag_completes_with_its_last_task_and_says_so_once"),
    ),
    Mutant(
        "fast path: signs of life",
        HOT,
        "c.nonce AS own_nonce, a.last_seen <= v_now - p_presence AS agent_is_old",
        "c.nonce AS own_nonce, false AS agent_is_old",
        on("postgres", "test_a_result_clears_its_agents_troubles_and_is_a_sign_of_life[eager-signs]"),
    ),
    Mutant(
        "fast path: troubles that are over",
        HOT,
        "FROM 100\n            AND (a.stale OR a.left_at IS NOT NULL OR a.terminated_at IS NOT NULL OR a.troubles",
        "FROM 100\n            AND (a.stale OR a.left_at IS NOT NULL OR a.terminated_at IS NOT NULL OR 0",
        on("postgres", "test_a_result_clears_its_agents_troubles_and_is_a_sign_of_life[eager-troubles]"),
    ),
    Mutant(
        "fast path: another's claim",
        "engine/runtime/fast_path/held_claims.py",
        "column([p.agent for _, p in run])",
        "None",
        on("postgres", "test_a_thief_in_a_batch_is_refused_alone"),
    ),
    # --- the calls, as a whole
    Mutant(
        "fast path: a call while a task is due",
        HOT,
        "        PERFORM unusual('due', NULL);",
        "        NULL;",
        f"{TEST_POSTGRES_GUARDS}::test_a_call_is_refused_while_a_task_is_due",
    ),
    Mutant(
        "fast path: time goes back with the server's clock",
        HOT,
        "t.last) AS now",
        "NULL) AS now",
        f"{_GOES_BACK}[0]",
    ),
    Mutant(
        "fast path: time goes back where the store has lost the event that the caller knew",
        HOT,
        "        v_from := 0;  --",
        "        EXIT;  --",
        f"{_GOES_BACK}[1000000]",
    ),
    Mutant(
        "fast path: a project that has changed",
        HOT,
        "        PERFORM unusual('project', NULL);",
        "        NULL;",
        f"{TEST_POSTGRES_GUARDS}::test_a_call_is_refused_where_what_it_relies_on_has_changed",
    ),
    Mutant(
        "fast path: a lane before those that the caller knows",
        HOT,
        "q.lane < p_lanes[1] LIMIT",
        "q.lane < '' LIMIT",
        f"{TEST_POSTGRES_GUARDS}::test_a_lane_that_the_caller_does_not_know_might_have_had_the_best_task[before]",
    ),
    Mutant(
        "fast path: a lane between those that the caller knows",
        HOT,
        "OR v_lanes > 1 AND EXISTS",
        "OR v_lanes < 1 AND EXISTS",
        f"{TEST_POSTGRES_GUARDS}::test_a_lane_that_the_caller_does_not_know_might_have_had_the_best_task[between]",
    ),
    Mutant(
        "fast path: a lane behind those that the caller knows",
        HOT,
        "q.lane > p_lanes[v_lanes] LIMIT",
        "q.lane < '' LIMIT",
        f"{TEST_POSTGRES_GUARDS}::test_a_lane_that_the_caller_does_not_know_might_have_had_the_best_task[behind]",
    ),
    Mutant(
        "fast path: a choice beyond the heads that were read",
        HOT,
        "v_edge := coalesce(array_position(v_last, true), v_count);",
        "v_edge := v_count;",
        on("postgres", "test_agents_who_can_do_different_things_get_the_same_tasks[eager-True]"),
    ),
    Mutant(
        "fast path: what the first session holds is named to all",
        HOT,
        "THEN v_held[s.at] END",
        "THEN v_held[1] END",
        on("postgres", "test_each_claim_of_several_names_what_its_own_session_holds[eager]"),
    ),
    Mutant(
        "fast path: a claim of several gets more than there is",
        HOT,
        "IF v_count = 0 OR p_n[1] < v_total THEN  --",
        "IF v_count = 0 THEN  --",
        on("postgres", "test_a_claim_of_several_gets_what_there_is[eager-3]"),
    ),
    Mutant(
        "fast path: a choice behind the last head of a lane",
        HOT,
        "v_lacks := v_last[v_at];",
        "v_lacks := false;",
        on("postgres", "test_agents_who_can_do_different_things_get_the_same_tasks[eager-False]"),
    ),
    Mutant(
        "fast path: lanes read further than anybody may take",
        HOT,
        "v_page integer := least(v_total, ",
        "v_page integer := greatest(v_total, ",
        "tests/stores/test_postgres_hot_plans.py::test_claims_across_lanes_read_no_lane_further_than_they_may_take",
    ),
    Mutant(
        "fast path: skills that have changed",
        HOT,
        "AND a.skills = s.skills AND",
        "AND",
        f"{TEST_POSTGRES_GUARDS}::test_a_call_is_refused_where_what_it_relies_on_has_changed",
    ),
    Mutant(
        "fast path: numbers drawn without a floor",
        HOT,
        "(SELECT pg_advisory_xact_lock_shared(p_floor,",
        "(SELECT pg_advisory_xact_lock_shared(p_floor + 1,",
        f"{TEST_POSTGRES_SHARING}::test_of_two_who_share_a_project_the_later_hides_none_of_the_earlier",
    ),
    Mutant(
        "fast path: due blocks are never dropped",
        FUNCTIONS,
        "t.due_at <= p_now) THEN\n            RETURN true;",
        "t.due_at <= p_now OR true) THEN\n            RETURN true;",
        f"{TEST_POSTGRES_GUARDS}::test_what_is_not_due_any_more_holds_up_nobody",
    ),
    Mutant(
        "narrow rows: a claim that changes keeps its narrow form",
        "stores/postgres/transaction.py",
        "statements = [*self._giving_rows(changes), *",
        "statements = [*",
        on("postgres", "test_what_a_holder_changes_after_a_plain_claim_is_the_same[eager]"),
    ),
    # --- the log
    Mutant(
        "seq > last",
        "stores/postgres/transaction.py",
        "one[0] <= self._settled",
        "True",
        f"{TEST_POSTGRES_SERVER}::test_a_reader_across_projects_never_skips_what_commits_late",
    ),
    Mutant(
        "a writer without a floor",
        "stores/postgres/log_cursor.py",
        "end - max((0, *((end - floor + half) % (2 * half) - half for floor in floors)))",
        "end",
        f"{TEST_POSTGRES_SHARING}::test_a_transaction_that_began_first_may_be_given_its_sequences_last",
    ),
    Mutant(
        "a floor where the writer ends",
        "stores/postgres/statement_texts.py",
        "({_DRAWN} & 2147483647)",
        "(({_DRAWN} + 1000) & 2147483647)",
        f"{TEST_POSTGRES_SHARING}::test_a_transaction_that_began_first_may_be_given_its_sequences_last",
    ),
    # --- guards that a second one hides
    Mutant(
        "fast path: no epoch check in the claim",
        HOT,
        "    IF v_epoch <> p_epoch OR v_total > 1024 THEN",
        "    IF v_total > 1024 THEN",
        f"{TEST_POSTGRES_GUARDS}::test_a_receipt_of_an_ended_epoch_is_refused_though_its_row_is_left",
    ),
    Mutant(
        "fast path: a grant without a lane",
        HOT,
        "AND t.plain AND t.lane IS NOT NULL AND t.state = 'ready'",
        "AND t.plain AND t.state = 'ready'",
        f"{TEST_POSTGRES_GUARDS}::test_a_claim_takes_nothing_that_is_not_ready_and_plain[fields0]",
    ),
    Mutant(
        "fast path: renewals in funded projects",
        "engine/runtime/fast_path/held_claims.py",
        "    if project.funded:",
        "    if False:",
        on("postgres", "test_a_holder_from_before_the_budget_is_paused_too"),
    ),
    Mutant(
        "writers skip the shared lock of the epoch",
        "stores/postgres/statement_texts.py",
        "    pg_advisory_xact_lock_shared(?)\n",
        "    (?)::bigint\n",
        f"{TEST_POSTGRES_GUARDS}::test_a_new_epoch_waits_for_every_writer_that_has_read_the_old_one",
    ),
)
