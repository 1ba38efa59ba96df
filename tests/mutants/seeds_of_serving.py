"""Seeded bugs in a server of several processes, and in waiting for commits."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SHARED_TABLE = "server/workers/shared_table.py"
SUPERVISOR = "server/workers/supervisor.py"
ADDED_METRICS = "server/workers/added_metrics.py"
COMMIT_WATCH = "stores/sqlite/commit_watch.py"
TEST_SHARED_TABLE = "tests/server/workers/test_shared_table.py"
TEST_SUPERVISOR = "tests/server/workers/test_supervisor.py"
TEST_ADDED_METRICS = "tests/server/workers/test_added_metrics.py"
TEST_WORKERS = "tests/server/workers/test_serving.py"
TEST_COMMIT_WATCH = "tests/stores/test_sqlite_commit_watch.py"

SERVING = (
    Mutant(
        "workers: rates without a lock",
        SHARED_TABLE,
        "        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, group)\n",
        "",
        f"{TEST_SHARED_TABLE}::test_a_process_waits_for_the_one_that_has_the_entry",
    ),
    Mutant(
        "workers: a rate for each",
        "server/assembly.py",
        "OwnMemory() if worker is None else worker.memory",
        "OwnMemory()",
        f"{TEST_WORKERS}::test_a_key_has_one_rate_over_all_workers",
    ),
    Mutant(
        "workers: a session of the token goes on in the others",
        SHARED_TABLE,
        "            entry.drop()\n",
        "",
        f"{TEST_SHARED_TABLE}::test_a_session_begins_and_ends_for_all",
    ),
    Mutant(
        "workers: one that died is not replaced",
        SUPERVISOR,
        "            if worker.pid is None and worker.start_at <= now:",
        "            if worker.pid is None and worker.name is None and worker.start_at <= now:",
        f"{TEST_SUPERVISOR}::test_a_worker_that_dies_is_replaced_at_once_and_the_others_stay",
    ),
    Mutant(
        "workers: they outlive their parent",
        SUPERVISOR,
        "            os.close(self._life[1])\n",
        "",
        f"{TEST_SUPERVISOR}::test_workers_notice_that_their_parent_was_killed",
    ),
    Mutant(
        "workers: counters fall with one that died",
        ADDED_METRICS,
        "    return is_live or family.kind in _COUNTED",
        "    return is_live",
        f"{TEST_ADDED_METRICS}::test_counters_are_added_by_their_labels_also_those_of_the_dead",
    ),
    Mutant(
        "workers: nobody leads until the dead one's lease ends",
        "server/serve.py",
        "    if worker is not None and worker.predecessor:",
        "    if False:",
        f"{TEST_WORKERS}::test_another_worker_leads_at_once_when_the_leader_dies",
    ),
    Mutant(
        "workers: an MCP session is unknown to the others",
        "mcp/http.py",
        "            if number not in (None, self._workers.number):",
        "            if False:",
        f"{TEST_WORKERS}::test_an_mcp_session_goes_on_whichever_worker_is_asked",
    ),
    Mutant(
        "waiting: each thread polls",
        COMMIT_WATCH,
        "                if self._is_polled:",
        "                if False:",
        f"{TEST_COMMIT_WATCH}::test_one_of_many_waiting_threads_polls_and_wakes_all",
    ),
    Mutant(
        "waiting: nobody polls once the first has left",
        COMMIT_WATCH,
        "            if not self._is_polled:\n                self._changed.notify()  # the one that polled leaves\n",
        "",
        f"{TEST_COMMIT_WATCH}::test_another_thread_polls_on_where_the_one_that_polled_leaves",
    ),
)
