"""Seeded bugs in queries about the past, and in the access log."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_CHAIN = "tests/core/test_access_chain.py"
TEST_ACCESS = "tests/server/observability/test_access_log.py"

PAST = "engine/past/rebuild.py"
PAST_LOG = "engine/past/log.py"
CHAIN = "core/access_chain.py"
ACCESS = "server/access_log.py"

AUDIT = (
    # --- the past
    Mutant(
        "past: tasks that were archived since are missing",
        PAST_LOG,
        "        events += [(place, event) for place, event in pairs if cut.has(event, place)]\n",
        "",
        "test_archived_tasks_are_as_they_were",
    ),
    Mutant(
        "past: a task that was in the archive then and returned is in its tables",
        PAST,
        "        then = {id: pair for id, pair in found.items() if pair[1] <= self._log.now}",
        "        then: dict[str, tuple[Event, int]] = {}",
        "test_archived_tasks_are_as_they_were",
    ),
    Mutant(
        "past: a lease that had ended is not over before somebody noticed",
        PAST,
        "        return {key: end for key, end in ends.items() if end <= self._log.now}",
        "        return {}",
        "test_a_lease_that_had_run_out_is_over_whether_or_not_it_was_settled",
    ),
    Mutant(
        "past: a lease is over by the end of its last renewal",
        PAST,
        "        return {key: end for key, end in ends.items() if end <= self._log.now}",
        "        return {(t.id, t.generation): t.claimed_at or 0 for t in held}",
        "test_a_renewed_lease_is_not_over",
    ),
    Mutant(
        "past: usage that grew later counts",
        PAST,
        "        self._keep(row for row in known if row.at <= now)",
        "        self._keep(row for row in known if row.at or now)",
        "test_usage_that_grew_later_is_left_out",
    ),
    Mutant(
        "past: the future is shown",
        PAST_LOG,
        "            if self.instant > tx.now:",
        "            if False:",
        "test_a_moment_that_cannot_be_shown_is_refused_with_the_reason",
    ),
    Mutant(
        "past: what retention deleted is left out without a word",
        PAST_LOG,
        "    if now < horizon:",
        "    if False:",
        "test_what_retention_deleted_is_refused_and_later_moments_are_whole",
    ),
    Mutant(
        "past: every moment before the last deletion is refused",
        PAST_LOG,
        'event.details.get("until", event.time)',
        "event.time",
        "test_what_retention_deleted_is_refused_and_later_moments_are_whole",
    ),
    Mutant(
        "past: events are cut by time where the clock was set back",
        PAST_LOG,
        "            self.floor = max((turn.sequence for turn in turns if turn.time <= self.instant), default=0)",
        "            self.floor = 0 if turns else 0",
        "tests/engine/test_on_memory.py::TestOnMemory::test_the_past_of_a_clock_that_was_set_back",
    ),
    Mutant(
        "past: reserved money is forgotten",
        "engine/verbs/claim.py",
        '        details["funds"] = new.funds  # the log has no other trace of the reservation',
        "        pass",
        "test_budgets_are_as_they_were",
    ),
    # --- the chain of an access log
    Mutant(
        "access chain: the hash of the line before is not compared",
        CHAIN,
        "        elif line.previous != self._head.digest:",
        "        elif False:",
        f"{TEST_CHAIN}::test_a_tampered_chain_is_found[edited]",
    ),
    Mutant(
        "access chain: missing lines are not counted",
        CHAIN,
        "        if missing > 0:",
        "        if missing > 0 and not line.previous:",
        f"{TEST_CHAIN}::test_findings_name_the_place",
    ),
    Mutant(
        "access chain: a head from elsewhere is not compared",
        CHAIN,
        "            if self._head != self._expected:",
        "            if False:",
        f"{TEST_CHAIN}::test_with_a_head_from_elsewhere_cut_and_rewritten_chains_are_found_too[last_edited]",
    ),
    Mutant(
        "access chain: a cut end is not found with a head",
        CHAIN,
        "        if self._expected is not None and not self._met:",
        "        if False:",
        f"{TEST_CHAIN}::test_with_a_head_from_elsewhere_cut_and_rewritten_chains_are_found_too[cut]",
    ),
    Mutant(
        "access chain: any line after a part makes it a torn one",
        CHAIN,
        "        if self._part is not None and line.torn == torn_part(self._part):",
        "        if self._part is not None:",
        f"{TEST_CHAIN}::test_a_torn_line_that_the_next_process_names_is_not_accused",
    ),
    # --- the access log
    Mutant(
        "access log: everybody may read it",
        ACCESS,
        "os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)",
        "os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)",
        f"{TEST_ACCESS}::test_a_chain_goes_on_through_restarts_and_only_its_owner_may_read_it",
    ),
    Mutant(
        "access log: two processes write to one file",
        ACCESS,
        "        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "        pass",
        f"{TEST_ACCESS}::test_two_processes_never_share_a_file",
    ),
    Mutant(
        "access log: a restart begins a new chain",
        ACCESS,
        "        self._head, part = _last_line(self._file)",
        "        part = _last_line(self._file)[1]",
        f"{TEST_ACCESS}::test_a_chain_goes_on_through_restarts_and_only_its_owner_may_read_it",
    ),
    Mutant(
        "access log: a torn line is not named",
        ACCESS,
        "            entry[TORN] = torn_part(part)",
        "            pass",
        f"{TEST_ACCESS}::test_a_torn_line_is_named_by_the_next_process",
    ),
    Mutant(
        "access log: lost lines are forgotten",
        ACCESS,
        "                self._lost += 1",
        "                pass",
        f"{TEST_ACCESS}::test_a_line_that_cannot_be_written_is_counted_in_the_next",
    ),
    Mutant(
        "access log: a receipt in the place of a task is written",
        ACCESS,
        '"keys": [without_secrets(key)[:LONGEST_KEY] for key in keys[:MOST_KEYS]]',
        '"keys": [key[:LONGEST_KEY] for key in keys[:MOST_KEYS]]',
        f"{TEST_ACCESS}::test_every_operation_is_a_line_reads_and_refusals_too",
    ),
    Mutant(
        "access log: refused requests are left out",
        ACCESS,
        "        if request.route in _QUIET and status < 400:",
        "        if request.route in _QUIET or status >= 400:",
        f"{TEST_ACCESS}::test_every_operation_is_a_line_reads_and_refusals_too",
    ),
)
