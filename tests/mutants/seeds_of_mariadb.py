"""Seeded bugs in the MariaDB store."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STORE = "stores/mariadb/store.py"
PIPELINE = "stores/mariadb/pipeline.py"
TEXTS = "stores/mariadb/statement_texts.py"
SCHEMA = "stores/mariadb/schema.py"
SERVER = "tests/stores/test_mariadb_server.py"
LOCKS = "tests/stores/test_mariadb_locks.py"
COPIES = "tests/stores/test_mariadb_copies.py"
SUITE = "tests/stores/test_mariadb.py::TestMariadb"
TABLES = "tests/stores/test_mariadb_schema.py"
CONNECTION = "stores/mariadb/connection.py"
ADDRESSES = "tests/stores/test_addresses.py"
CLUSTER = "tests/stores/test_mariadb_cluster.py"
PLANS = "tests/stores/test_mariadb_plans.py"
_UNSAFE = f"{SERVER}::test_a_server_that_may_lose_commits_is_refused"
_AFTER_THE_KEY = '\n    "ref" VARCHAR(512) NOT NULL,\n    "track" LONGTEXT NOT NULL,\n    "sequence" BIGINT'

APART = "tests/server/test_queries_apart.py::test_no_query_tells_of_another_tenant"

MARIADB = (
    Mutant(
        "tenant: a search without it",
        "stores/sql/statements.py",
        "(('\"tenant\" = ?', *clauses))",
        "(('? IS NOT NULL', *clauses))",
        APART,
    ),
    Mutant(
        "tenant: rows are loaded without it",
        "stores/sql/statements.py",
        """WHERE "tenant" = ? AND "project" = ? AND "id" IN""",
        """WHERE ? IS NOT NULL AND "project" = ? AND "id" IN""",
        APART,
    ),
    Mutant(
        "mariadb: a lost answer to a commit counts as nothing done",
        PIPELINE,
        'self._failed = unknown(f"the connection was lost at the commit ({error})", url)',
        "from tenure.stores.sql.server_errors import lost\n            self._failed = lost(error, url)",
        f"{SERVER}::test_an_answer_to_a_commit_that_never_came_is_an_unknown_outcome",
    ),
    Mutant(
        "mariadb: nobody waits for a project's turn",
        TEXTS,
        ' ON DUPLICATE KEY UPDATE held = held + 1"',
        ' ON DUPLICATE KEY UPDATE held = held + 1; COMMIT; START TRANSACTION READ WRITE"',
        f"{LOCKS}::test_writers_of_one_project_wait_and_of_two_do_not",
    ),
    Mutant(
        "mariadb: turns as they come",
        PIPELINE,
        "for project in sorted(projects)]",
        "for project in projects]",
        f"{LOCKS}::test_turns_of_several_projects_are_taken_in_one_order",
    ),
    Mutant(
        "mariadb: the clock before the turn",
        PIPELINE,
        "start = [(texts.BEGIN_WRITE, ()), *turns, (texts.META_SHARED, ()), head, clock]",
        "start = [(texts.BEGIN_WRITE, ()), clock, *turns, (texts.META_SHARED, ()), head]",
        f"{LOCKS}::test_now_is_read_after_the_turn_was_waited_for",
    ),
    Mutant(
        "mariadb: a writer that does not hold the epoch",
        TEXTS,
        'META_SHARED = f"{META} LOCK IN SHARE MODE"',
        "META_SHARED = META",
        (
            f"{LOCKS}::test_a_new_epoch_waits_for_every_writer_that_has_read_the_old_one",
            f"{LOCKS}::test_no_writer_begins_while_a_new_epoch_is_put_in_force",
        ),
    ),
    Mutant(
        "mariadb: an epoch that waits for nobody",
        TEXTS,
        'META_ALONE = f"{META} FOR UPDATE"',
        "META_ALONE = META",
        f"{LOCKS}::test_a_new_epoch_waits_for_every_writer_that_has_read_the_old_one",
    ),
    Mutant(
        "mariadb: a row that changed since is written over",
        TEXTS,
        "IF tenure_touched <> %d THEN",
        "IF tenure_touched > %d THEN",
        f"{SUITE}::test_a_task_that_moved_on_since_it_was_loaded_is_a_conflict",
    ),
    Mutant(
        "mariadb: a reader of several moments",
        TEXTS,
        'SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"',
        'SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"',
        f"{SUITE}::test_a_reader_sees_one_moment",
    ),
    Mutant(
        "mariadb: events get their sequences when they are appended",
        "stores/mariadb/transaction.py",
        "            self._events += events\n",
        "            self._events += events\n            self._append_now()\n",
        f"{LOCKS}::test_sequences_are_in_the_order_of_commits",
    ),
    Mutant(
        "mariadb: sequences that nobody holds",
        TEXTS,
        'TAKE_SEQUENCES = "UPDATE log_end SET last = LAST_INSERT_ID(last + ?)"',
        (
            'TAKE_SEQUENCES = "INSERT INTO log_end (one, last) SELECT 1, 0 FROM log_end WHERE LAST_INSERT_ID('
            '(SELECT coalesce(max(sequence), 0) FROM event) + ?) < 0"'
        ),
        f"{LOCKS}::test_whoever_has_taken_sequences_keeps_others_from_overtaking",
    ),
    Mutant(
        "mariadb: a server that writes its log once a second",
        SCHEMA,
        "found.flush_at_commit in (1, 3)",
        "found.flush_at_commit in (0, 1, 3)",
        f"{_UNSAFE}[innodb_flush_log_at_trx_commit-0-1]",
    ),
    Mutant(
        "mariadb: a server that syncs its log once a second",
        SCHEMA,
        "found.flush_at_commit in (1, 3)",
        "found.flush_at_commit in (1, 2, 3)",
        f"{_UNSAFE}[innodb_flush_log_at_trx_commit-2-1]",
    ),
    Mutant(
        "mariadb: a binary log that is not synced",
        SCHEMA,
        "not found.has_binlog or found.sync_binlog == 1",
        "True",
        f"{SERVER}::test_a_binary_log_that_is_not_synced_is_refused",
    ),
    Mutant(
        "mariadb: an older program writes into half an upgrade",
        SCHEMA,
        "                connection.run([(CLOSE, [step.number])])\n",
        "                pass\n",
        f"{TABLES}::test_an_upgrade_that_was_interrupted_is_finished",
    ),
    Mutant(
        "mariadb: a step is recorded before it is done",
        SCHEMA,
        "            for text in statements_of(step):\n",
        (
            "            if done:\n                connection.run([(RECORD, [step.number, step.name, step.checksum,"
            " step.since, step.breaking])])\n            for text in statements_of(step):\n"
        ),
        f"{TABLES}::test_an_upgrade_that_was_interrupted_is_finished",
    ),
    Mutant(
        "mariadb: another program's tables",
        SCHEMA,
        '    if tables.get("migration") != "tenure":\n',
        "    if False:\n",
        f"{TABLES}::test_another_programs_database_is_refused_and_left_alone",
    ),
    Mutant(
        "mariadb: a copy keeps the epochs of other tenants",
        STORE,
        "            (texts.SETTLE_TENANTS, [self._random(16).hex(), self.place, self.place]),\n",
        "",
        f"{COPIES}::test_a_store_restored_elsewhere_begins_a_new_epoch_for_every_tenant",
    ),
    Mutant(
        "mariadb: an upgrade makes a copy of the store",
        SCHEMA,
        "place = place if is_copy else _here(connection)",
        "place = place if place else _here(connection)",
        f"{TABLES}::test_tables_that_were_half_made_are_finished[42]",
    ),
    Mutant(
        "mariadb: lanes by walking through them",
        TEXTS,
        '_NEXT_LANE.format("> tenure_lane")',
        '_NEXT_LANE.replace("FORCE INDEX (task_ready)", "FORCE INDEX (task_key)").format("> tenure_lane")',
        f"{PLANS}::test_the_cost_of_lanes_grows_with_lanes",
    ),
    Mutant(
        "mariadb: a quote ends a text",
        CONNECTION,
        '.replace("\'", "\\\\\'")',
        "",
        f"{COPIES}::test_values_of_any_size_are_kept",
    ),
    Mutant(
        "mariadb: NUL is stored as it is",
        CONNECTION,
        "text = hidden(value)",
        "text = value",
        f"{SUITE}::test_texts_sort_by_their_characters_down_to_nul",
    ),
    Mutant(
        "mariadb: any server is taken for a node of a cluster",
        CONNECTION,
        "if not where.is_cluster or _is_ready(connection):",
        "if where.hosts:",
        f"{CLUSTER}::test_several_hosts_that_are_no_cluster_are_refused",
    ),
    Mutant(
        "mariadb: one node of a cluster is enough",
        SCHEMA,
        "_ONE_NODE: not found.is_cluster or connection.is_of_cluster,",
        "_ONE_NODE: True,",
        f"{CLUSTER}::test_a_cluster_is_used_through_its_first_node_and_goes_on_at_the_next",
    ),
    Mutant(
        "mariadb: an update that changes nothing has found no row",
        CONNECTION,
        "CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS",
        "CLIENT.MULTI_STATEMENTS",
        f"{SUITE}::test_any_row_can_become_any_other[Agent]",
    ),
    Mutant(
        "mariadb: keys do not know case",
        "stores/mariadb/migrations/0001_initial.sql",
        f'    "key" VARCHAR(440) NOT NULL,{_AFTER_THE_KEY}',
        f'    "key" VARCHAR(440) COLLATE utf8mb4_general_ci NOT NULL,{_AFTER_THE_KEY}',
        f"{SUITE}::test_a_prefix_knows_case_and_no_wildcards",
    ),
    Mutant(
        "mariadb: a commit that the cluster refused may have been done",
        "stores/mariadb/errors.py",
        "translated(error, url) if error.code in AGAIN else",
        "translated(error, url) if not error.code else",
        f"{CLUSTER}::test_a_commit_that_the_server_took_back_is_a_conflict_and_another_refusal_unknown",
    ),
    Mutant(
        "mariadb: an answer that cannot be read ends in an error of Python",
        "stores/mariadb/answers.py",
        "except (IndexError, KeyError, ValueError) as error:",
        "except ZeroDivisionError as error:",
        "tests/stores/test_mariadb_answers.py::test_what_no_server_says_is_a_lost_connection",
    ),
    Mutant(
        "mariadb: a server elsewhere is not verified",
        "stores/mariadb/address.py",
        'ca is not None or not (is_here or insecure == "1")',
        "ca is not None",
        f"{ADDRESSES}::test_a_mariadb_elsewhere_is_verified",
    ),
    Mutant(
        "mariadb: a turn that other nodes of a cluster do not see",
        TEXTS,
        ' ON DUPLICATE KEY UPDATE held = held + 1"',
        ' ON DUPLICATE KEY UPDATE held = held"',
        f"{CLUSTER}::test_of_two_commits_at_two_nodes_one_is_a_conflict",
    ),
    Mutant(
        "mariadb: a new epoch that writers at other nodes do not see",
        TEXTS,
        '"UPDATE turn SET held = held + 1 WHERE tenant = ? ORDER BY project"',
        '"UPDATE turn SET held = held WHERE tenant = ? ORDER BY project"',
        f"{CLUSTER}::test_a_new_epoch_at_one_node_ends_writers_at_another[known-its own]",
    ),
    Mutant(
        "mariadb: a new epoch that the maker of a turn at another node does not see",
        "stores/mariadb/pipeline.py",
        "answer.touched < 2 * turns",
        "answer.touched < 0",
        f"{CLUSTER}::test_a_new_epoch_at_one_node_ends_writers_at_another[new-its own]",
    ),
    Mutant(
        "mariadb: a backslash means something in a text",
        CONNECTION,
        '.replace("\\\\", "\\\\\\\\")',
        "",
        f"{COPIES}::test_values_of_any_size_are_kept",
    ),
)
