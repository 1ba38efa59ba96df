"""Seeded bugs in what survives power cuts, failed calls and stopped processes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_POWERLOSS = "tests/chaos/test_powerloss.py"
TEST_SQLITE_WRITING = "tests/stores/test_sqlite_writing.py"

STORE, PLACE, LOCK = "stores/sqlite/store.py", "stores/sqlite/store_file.py", "stores/sqlite/connections.py"
LOCAL, FAILURES, OUTBOX = "artifacts/local.py", "stores/sqlite/errors.py", "client/outbox.py"

DISKS = (
    # --- power cuts
    Mutant(
        "power: synchronous NORMAL",
        "stores/sqlite/connections.py",
        "synchronous = FULL",
        "synchronous = NORMAL",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: a new store's name is not synced",
        STORE,
        "            store_file.sync_new(self.path)\n",
        "",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: a new store's folder is not synced",
        PLACE,
        "    sync_folder(os.path.dirname(path))\n",
        "",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: folders above a new store are not synced",
        PLACE,
        "                sync_folder(new)\n",
        "                pass\n",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: artifact bytes are not synced",
        LOCAL,
        "            os.fsync(self._handle)\n",
        "",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: artifact names are not synced",
        LOCAL,
        "                _sync(folder)\n",
        "                pass\n",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: new artifact folders are not synced",
        LOCAL,
        "    _sync(folder.parent)\n",
        "",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: outbox bytes are not synced",
        OUTBOX,
        "            os.fsync(file.fileno())\n",
        "",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: the outbox folder is not synced",
        OUTBOX,
        "            sync_folder(folder)\n",
        "            pass\n",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    Mutant(
        "power: half a backup passes for one before an upgrade",
        "stores/sqlite/backup.py",
        'draft = f"{target}.new"',
        "draft = target",
        f"{TEST_POWERLOSS}::test_what_was_acknowledged_survives_a_power_cut_at_any_sync",
    ),
    # --- failed calls
    Mutant(
        "faults: a failed sync is reported as nothing done",
        FAILURES,
        "    if isinstance(error, apsw.IOError):\n        return OutcomeUnknown(",
        "    if False:\n        return OutcomeUnknown(",
        f"{TEST_SQLITE_WRITING}::test_a_commit_that_fails_says_whether_it_may_have_happened",
    ),
    Mutant(
        "faults: a failed read is corruption",
        FAILURES,
        "        if _is_sound(path):\n",
        "        if False:\n",
        f"{TEST_SQLITE_WRITING}::test_corruption_is_reported_only_where_the_file_is_damaged",
    ),
    Mutant(
        "faults: a connection that met a fault stays",
        FAILURES,
        "return isinstance(error, apsw.Error) and not",
        "return isinstance(error, apsw.Error) and False and not",
        f"{TEST_SQLITE_WRITING}::test_a_connection_that_met_a_fault_is_not_used_again",
    ),
    # --- stopped processes
    Mutant(
        "lock: a queue that does not move closes the store",
        LOCK,
        "if self._pass_by():",
        "if False:",
        f"{TEST_SQLITE_WRITING}::test_a_queue_that_does_not_move_is_passed_by_while_the_lock_is_free",
    ),
    Mutant(
        "lock: the holder is not named",
        LOCK,
        "            self._files.sign()\n",
        "",
        f"{TEST_SQLITE_WRITING}::test_a_process_that_only_had_the_lock_before_is_not_named",
    ),
    Mutant(
        "lock: a pid that comes again is named",
        LOCK,
        " or (start and began != start)",
        "",
        f"{TEST_SQLITE_WRITING}::test_a_process_that_only_had_the_lock_before_is_not_named",
    ),
    # --- undo
    Mutant(
        "undo: a restarted task is undone in part",
        "engine/verbs/undo.py",
        "e.kind in _FINAL or ",
        "",
        "test_an_undone_retry_that_was_edited_is_not_undone_by_half",
    ),
    Mutant(
        "undo: a task in a final state is cancelled again",
        "engine/verbs/undo.py",
        "    if task.state not in lifecycle.FINISHED:\n        cancel_task",
        "    if True:\n        cancel_task",
        "test_undoing_a_plan_cancels_each_task_once",
    ),
    Mutant(
        "undo: a dependency that comes back blocks, whatever it did before",
        "engine/verbs/undo.py",
        'on_failure=event.details["on_failure"])',
        'on_failure="block")',
        "test_a_dependency_that_comes_back_means_of_a_failure_what_it_meant[cancel-cancelled]",
    ),
    Mutant(
        "sqlite: a reader reads the clock after its snapshot",
        "stores/sqlite/transaction.py",
        "            kept = Kept(*known)\n",
        "            kept, at = Kept(*known), store.clock()\n",
        f"{TEST_SQLITE_WRITING}::test_a_reader_sees_all_that_was_written_before_its_clock_was_read",
    ),
)
