"""Seeded bugs in the store in Valkey: each takes away one of its guards."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMIT = "stores/valkey/commit.py"
GUARDS = "tests/stores/test_valkey_guards.py"
SERVER = "tests/stores/test_valkey_server.py"
STORE = "tests/stores/test_valkey.py::TestValkey"

VALKEY = (
    Mutant(
        "valkey: versions are not compared",
        COMMIT,
        "(redis.call('HGET', KEYS[1], name) or '') ~= seen",
        "false",
        f"{GUARDS}::test_a_writer_that_lost_its_turn_meets_a_conflict",
    ),
    Mutant(
        "valkey: versions of a reader are not compared",
        "stores/valkey/session.py",
        'if self._seen.setdefault(project, version or b"") != (version or b""):',
        'if self._seen.setdefault(project, version or b"") is None:',
        f"{GUARDS}::test_a_read_that_another_commit_has_torn_is_refused",
    ),
    Mutant(
        "valkey: only the version of the project asked for is compared",
        "stores/valkey/session.py",
        "dict.fromkeys([*self._seen, *projects,",
        "dict.fromkeys([*projects,",
        f"{GUARDS}::test_rows_of_two_projects_are_of_one_moment",
    ),
    Mutant(
        "valkey: a reader of all projects does not compare commits",
        "stores/valkey/transaction.py",
        "        if self._commits is not None:\n",
        "        if False:\n",
        f"{GUARDS}::test_a_writer_that_read_all_projects_meets_a_conflict_with_any_other",
    ),
    Mutant(
        "valkey: the turn is trusted",
        "stores/valkey/transaction.py",
        "for project, version in self._seen.items()}\n",
        "for project, version in self._seen.items() if not (self._turn and self._turn.held)}\n",
        f"{GUARDS}::test_a_process_that_was_stopped_past_its_turn_meets_a_conflict",
    ),
    Mutant(
        "valkey: a time that is out of date is not refused",
        COMMIT,
        "- count() > tonumber(take()) then return 'late' end",
        "- count() > tonumber(take()) + 60000000 then return 'late' end",
        f"{GUARDS}::test_a_commit_whose_time_is_out_of_date_is_refused",
    ),
    Mutant(
        "valkey: the epoch is kept after a promotion",
        "stores/valkey/store.py",
        "if place.decode() == self.server.place:",
        "if place.decode() in (self.server.place, self.server.former):",
        f"{SERVER}::test_a_promoted_replica_begins_a_new_epoch_for_every_tenant",
    ),
    Mutant(
        "valkey: a commit does not ask where it is",
        COMMIT,
        "'master_replid:' .. take(), 1, true) then return 'moved' end",
        "'master_replid', 1, true) and take() then return 'moved' end\ntake()",
        f"{SERVER}::test_a_promoted_replica_begins_a_new_epoch_for_every_tenant",
    ),
    Mutant(
        "valkey: a promotion ends the epoch of one tenant alone",
        "stores/valkey/store.py",
        "            for name in self._tenant_names():\n                meta",
        "            for name in ():\n                meta",
        f"{SERVER}::test_a_promoted_replica_begins_a_new_epoch_for_every_tenant",
    ),
    Mutant(
        "valkey: a weak server that starts again keeps its epoch",
        "stores/valkey/store.py",
        "self.server.former == NOWHERE and not self.server.weaknesses and not self._had_replicas()",
        "self.server.former == NOWHERE and not self._had_replicas()",
        f"{SERVER}::test_a_server_that_does_not_sync_each_commit_begins_a_new_epoch_when_it_starts_again",
    ),
    Mutant(
        "valkey: former replicas are forgotten",
        "stores/valkey/store.py",
        "not self.server.weaknesses and not self._had_replicas()",
        "not self.server.weaknesses",
        f"{SERVER}::test_a_server_that_had_replicas_and_starts_again_may_be_another_one",
    ),
    Mutant(
        "valkey: writers of the former epoch commit",
        COMMIT,
        "if (meta[2] or '') ~= take() then return 'changed' end",
        "take()",
        f"{GUARDS}::test_a_writer_of_the_former_epoch_meets_a_conflict",
    ),
    Mutant(
        "valkey: told sequences need not hold",
        COMMIT,
        "if sequence ~= '' and",
        "if false and",
        f"{GUARDS}::test_sequences_that_were_told_hold_or_the_commit_is_refused",
    ),
    Mutant(
        "valkey: a lost answer to a commit counts as nothing done",
        "stores/valkey/transaction.py",
        'raise unknown(f"the connection was lost at the commit ({error})", store.url) from error',
        "raise changed() from error",
        f"{SERVER}::test_a_connection_that_is_lost_at_the_commit_leaves_the_outcome_unknown",
    ),
    Mutant(
        "valkey: a replica that was not waited for counts",
        "stores/valkey/transaction.py",
        "copies[0] < store.replicas",
        "copies[0] < 0",
        f"{SERVER}::test_a_commit_that_too_few_replicas_have_is_not_told_as_done",
    ),
    Mutant(
        "valkey: every server is durable",
        "stores/valkey/store.py",
        "_FEATURES if self.server.weaknesses else type(self).features",
        "type(self).features",
        f"{SERVER}::test_a_server_that_may_lose_commits_is_not_called_durable",
    ),
    Mutant(
        "valkey: a server may evict rows",
        "stores/valkey/server_settings.py",
        'if settings[EVICTION] != "noeviction":',
        "if not settings[EVICTION]:",
        f"{SERVER}::test_a_server_that_would_throw_rows_away_is_refused",
    ),
    Mutant(
        "valkey: torn readers never take the turn",
        "stores/valkey/session.py",
        "elif self._store.tears.count >= TEARS:",
        "elif self._store.tears.count > 1000:",
        f"{GUARDS}::test_a_reader_that_was_torn_three_times_takes_the_turn",
    ),
    Mutant(
        "valkey: writers do not wait for a reader of all projects",
        "stores/valkey/turns.py",
        "is_free = others is None or self._is_reader",
        "is_free = True",
        f"{GUARDS}::test_a_writer_waits_for_a_reader_that_has_the_turn_of_all",
    ),
    Mutant(
        "valkey: a newer form is written to",
        COMMIT,
        "if meta[1] and meta[1] ~= form then return 'form' end",
        "",
        f"{GUARDS}::test_a_store_of_a_newer_form_is_refused",
    ),
    Mutant(
        "valkey: a unique value is not compared",
        "stores/valkey/transaction.py",
        "if self._taken.get((row.project, value)) is not None:",
        "if False:",
        f"{STORE}::test_a_unique_value_is_given_once_in_a_project",
    ),
    Mutant(
        "valkey: new rows and values are not compared at the commit",
        COMMIT,
        "if redis.call('HEXISTS', key, field) == 1 then return 'taken' end",
        "",
        (
            f"{GUARDS}::test_what_should_be_new_is_compared_at_the_commit_at_the_latest",
            f"{STORE}::test_a_version_of_a_task_is_written_once",
        ),
    ),
    Mutant(
        "valkey: a commit to a known project may take its time",
        COMMIT,
        "brings = any(name",
        "brings = True or any(name",
        f"{GUARDS}::test_a_project_that_is_new_here_may_take_its_time",
    ),
    Mutant(
        "valkey: turns of killed processes last",
        "stores/valkey/turns.py",
        "            if pause == _LONGEST_PAUSE:\n",
        "            if False:\n",
        f"{GUARDS}::test_the_turn_of_a_process_that_was_killed_is_not_waited_for",
    ),
    Mutant(
        "valkey: a turn that the server refuses is waited for",
        "stores/valkey/turns.py",
        "if is_refused or self._turns",
        "if self._turns",
        f"{SERVER}::test_a_full_server_refuses_at_once_and_nothing_is_done",
    ),
    Mutant(
        "valkey: an empty lane stays",
        COMMIT,
        "redis.call('ZREM', lanes, name)",
        "redis.call('ZADD', lanes, 0, name)",
        f"{GUARDS}::test_a_lane_without_tasks_is_forgotten",
    ),
    Mutant(
        "valkey: a server elsewhere is reached in the clear",
        "stores/valkey/address.py",
        'if is_insecure and options["allow_insecure"] == "0":',
        "if False:",
        f"{SERVER}::test_a_server_elsewhere_is_verified[valkey]",
    ),
    Mutant(
        "valkey: a certificate is good for every name",
        "stores/valkey/connection.py",
        '"ssl_check_hostname": True',
        '"ssl_check_hostname": False',
        f"{SERVER}::test_a_server_elsewhere_is_verified[valkey]",
    ),
)
