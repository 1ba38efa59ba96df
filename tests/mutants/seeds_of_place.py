"""Seeded bugs in how a store notices what happens to its file, and to its clock."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_SQLITE_PLACE = "tests/stores/test_sqlite_place.py"

STORE = "stores/sqlite/store.py"
CLOCK = "core/clock.py"
TRANSACTION = "stores/sqlite/transaction.py"

PLACE = (
    Mutant(
        "place: the file is not checked before a transaction",
        TRANSACTION,
        "if (change := self._connections.change()) is not None:\n                raise moved",
        "if (change := None) is not None:\n                raise moved",
        f"{TEST_SQLITE_PLACE}::test_another_store_in_the_place_takes_no_receipt_of_the_one_before",
    ),
    Mutant(
        "place: the file is not checked after the commit",
        TRANSACTION,
        "if (change := self._connections.change()) is not None:  # it may",
        "if (change := None) is not None:  # it may",
        f"{TEST_SQLITE_PLACE}::test_a_commit_into_a_file_without_its_name_is_not_acknowledged[remove_folder]",
    ),
    Mutant(
        "place: the file is not checked before a read",
        STORE,
        "if (change := connections.change())",
        "if (change := None)",
        f"{TEST_SQLITE_PLACE}::test_nobody_reads_from_a_file_without_its_name[mark-remove_folder]",
    ),
    Mutant(
        "place: only the database file is checked",
        "stores/sqlite/store_file.py",
        "for name, known in zip(names, files, strict=True):",
        "for name, known in [(names[0], files[0])]:",
        f"{TEST_SQLITE_PLACE}::test_a_write_is_refused_before_it_begins[remove_log]",
    ),
    Mutant(
        "place: a replaced file is not noticed",
        "stores/sqlite/store_file.py",
        "if (found.st_dev, found.st_ino) != known:",
        "if False:",
        f"{TEST_SQLITE_PLACE}::test_a_commit_into_a_file_without_its_name_is_not_acknowledged[replace_file]",
    ),
    Mutant(
        "place: a backup is not marked",
        "stores/sqlite/backup.py",
        'target.execute("UPDATE meta SET place = ?", (COPIED,)).fetchall()',
        "pass",
        f"{TEST_SQLITE_PLACE}::test_a_backup_begins_an_epoch_even_in_the_very_inode",
    ),
    Mutant(
        "place: the noted sequence is ignored",
        STORE,
        "(last or 0) < known",
        "False",
        f"{TEST_SQLITE_PLACE}::test_a_file_that_says_less_than_was_noted_begins_an_epoch",
    ),
    Mutant(
        "place: the note is read behind the file",
        STORE,
        "                here = store_file.place_of(self.path)\n"
        "                known = max(kept.get(found.epoch, 0) for kept in (noted(here, os.environ), seen or {}))\n"
        "                ((last,),) = connection.all(LAST)",
        "                ((last,),) = connection.all(LAST)\n"
        "                here = store_file.place_of(self.path)\n"
        "                known = max(kept.get(found.epoch, 0) for kept in (noted(here, os.environ), seen or {}))",
        "tests/stores/test_sqlite_place.py::test_who_opens_a_store_while_others_write_does_not_take_it_for_a_copy",
    ),
    Mutant(
        "place: the end of an epoch is not noted",
        STORE,
        "note(self._place, {ended: sequence, epoch: sequence}, os.environ)",
        "pass",
        f"{TEST_SQLITE_PLACE}::test_a_file_of_an_earlier_epoch_begins_another",
    ),
    Mutant(
        "place: a copy that is opened again keeps its epoch",
        "engine/runtime/engine.py",
        "if self.store.is_copy and not begins_epoch:",
        "if False:",
        f"{TEST_SQLITE_PLACE}::test_another_store_in_the_place_takes_no_receipt_of_the_one_before",
    ),
    Mutant(
        "place: the log of another file is read",
        STORE,
        "store_file.put_aside(log)",
        "pass",
        f"{TEST_SQLITE_PLACE}::test_a_backup_copied_over_the_file_is_not_mixed_with_the_log_beside_it",
    ),
    Mutant(
        "place: a log that was removed is made again",
        STORE,
        "if os.path.exists(index) and (is_open_here or store_file.is_shared(index)):",
        "if False:",
        f"{TEST_SQLITE_PLACE}::test_a_log_that_was_removed_under_others_is_not_made_again",
    ),
    Mutant(
        "outbox: what is of another store goes",
        "client/outbox.py",
        "if not is_unknown(finished, outcome):",
        "if True:",
        "tests/runner/test_outbox.py::test_a_result_of_another_store_stays_in_the_outbox[default]",
    ),
    # --- the clock
    Mutant(
        "clock: a jump ahead is accepted",
        CLOCK,
        "if ahead > limits.CLOCK_AHEAD:",
        "if False:",
        on("sqlite", "test_a_writer_whose_clock_jumped_ahead_is_refused_and_nothing_is_written"),
    ),
    Mutant(
        "clock: a jump is reported and written all the same",
        TRANSACTION,
        "        if self.jump:",
        "        if False:",
        on("sqlite", "test_a_writer_whose_clock_jumped_ahead_is_refused_and_nothing_is_written"),
    ),
    Mutant(
        "clock: now does not advance while the clock is behind",
        CLOCK,
        "kept.ahead_at + max(0, at.uptime - kept.ahead_uptime)",
        "kept.ahead_at",
        on("sqlite", "test_a_clock_that_is_behind_is_never_refused_and_time_goes_on"),
    ),
    Mutant(
        "clock: one that is behind makes the right one a jump",
        CLOCK,
        "if ahead > DRIFT:",
        "if abs(ahead) > DRIFT:",
        on("sqlite", "test_a_clock_that_is_behind_does_not_make_the_right_one_a_jump"),
    ),
    Mutant(
        "clock: another boot is held to the clock of the last",
        CLOCK,
        "if kept.boot != at.boot:",
        "if not kept.boot:",
        on("sqlite", "test_another_boot_may_have_another_clock"),
    ),
    Mutant(
        "clock: claims made ahead go on",
        CLOCK,
        "task.claimed_at is not None and task.claimed_at > now",
        "False",
        on("sqlite", "test_claims_made_ahead_end_with_their_attempt_given_back"),
    ),
    Mutant(
        "clock: times that were set ahead stay",
        CLOCK,
        "{name: at - back for name",
        "{name: at for name",
        on("sqlite", "test_what_was_set_before_the_jump_stays"),
    ),
    Mutant(
        "clock: people's dates move too",
        CLOCK,
        "(_BY_PEOPLE if row.created_at > now else ())",
        "_BY_PEOPLE",
        on("sqlite", "test_what_was_set_before_the_jump_stays"),
    ),
    Mutant(
        "verify: a damaged row becomes another in the file",
        "engine/verify/spill.py",
        "return data if decoder_of(kind).decode(data) == row else None",
        "return data",
        "tests/engine/test_verifying_large.py::test_a_row_comes_back_from_the_file_as_it_was",
    ),
    Mutant(
        "clock: an earlier event is not found",
        "engine/verify/__init__.py",
        "if event.time < last.get(event.project, 0) and",
        "if False and",
        on("sqlite", "test_an_event_that_is_earlier_than_the_one_before_is_found"),
    ),
    Mutant(
        "clock: a duration counts from the beginning of time",
        "engine/verbs/create.py",
        "now + inputs.micros(seconds,",
        "0 + inputs.micros(seconds,",
        on("sqlite", "test_a_duration_counts_from_the_store_s_now"),
    ),
)
