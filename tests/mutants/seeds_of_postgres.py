"""Seeded bugs in the PostgreSQL store and in its fast path."""

from __future__ import annotations

from tests.mutants.mutant import HOT, Mutant, on

_DROPS = "stores/postgres/migrations/0021_guarded_log.sql"
TEST_POSTGRES_GUARDS = "tests/stores/test_postgres_guards.py"
_GENERATION = "AND t.generation = f.generation\n            "
_NONCE = "AND coalesce(t.nonce, f.own_nonce) = f.nonce"
_ASKED = "test_a_holder_is_asked_for_all_that_its_receipt_says"
TEST_POSTGRES_BLOCKS = "tests/stores/test_postgres_blocks.py"
TEST_POSTGRES_SERVER = "tests/stores/test_postgres_server.py"
TEST_NEWER = "tests/stores/test_postgres_newer_schema.py"
TEST_UPGRADED = (
    "tests/upgrades/test_upgrade.py"
    "::test_every_promise_holds_afterwards_and_the_log_gives_the_tables_back[0007-postgres]"
)

_OF_RECEIPT = f"{_GENERATION}{_NONCE} AND t.claim_epoch = p_epoch\n            AND "
_OF_EPOCH = f"{TEST_POSTGRES_GUARDS}::test_a_holders_row_is_asked_too[{{'claim_epoch': '00000000'}}]"
_ENDED = f"{TEST_POSTGRES_GUARDS}::test_a_holders_row_is_asked_too[{{'lease_until': 1}}]"

_QUEUED = "tests/stores/test_postgres_old_readers.py::test_what_is_queued_in_front_of_a_start_is_claimed_next"
_NAMED = "tests/stores/test_postgres_old_readers.py::test_a_claim_names_what_its_session_holds_whatever_its_number"

POSTGRES = (
    Mutant(
        "due: a claim that finds nothing leaves what it dropped",
        "stores/postgres/transaction.py",
        "self._drops = self._write",
        "self._drops = False",
        "tests/stores/test_postgres_round_trips.py::test_due_times_that_outlived_their_tasks_are_passed_once",
    ),
    Mutant(
        "starts: a task that is queued in front of one leaves it",
        "stores/postgres/tables.py",
        "if name in _STARTS:",
        'if name == "held":',
        f"{_QUEUED}[release]",
    ),
    Mutant(
        "starts: many tasks that are queued in front of one leave it",
        "stores/postgres/tables.py",
        'if "queue" in places:',
        'if "nowhere" in places:',
        f"{_QUEUED}[many]",
    ),
    Mutant(
        "starts: a claim does not begin at one",
        HOT,
        "coalesce(b.sequence, v_least)",
        "v_least",
        "tests/stores/test_postgres_old_readers.py::test_a_claim_begins_behind_what_an_older_reader_keeps",
    ),
    Mutant(
        "starts: a session that holds an older task leaves it",
        "stores/postgres/tables.py",
        "if name in _STARTS:",
        'if name == "queue":',
        _NAMED,
    ),
    Mutant(
        "starts: a session that claims an older task leaves it",
        HOT,
        "FROM taken), bool_or(g.number < g.held_from OR ",
        "FROM taken), bool_or(",
        "tests/stores/test_postgres_old_readers.py::test_a_claim_of_the_fast_path_too_names_an_older_task",
    ),
    Mutant(
        "fast path: a lease that ended meanwhile is renewed",
        HOT,
        f"AND t.lease_until > v_now {_OF_RECEIPT}(f.agent",
        f"{_OF_RECEIPT}(f.agent",
        _ENDED,
    ),
    Mutant(
        "fast path: a result of a lease that ended meanwhile",
        HOT,
        f"AND t.lease_until > v_now {_OF_RECEIPT}(f.only_of",
        f"{_OF_RECEIPT}(f.only_of",
        _ENDED,
    ),
    Mutant(
        "missing tenant predicate",
        "stores/sql/statements.py",
        '"tenant" = ?\', *clauses',
        '"tenant" <= ?\', *clauses',
        f"{TEST_POSTGRES_SERVER}::test_a_store_restored_elsewhere_begins_a_new_epoch_for_every_tenant",
    ),
    Mutant(
        "a standby that was not waited for counts",
        "stores/postgres/pipeline.py",
        "        if warnings:\n",
        "        if False:\n",
        f"{TEST_POSTGRES_SERVER}::test_a_commit_whose_standby_was_not_waited_for_is_not_told_as_done",
    ),
    Mutant(
        "a role that is shown no warnings",
        "stores/postgres/statement_texts.py",
        "set_config('client_min_messages', 'warning', true)",
        "set_config('client_min_messages', current_setting('client_min_messages'), true)",
        f"{TEST_POSTGRES_SERVER}::test_a_role_that_is_shown_no_warnings_is_still_told_of_the_standby",
    ),
    Mutant(
        "a role that does not wait for the standby",
        "stores/postgres/statement_texts.py",
        "ELSE 'on' END, true)",
        "WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)",
        f"{TEST_POSTGRES_SERVER}::test_a_database_that_may_lose_commits_is_not_believed[local-on]",
    ),
    Mutant(
        "a lost answer to a commit counts as nothing done",
        "stores/postgres/pipeline.py",
        'raise unknown(f"the connection was lost at the commit ({error})", url) from error',
        "from tenure.stores.sql.server_errors import lost\n            raise lost(error, url) from error",
        f"{TEST_POSTGRES_SERVER}::test_a_commit_whose_standby_was_not_waited_for_is_not_told_as_done",
    ),
    Mutant(
        "an upgrade that does not wait for whoever writes",
        "stores/postgres/schema.py",
        """        connection.run([(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE", ())])
""",
        "",
        f"{TEST_NEWER}::test_an_upgrade_waits_for_whoever_writes_and_gives_up_in_time",
    ),
    Mutant(
        "an upgrade takes tables as it comes to them",
        "stores/postgres/schema.py",
        """        connection.run([(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE", ())])
""",
        """        connection.run([("LOCK TABLE task_base, event IN ACCESS EXCLUSIVE MODE", ())])
""",
        f"{TEST_NEWER}::test_whoever_reads_when_it_begins_reads_to_the_end",
    ),
    Mutant(
        "an upgrade of half a minute is lost",
        "stores/postgres/connection.py",
        "self.patience = usual if patience is None else patience",
        "self.patience = usual",
        f"{TEST_NEWER}::test_a_step_may_take_longer_than_any_statement",
    ),
    Mutant(
        "an upgrade leaves tasks out of the queue",
        "stores/postgres/migrations/0008_layout.sql",
        "FROM task WHERE lane IS NOT NULL;",
        "FROM task WHERE lane IS NOT NULL AND plain;",
        TEST_UPGRADED,
    ),
    Mutant(
        "an upgrade forgets when leases end",
        "stores/postgres/migrations/0008_layout.sql",
        "WHERE due_at IS NOT NULL GROUP BY",
        "WHERE due_at IS NOT NULL AND agent IS NULL GROUP BY",
        TEST_UPGRADED,
    ),
    # The guard is the WHERE of the UPDATE alone, in each function.
    Mutant(
        "fast path: no nonce check",
        HOT,
        f"{_NONCE} AND t.claim_epoch = p_epoch\n            AND (f.only_of",
        "AND t.claim_epoch = p_epoch\n            AND (f.only_of",
        (
            *(f"{TEST_POSTGRES_GUARDS}::{_ASKED}[{form}-nonce]" for form in ("narrow", "own row")),
            *on("postgres", "test_one_byte_of_the_nonce_is_enough_to_be_refused[submit]"),
        ),
    ),
    Mutant(
        "fast path: no generation check",
        HOT,
        f"{_GENERATION}{_NONCE} AND t.claim_epoch = p_epoch\n            AND (f.only_of",
        f"{_NONCE} AND t.claim_epoch = p_epoch\n            AND (f.only_of",
        tuple(f"{TEST_POSTGRES_GUARDS}::{_ASKED}[{form}-generation]" for form in ("narrow", "own row")),
    ),
    Mutant(
        "fast path: no epoch check in the task",
        HOT,
        "f.nonce AND t.claim_epoch = p_epoch\n            AND (f.only_of",
        "f.nonce\n            AND (f.only_of",
        _OF_EPOCH,
    ),
    Mutant(
        "fast path: a result of any task",
        HOT,
        "AND (f.only_of IS NULL OR t.agent = f.only_of) AND t.state = f.state AND t.renewals = f.renewals AND t.plain",
        "AND (f.only_of IS NULL OR t.agent = f.only_of) AND t.state = f.state AND t.renewals = f.renewals",
        f"{TEST_POSTGRES_GUARDS}::test_a_holders_row_is_asked_too[{{'plain': False}}]",
    ),
    Mutant(
        "fast path: a renewal without nonce",
        HOT,
        f"{_NONCE} AND t.claim_epoch = p_epoch\n            AND (f.agent",
        "AND t.claim_epoch = p_epoch\n            AND (f.agent",
        (
            *(f"{TEST_POSTGRES_GUARDS}::{_ASKED}[{form}-nonce]" for form in ("narrow", "own row")),
            *on("postgres", "test_one_byte_of_the_nonce_is_enough_to_be_refused[renew]"),
        ),
    ),
    Mutant(
        "fast path: a renewal without generation",
        HOT,
        f"{_GENERATION}{_NONCE} AND t.claim_epoch = p_epoch\n            AND (f.agent",
        f"{_NONCE} AND t.claim_epoch = p_epoch\n            AND (f.agent",
        tuple(f"{TEST_POSTGRES_GUARDS}::{_ASKED}[{form}-generation]" for form in ("narrow", "own row")),
    ),
    Mutant(
        "fast path: a renewal without the task's epoch",
        HOT,
        "f.nonce AND t.claim_epoch = p_epoch\n            AND (f.agent",
        "f.nonce\n            AND (f.agent",
        _OF_EPOCH,
    ),
    Mutant(
        "fast path: the result of a claim that has ended",
        HOT,
        "AND c.tenant = p_tenant) IS TRUE AND c.state = 'active'\n        RETURNING f.n",
        "AND c.tenant = p_tenant) IS TRUE\n        RETURNING f.n",
        f"{TEST_POSTGRES_GUARDS}::test_a_claim_with_a_row_of_its_own_is_asked_too",
    ),
    Mutant(
        "fast path: a claim that has ended is not counted",
        HOT,
        "WHEN (SELECT count(*) FROM ended) < (SELECT count(o.claim) FROM found AS o) THEN unusual('changed', NULL)",
        "WHEN false THEN unusual('changed', NULL)",
        f"{TEST_POSTGRES_GUARDS}::test_a_claim_with_a_row_of_its_own_is_asked_too",
    ),
    Mutant(
        "fast path: a refused call ends its transaction",
        "stores/postgres/transaction.py",
        '            self._run([("ROLLBACK TO SAVEPOINT hot", ())])\n',
        "",
        f"{TEST_POSTGRES_GUARDS}::test_a_call_that_is_refused_leaves_its_transaction_as_it_was",
    ),
    Mutant(
        "fast path: effects on others are left out",
        "engine/runtime/fast_path/held_claims.py",
        "        spread(work)\n    except OUR_FAULTS",
        "        work.moved.clear()\n    except OUR_FAULTS",
        on("postgres", "test_results_that_others_wait_for_are_written_together[eager]"),
    ),
    Mutant(
        "fast path: a request granted twice in one batch",
        "engine/runtime/fast_path/next_claims.py",
        "            if one.sent.id in seen:\n",
        "            if False:\n",
        on("postgres", "test_a_request_that_comes_twice_is_granted_once[eager]"),
    ),
    Mutant(
        "a page of a state is both walked and sorted",
        "stores/postgres/tables.py",
        ") AS walked WHERE (SELECT is_common FROM state)) AS page",
        ") AS walked) AS page",
        "tests/stores/test_postgres_plans.py::test_a_page_has_the_same_tasks_walked_and_sorted[key]",
    ),
    Mutant(
        "a page of a rare state sorts all tasks",
        "stores/postgres/tables.py",
        "WHERE k.space = s.space AND k.number = s.number OFFSET 0) AS t",
        "WHERE k.space = s.space AND k.number = s.number) AS t",
        "tests/stores/test_postgres_plans.py"
        "::test_a_page_of_a_rare_state_reads_only_its_tasks_beside_many_of_another[reads]",
    ),
    Mutant(
        "fast path: a request that has come before",
        HOT,
        "AND g.request = s.request LIMIT 1)",
        "AND g.request = s.request LIMIT 0)",
        on("postgres", "test_a_request_that_comes_twice_is_granted_once[eager]"),
    ),
    Mutant(
        "fast path: an agent that was offered something",
        HOT,
        "AND b.offer_to = s.agent LIMIT 1)",
        "AND b.offer_to = s.agent LIMIT 0)",
        on("postgres", "test_an_asker_who_is_not_like_others_gets_the_same[learning]"),
    ),
    Mutant(
        "fast path: an agent that takes nothing more",
        HOT,
        " OR a.draining\n",
        "\n",
        on("postgres", "test_an_asker_who_is_not_like_others_gets_the_same[learning]"),
    ),
    Mutant(
        "fast path: signs of life forgotten",
        HOT,
        "a.last_seen <= v_now - p_presence AS agent_is_old, t.last_activity",
        "false AS agent_is_old, t.last_activity",
        on("postgres", "test_a_claim_and_a_renewal_are_signs_of_life[eager-claim]"),
    ),
    Mutant(
        "fast path: an answer without what other rows hold",
        HOT,
        "strpos(w.spec, 'context_refs') + strpos(w.spec, '$body') > 0",
        "false",
        on("postgres", "test_a_claim_of_a_task_with_large_values_returns_them[eager]"),
    ),
    Mutant(
        "events that go with those that were dropped",
        _DROPS,
        'CASE WHEN gone.at IS NULL THEN e."version"',
        'CASE WHEN false THEN e."version"',
        f"{TEST_POSTGRES_BLOCKS}::test_what_is_dropped_leaves_its_neighbours",
    ),
    Mutant(
        "events of a batch in no order",
        HOT,
        "array_agg(f.number ORDER BY f.n), array_agg",
        "array_agg(f.number ORDER BY -f.n), array_agg",
        f"{TEST_POSTGRES_BLOCKS}::test_what_only_some_of_a_batch_may_do_is_told_of_those",
    ),
    Mutant(
        "several rows are loaded from every tenant",
        "stores/postgres/narrow_rows.py",
        "text = f'{self.select} WHERE \"tenant\" || \\'\\' = ?",
        "text = f'{self.select} WHERE \"tenant\" || \\'\\' >= ?",
        "tests/stores/test_postgres_server.py::test_tenants_with_the_same_names_share_nothing",
    ),
    Mutant(
        "a change that touches no row",
        "stores/postgres/narrow_rows.py",
        "1 / count(*)",
        "count(*)",
        "tests/stores/test_postgres.py::TestPostgres::test_changing_a_row_that_is_gone_is_a_conflict",
    ),
    Mutant(
        "fast path: tasks that are not plain",
        "core/settle.py",
        "if task.guarded or task.models",
        "if task.models",
        on("postgres", "test_a_claim_of_a_task_that_touches_files_reserves_them[eager]"),
    ),
    Mutant(
        "what was asked ahead is never void",
        "stores/sql/pipeline.py",
        "        self._ahead.clear()\n",
        "",
        f"{TEST_POSTGRES_GUARDS}::test_what_was_read_ahead_is_not_used_after_a_write",
    ),
    Mutant(
        "a notification wakes every tenant",
        "stores/postgres/notifications.py",
        "            found.calls += 1\n",
        "            for other in self._tenants.values():\n                other.calls += 1\n",
        "tests/stores/test_postgres_server.py::test_a_commit_of_another_tenant_is_no_news",
    ),
    Mutant(
        "the mark of a tenant is that of the store",
        "stores/postgres/statement_texts.py",
        "WHERE (tenant, {sequence}) > ({{tenant}}, 0) AND (tenant, {sequence}) <= ({{tenant}}, 9223372036854775807)",
        "WHERE {{tenant}} <> ''",
        "tests/stores/test_postgres.py::TestPostgres::test_a_tenant_neither_wakes_nor_informs_another",
    ),
    Mutant(
        "fast path: time goes back behind events that are in a block",
        HOT,
        "(SELECT e.time FROM event_block AS e WHERE e.project = p_project AND e.tenant = p_tenant\n"
        "                            AND e.last >= v_from ORDER BY e.last DESC LIMIT 1)) AS last",
        "NULL) AS last",
        f"{TEST_POSTGRES_GUARDS}::test_time_does_not_go_back_behind_claims_of_the_fast_path_either[None]",
    ),
    Mutant(
        "fast path: a session that was silent too long claims",
        HOT,
        " AND t.last_activity > v_now - p_idle",
        "",
        f"{TEST_POSTGRES_GUARDS}::test_a_session_that_was_silent_too_long_claims_nothing_by_the_fast_path[idle]",
    ),
)
