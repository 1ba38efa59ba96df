"""Seeded bugs where writers of one project run side by side, and in their log."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_POSTGRES_GUARDS = "tests/stores/test_postgres_guards.py"
TEST_POSTGRES_RACES = "tests/stores/test_postgres_races.py"
TEST_POSTGRES_SERVER = "tests/stores/test_postgres_server.py"
TEST_POSTGRES_SHARING = "tests/stores/test_postgres_sharing.py"

JOURNEYS = "stores/postgres/pipeline.py"
HOT = "stores/postgres/hot_statements.py"


SHARING = (
    # --- locks
    Mutant(
        "unordered locks",
        JOURNEYS,
        "keys = sorted(locks)",
        "keys = list(locks)",
        f"{TEST_POSTGRES_SERVER}::test_locks_of_several_projects_are_taken_in_one_order",
    ),
    Mutant(
        "dependents counted without lock",
        JOURNEYS,
        "keys = sorted(locks)",
        "keys = []",
        f"{TEST_POSTGRES_RACES}::test_a_mixed_load_over_several_projects_neither_fails_nor_deadlocks",
    ),
    Mutant(
        "claims side by side",
        JOURNEYS,
        'self._locks("claim", self._to_claim), False',
        "(), False",
        f"{TEST_POSTGRES_SHARING}::test_claims_go_one_after_another",
    ),
    Mutant(
        "who decides shares",
        JOURNEYS,
        'self._locks("project", self._to_hold), self._shares',
        'self._locks("project", self._to_hold), True',
        f"{TEST_POSTGRES_SHARING}::test_nobody_is_beside_one_who_decides",
    ),
    # --- what has to be decided alone
    Mutant(
        "shared, what has to be decided",
        "engine/runtime/decision.py",
        "    work.need_exclusive_lock()\n    command =",
        "    command =",
        f"{TEST_POSTGRES_SHARING}::test_what_has_to_be_decided_is_decided_alone[_with_a_receipt_of_nothing]",
    ),
    Mutant(
        "shared, rows written by the rules",
        "engine/runtime/unit_of_work.py",
        "        self.need_exclusive_lock()\n",
        "",
        f"{TEST_POSTGRES_SHARING}::test_what_has_to_be_decided_is_decided_alone[_with_a_dependent]",
    ),
    Mutant(
        "shared, two at one row",
        "stores/postgres/transaction.py",
        "int(answer.first()[-3] or 0) != answer.count",
        "False",
        f"{TEST_POSTGRES_SHARING}::test_who_comes_second_to_a_row_begins_anew",
    ),
    # --- what goes with the commit
    Mutant(
        "fast path: tasks with more to report",
        HOT,
        '"usual": "NOT is_unusual"',
        '"usual": "true"',
        on("postgres", "test_a_claim_of_a_task_with_large_values_returns_them[eager]"),
    ),
    Mutant(
        "fast path: what follows for dependents",
        HOT,
        "dependents = 0 AND ",
        "",
        on("postgres", "test_a_lone_task_releases_the_task_that_was_linked_to_it[eager]"),
    ),
    Mutant(
        "fast path: what follows for a parent",
        HOT,
        "children = 0 AND ",
        "",
        on("postgres", "test_a_lone_task_with_subtasks_is_counted_in_its_own_dag[eager]"),
    ),
    Mutant(
        "fast path: what follows for a dag",
        HOT,
        " AND dag = 'dag_' || regexp_replace(id, '^task_', '')",
        "",
        on("postgres", "test_a_dag_completes_with_its_last_task_and_says_so_once"),
    ),
    Mutant(
        "fast path: signs of life",
        "engine/runtime/fast_path/held_claims.py",
        "tx.complete(given, work.now - team.PRESENCE",
        "tx.complete(given, 0",
        on("postgres", "test_a_result_clears_its_agents_troubles_and_is_a_sign_of_life[eager-signs]"),
    ),
    Mutant(
        "fast path: troubles that are over",
        HOT,
        "agent_is_odd OR ",
        "",
        on("postgres", "test_a_result_clears_its_agents_troubles_and_is_a_sign_of_life[eager-troubles]"),
    ),
    Mutant(
        "fast path: some receipts are stale",
        HOT,
        "(SELECT count(*) FROM {written}) = cardinality($5::text[])\n",
        "true\n",
        f"{TEST_POSTGRES_SHARING}::test_a_verb_goes_with_the_commit_whole_or_not_at_all",
    ),
    Mutant(
        "fast path: no receipt is good",
        JOURNEYS,
        "if self._along[0].count != self._count:",
        "if False:",
        on("postgres", "test_an_older_generation_is_stale_whoever_presents_it[renew]"),
    ),
    Mutant(
        "fast path: another's claim",
        "engine/runtime/fast_path/held_claims.py",
        "not any(principal.is_proven for _, (principal, _, _) in asking) and ",
        "",
        on("postgres", "test_a_thief_in_a_batch_is_refused_alone"),
    ),
    # --- the log
    Mutant(
        "seq > last",
        "stores/postgres/transaction.py",
        "event.sequence <= self._settled",
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
        "fast path: no epoch check in the task",
        HOT,
        "t.generation = g.generation AND t.claim_epoch = $3\n",
        "t.generation = g.generation\n",
        f"{TEST_POSTGRES_GUARDS}::test_the_fast_path_checks_the_epoch_in_the_task_and_in_the_claim[Task]",
    ),
    Mutant(
        "fast path: no epoch check in the claim",
        HOT,
        " AND c.epoch = $3\n",
        "\n",
        f"{TEST_POSTGRES_GUARDS}::test_the_fast_path_checks_the_epoch_in_the_task_and_in_the_claim[Claim]",
    ),
    Mutant(
        "fast path: a grant without a lane",
        HOT,
        "t.plain AND t.lane IS NOT NULL",
        "t.plain",
        f"{TEST_POSTGRES_GUARDS}::test_the_fast_path_grants_nothing_that_stands_in_no_lane",
    ),
    Mutant(
        "fast path: renewals in funded projects",
        "engine/runtime/fast_path/held_claims.py",
        "if project is None or project.funded:",
        "if project is None:",
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
