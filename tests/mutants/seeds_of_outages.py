"""Seeded bugs in what a server answers, remembers and says while its store is unavailable, and in what it is called."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

AUTHENTICATOR = "server/auth/authenticator.py"
ROWS = "server/auth/row_cache.py"
TOKEN = "server/auth/metrics_token.py"
PROBES = "server/coordinator_routes.py"
WATCHERS = "tests/server/auth/test_watchers.py::"
OF_STRANGERS = "tests/server/test_strangers.py::"
COORDINATOR = "tests/server/test_coordinator.py::"
PATIENCE = "tests/cli/test_serving_patience.py::"
LEASES = "tests/client/test_worker_leases.py::"
HOOKS = "tests/agents_setup/test_hooks.py::"
OVERTAKEN = f"{LEASES}test_a_renewal_that_overtakes_the_answer_to_the_end_of_its_claim_stops_nothing"
MEANWHILE = f"{PATIENCE}test_a_server_that_comes_back_is_waited_for_and_the_metrics_answer_meanwhile"
STRANGERS = f"{COORDINATOR}test_probes_say_why_the_store_cannot_be_read_and_name_no_place_to_strangers"
WRITES = f"{COORDINATOR}test_failing_writes_are_told_while_reads_work_until_one_succeeds_or_for_a_minute"

OUTAGES = (
    # --- who is remembered
    Mutant(
        "outage: a key is remembered for ever",
        ROWS,
        "entry is not None and now - entry.at < kept",
        "entry is not None and (self._recall.is_on or now - entry.at < kept)",
        f"{WATCHERS}test_a_key_that_was_checked_is_good_for_ten_minutes_without_the_store",
    ),
    Mutant(
        "outage: every route remembers",
        ROWS,
        "(REMEMBERED, REMEMBERED) if self._recall.is_on else",
        "(REMEMBERED, REMEMBERED) if True else",
        f"{WATCHERS}test_only_what_is_watched_remembers",
    ),
    Mutant(
        "outage: a key that was seen to end is remembered",
        ROWS,
        'entry._replace(at=float("-inf"))',
        "entry._replace(at=entry.at - KEPT)",
        f"{WATCHERS}test_a_key_that_this_process_saw_end_is_forgotten_at_once",
    ),
    Mutant(
        "outage: a remembered key does not expire",
        ROWS,
        "return entry.row, entry.now + round((now - entry.at) * 1e6)",
        "return entry.row, entry.now",
        f"{WATCHERS}test_a_remembered_key_still_expires",
    ),
    Mutant(
        "outage: an unknown key is noted for a lookup",
        ROWS,
        "            if self._recall.is_on:\n                raise not_remembered()\n",
        "",
        f"{WATCHERS}test_while_a_lookup_hangs_the_next_is_answered_at_once_and_the_store_is_asked_once",
    ),
    Mutant(
        "outage: an unknown key waits for the store",
        AUTHENTICATOR,
        "        if not self.is_away(HOME):\n",
        "        if True:\n",
        f"{WATCHERS}test_while_a_lookup_hangs_the_next_is_answered_at_once_and_the_store_is_asked_once",
    ),
    Mutant(
        "outage: nobody looks whether the store is back",
        AUTHENTICATOR,
        "        self._lookups.look_at_home()\n",
        "",
        f"{WATCHERS}test_when_the_store_is_back_a_key_is_looked_up_again",
    ),
    Mutant(
        "outage: nobody of a tenant whose own store is away is remembered",
        AUTHENTICATOR,
        "            if not self._recall.is_on:\n                raise away\n",
        "            raise away\n",
        f"{OF_STRANGERS}test_who_was_known_in_a_tenant_reads_the_metrics_while_its_store_is_away",
    ),
    Mutant(
        "outage: who is not remembered reads no way out",
        "core/caller_errors.py",
        "error.message == _NOT_REMEMBERED or ",
        "",
        f"{OF_STRANGERS}test_whom_a_server_does_not_remember_reads_at_the_metrics_what_needs_no_store",
    ),
    Mutant(
        "outage: workers do not ask each other",
        AUTHENTICATOR,
        "            found = await self.ask_others(scope)\n",
        "            found = None\n",
        f"{WATCHERS}test_what_one_worker_remembers_counts_at_all_of_them",
    ),
    # --- the metrics token
    Mutant(
        "metrics token: any token",
        TOKEN,
        "        return hmac.compare_digest(_digest(text), _digest(token))",
        "        return bool(token)",
        f"{WATCHERS}test_the_metrics_token_needs_no_store_and_only_reads",
    ),
    Mutant(
        "metrics token: over plain HTTP",
        TOKEN,
        "    check_private(source)\n",
        "",
        f"{WATCHERS}test_the_metrics_token_is_refused_over_plain_http",
    ),
    Mutant(
        "metrics token: it may write",
        TOKEN,
        'role="viewer"',
        'role="member"',
        f"{WATCHERS}test_the_metrics_token_needs_no_store_and_only_reads",
    ),
    Mutant(
        "metrics token: of any length",
        TOKEN,
        "len(token) < _LEAST or ",
        "",
        f"{WATCHERS}test_a_file_without_a_good_token_ends_the_start",
    ),
    Mutant(
        "metrics token: a repository names it",
        "server/auth/policy.py",
        ' "serve.metrics_token",',
        "",
        "tests/server/auth/test_policy.py::test_a_repositorys_own_file_does_not_say_who_gets_in",
    ),
    # --- what is said
    Mutant(
        "probes: /ready names the store's place to everybody",
        PROBES,
        "trouble if self._is_owner(request) else in_fixed_words(trouble)",
        "trouble",
        STRANGERS,
    ),
    Mutant(
        "probes: the coordinator's health names the store's place to everybody",
        PROBES,
        "trouble.message if self._is_owner(request) else fixed",
        "trouble.message",
        STRANGERS,
    ),
    Mutant(
        "probes: tables of a newer version are unavailable",
        "core/store_health.py",
        "    if isinstance(read, SchemaMismatch):\n",
        "    if False:\n",
        STRANGERS,
    ),
    Mutant(
        "probes: failing writes are not told",
        "server/write_watch.py",
        "            self._failure = self._monotonic(), error\n",
        "            pass\n",
        WRITES,
    ),
    Mutant(
        "probes: a write that succeeds changes nothing",
        "server/write_watch.py",
        "                self._failure = None\n",
        "                pass\n",
        WRITES,
    ),
    Mutant(
        "probes: a failed write counts for ever",
        "server/write_watch.py",
        " or self._monotonic() - found[0] >= KEPT",
        "",
        WRITES,
    ),
    Mutant(
        "probes: the coordinator's failed writes do not count",
        "engine/duties/coordinator.py",
        "            self._aborted_by = error if isinstance(error, TenureError) else None\n",
        "",
        WRITES,
    ),
    Mutant(
        "log: the reason of a refusal too",
        "server/app.py",
        "FAILED, BROKEN = 400, 500",
        "FAILED, BROKEN = 400, 400",
        "tests/server/observability/test_logs.py::"
        "test_a_failed_request_has_code_and_request_id_and_the_reason_where_the_server_failed_it",
    ),
    Mutant(
        "workers: store_up of whoever looked last",
        "server/workers/added_metrics.py",
        " or family.name in _OF_THE_ASKED",
        "",
        "tests/server/workers/test_added_metrics.py::"
        "test_whether_the_store_answers_is_what_the_worker_that_was_asked_has_just_seen",
    ),
    # --- before the store is open
    Mutant(
        "waiting: nobody answers until the store is open",
        "server/store_wait.py",
        "            meanwhile()\n",
        "",
        MEANWHILE,
    ),
    Mutant(
        "waiting: anybody reads the metrics",
        "server/waiting_server.py",
        "            _check_reader(policy, scope)\n",
        "",
        MEANWHILE,
    ),
    Mutant(
        "waiting: a worker's socket is closed",
        "server/serve.py",
        "listening.dup()",
        "listening",
        f"{PATIENCE}test_a_worker_that_waits_for_the_store_answers_at_its_own_socket_and_leaves_it_open",
    ),
    Mutant(
        "serve: announced before its parts are made",
        "server/serve.py",
        "    early: list[int] = []",
        "    if worker is None:\n        start.announce()\n    early: list[int] = []",
        f"{PATIENCE}test_a_start_that_ends_by_a_wrong_setting_never_says_that_it_serves",
    ),
    # --- a claim that its holder ends
    Mutant(
        "worker: a renewal that overtakes the submit stops it",
        "client/worker/held_claim.py",
        'if self.is_ending and ended_by == "holder":',
        "if False:",
        OVERTAKEN,
    ),
    Mutant(
        "worker: a submit on its way is not noted",
        "client/worker/attempt.py",
        "        self.claim.is_ending = True\n",
        "",
        OVERTAKEN,
    ),
    Mutant(
        "worker: a question on its way is not noted",
        "client/worker/context.py",
        "        self._claim.is_ending = True\n",
        "",
        OVERTAKEN,
    ),
    Mutant(
        "hook: what the session has just ended is stale",
        "agents/hooks.py",
        "            if receipt.name in own:\n                continue\n",
        "",
        f"{HOOKS}test_a_claim_that_the_session_is_about_to_put_away_is_not_called_stale",
    ),
    # --- the name of a connection
    Mutant(
        "called: with a space and letters of any kind",
        "process_table.py",
        r'return re.sub(r"[^\w.@-]", "-", f"tenure-{_Called.what}@{host()}", flags=re.ASCII)[:63]',
        'return f"tenure-{_Called.what}@{host()}"[:63]',
        "tests/stores/test_mariadb_server.py::test_a_new_connection_says_what_runs_and_on_which_host",
    ),
    Mutant(
        "called: PostgreSQL sees one name for all",
        "stores/postgres/address.py",
        'settings.setdefault("application_name", called())',
        'settings.setdefault("application_name", "tenure")',
        "tests/stores/test_postgres_server.py::test_the_server_sees_what_runs_and_on_which_host",
    ),
    Mutant(
        "called: Valkey sees one name for all",
        "stores/valkey/connection.py",
        "client_name=called()",
        'client_name="tenure"',
        "tests/stores/test_valkey_server.py::test_the_server_sees_what_runs_and_on_which_host",
    ),
)
