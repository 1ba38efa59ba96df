"""Seeded bugs in row-level security: policies, the tenant of a transaction, and who may open a store."""

from __future__ import annotations

from tests.mutants.mutant import HOT, Mutant

MIGRATION = "stores/postgres/migrations/0021_guarded_log.sql"
SECURITY = "stores/postgres/row_security.py"
TEST = "tests/stores/test_postgres_row_security.py"
TEST_PLANS = "tests/stores/test_postgres_plans.py"
TEST_HOT_PLANS = "tests/stores/test_postgres_hot_plans.py"
TEST_ADDRESS = "tests/stores/test_postgres_address.py"
ROW_SECURITY = (
    Mutant(
        "a policy that shows every tenant",
        SECURITY,
        "( SELECT current_setting('tenure.tenant'::text, true) AS current_setting)",
        "tenant",
        f"{TEST}::test_a_statement_that_forgets_its_tenant_shows_nothing_of_another",
    ),
    Mutant(
        "a table without a policy",
        SECURITY,
        "        if not has_tenant:\n            continue",
        '        if not has_tenant or table == "held":\n            continue',
        f"{TEST}::test_every_table_has_a_policy_or_is_a_fact_of_the_whole_store",
    ),
    Mutant(
        "views with the rights of their owner",
        SECURITY,
        "SET (security_invoker = true)",
        "SET (security_invoker = false)",
        f"{TEST}::test_the_role_sees_one_tenant_and_without_a_tenant_nothing",
    ),
    Mutant(
        "a role that may change the log",
        SECURITY,
        "    if table in APPENDED:",
        "    if table in ():",
        f"{TEST}::test_the_role_may_not[DELETE FROM {{0}}.event]",
    ),
    Mutant(
        "an owner may open a restricted store",
        SECURITY,
        "    if found.escapes:",
        "    if found.escapes and found.is_superuser:",
        f"{TEST}::test_a_role_that_no_policy_restricts_is_refused[tenure_owner-owns its tables]",
    ),
    Mutant(
        "events of another tenant can be dropped",
        MIGRATION,
        "    IF p_tenant IS DISTINCT FROM current_setting('tenure.tenant', true) THEN",
        "    IF p_tenant IS NULL THEN",
        f"{TEST}::test_the_role_may_not[SELECT {{0}}.drop_events('umbra', 'p', '{{{{}}}}', '{{{{}}}}')]",
    ),
    Mutant(
        "a function of the owner finds the caller's tables",
        MIGRATION,
        "SET search_path = pg_catalog, %I, pg_temp', v_function",
        "SET search_path = pg_temp, pg_catalog, %I', v_function",
        f"{TEST}::test_a_table_of_the_callers_own_does_not_stand_for_one_of_ours",
    ),
    Mutant(
        "a migration leaves its tables unrestricted",
        "stores/postgres/schema.py",
        "        connection.run([(text, ()) for text in kept_on(connection, schema)])\n",
        "",
        f"{TEST}::test_a_migration_changes_the_rows_of_every_tenant_and_is_restricted_too",
    ),
    Mutant(
        "a query before the tenant is set",
        "stores/sql/pipeline.py",
        "        self._enter(() if project is None else (project,))\n",
        "        if project is not None:\n            self._enter((project,))\n",
        "tests/engine/test_on_postgres.py::TestUnderRowSecurity::test_what_falls_due_is_told_though_nobody_asks",
    ),
    Mutant(
        "an open bound of the log",
        "stores/postgres/statement_texts.py",
        "    WHERE (e.project, e.tenant, e.{sequence}) > (p.name, $2, 0)\n        AND (e.project",
        "    WHERE (e.project",
        f"{TEST_PLANS}::test_an_idle_tenant_reads_nothing_of_a_busy_one"
        "[grown, under a policy-writes-beginning in projects]",
    ),
    Mutant(
        "an open bound of the log in the fast path",
        HOT,
        "FROM event_block AS e WHERE e.project = p_project AND e.tenant = p_tenant\n",
        "FROM event_block AS e WHERE e.project = p_project\n",
        f"{TEST_HOT_PLANS}::test_the_first_claim_of_a_tenant_reads_nothing_of_a_busy_one",
    ),
    # --- the log and the epoch
    Mutant(
        "the role drops the log of a task that is not archived",
        MIGRATION,
        "AND e.sequence + 0 < v_last AND NOT EXISTS (",
        "AND false AND NOT EXISTS (",
        f"{TEST}::test_the_log_of_a_task_that_is_not_archived_is_not_dropped",
    ),
    Mutant(
        "the role drops more events than its documents have",
        MIGRATION,
        "+ cardinality(p_gone) > (",
        "- 1000 > (",
        f"{TEST}::test_the_log_of_a_task_that_is_not_archived_is_not_dropped",
    ),
    Mutant(
        "the role may clear a log",
        SECURITY,
        'OWNERS = frozenset({"clear_log"})',
        "OWNERS: frozenset[str] = frozenset()",
        f"{TEST}::test_a_live_log_is_not_cleared_by_way_of_a_mark_in_its_epoch",
    ),
    Mutant(
        "the role may delete an epoch",
        SECURITY,
        'NEVER_DELETED = frozenset({"epoch"})',
        "NEVER_DELETED: frozenset[str] = frozenset()",
        f"{TEST}::test_the_role_may_not[DELETE FROM {{0}}.epoch]",
    ),
    Mutant(
        "the role freezes a tenant under receipts that stay valid",
        MIGRATION,
        "        OR (NEW.epoch <> v_before AND substr(NEW.epoch, 1, 8) = substr(v_before, 1, 8))\n",
        "",
        f"{TEST}::test_an_epoch_that_the_program_would_not_make_is_refused[frozen under the same receipts]",
    ),
    Mutant(
        "the role writes an epoch in any form",
        MIGRATION,
        "    IF NEW.epoch !~ '^[0-9a-f]{8}([.][0-9]{1,18})?$'\n",
        "    IF false\n",
        f"{TEST}::test_an_epoch_that_the_program_would_not_make_is_refused[another form]",
    ),
    Mutant(
        "the role writes an epoch of another place",
        MIGRATION,
        "        OR NEW.place NOT IN (place_here(), without_oid(place_here()))",
        "",
        f"{TEST}::test_an_epoch_that_the_program_would_not_make_is_refused[another place]",
    ),
    Mutant(
        "a server elsewhere is not verified",
        "stores/postgres/address.py",
        '    mode = settings.get("sslmode", _VERIFY[0])\n',
        '    mode = settings.get("sslmode", _VERIFY[0])\n    return settings\n',
        f"{TEST_ADDRESS}::test_a_server_elsewhere_is_verified[postgresql://ann@db.example.com/work]",
    ),
)
