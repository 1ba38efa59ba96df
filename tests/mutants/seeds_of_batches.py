"""Seeded bugs in how commands of many callers become one batch."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TORN_READS = "tests/stores/test_torn_reads.py"

TEST_GATHERING = "tests/engine/test_gathering.py"
TEST_GATHERING_ENDS = "tests/engine/test_gathering_ends.py"

BATCHES = (
    Mutant(
        "batched out of a caller's order",
        "engine/runtime/batcher.py",
        "line.append(place)",
        "line.appendleft(place)",
        f"{TEST_GATHERING}::test_commands_of_one_caller_keep_their_order_and_are_in_one_batch_at_a_time[1]",
    ),
    Mutant(
        "batched into two batches of one caller at once",
        "engine/runtime/batcher.py",
        "if line is None:\n                line = self._lines",
        "if not line:\n                line = self._lines",
        f"{TEST_GATHERING}::test_a_second_batch_flies_beside_the_first_but_never_with_the_same_caller",
    ),
    Mutant(
        "batched without turns",
        "engine/runtime/batcher.py",
        "callers := turns or behind",
        "callers := behind or turns",
        f"{TEST_GATHERING}::test_callers_take_turns",
    ),
    Mutant(
        "batched into two batches of one project at once",
        "engine/runtime/batcher.py",
        "is_free = place is not None and place.where not in self._aside",
        "is_free = place is not None",
        f"{TEST_GATHERING}::test_no_two_batches_are_in_one_project",
    ),
    Mutant(
        "batched answers to the wrong callers",
        "engine/runtime/batcher.py",
        "zip(batch, answers, strict=True):\n        place.answer",
        "zip(batch, reversed(answers), strict=True):\n        place.answer",
        f"{TEST_GATHERING}::test_what_comes_while_a_batch_is_in_flight_is_the_next_batch",
    ),
    Mutant(
        "batched without bounds",
        "engine/runtime/batcher.py",
        "self._waiting >= self._most_waiting or self._bytes + place.size > self._most_bytes",
        "False",
        f"{TEST_GATHERING}::test_bytes_that_wait_are_bounded_too",
    ),
    Mutant(
        "batched for one principal",
        "engine/runtime/batcher.py",
        "_Promised(engine or self.engine, checked_command(command, principal), ",
        "_Promised(engine or self.engine, checked_command(command), ",
        f"{TEST_GATHERING}::test_every_command_runs_on_behalf_of_its_own_principal",
    ),
    Mutant(
        "batched although its caller has gone",
        "engine/runtime/batcher.py",
        "            line.remove(place)\n",
        "",
        f"{TEST_GATHERING_ENDS}::test_a_promise_can_be_cancelled_until_a_batch_has_it",
    ),
    Mutant(
        "a closed batcher accepts more",
        "engine/runtime/batcher.py",
        "            if self._is_closed:\n                raise self._closed()",
        "            pass",
        f"{TEST_GATHERING_ENDS}::test_closing_runs_what_waits_and_takes_nothing_more",
    ),
    Mutant(
        "an unknown outcome is split and done again",
        "engine/runtime/engine.py",
        "len(batch) == 1 or not error.definite or not has_begun",
        "len(batch) == 1 or not has_begun",
        f"{TEST_GATHERING}::test_an_unknown_outcome_reaches_all_of_its_transaction_and_nobody_else",
    ),
    Mutant(
        "an unavailable store is asked for every command",
        "engine/runtime/engine.py",
        "len(batch) == 1 or not error.definite or not has_begun",
        "len(batch) == 1 or not error.definite",
        f"{TEST_GATHERING}::test_a_store_that_is_away_is_asked_once_for_a_batch",
    ),
    Mutant(
        "a torn read is not run again",
        "engine/runtime/engine.py",
        "if tried == TRIES or SNAPSHOTS in self.store.features:",
        "if True:",
        f"{TORN_READS}::TestEveryReadIsTornOnce::test_the_steps_count_what_happened_and_when",
    ),
    Mutant(
        "a torn read runs again without end",
        "engine/runtime/engine.py",
        "if tried == TRIES or SNAPSHOTS in self.store.features:",
        "if tried == 10 * TRIES or SNAPSHOTS in self.store.features:",
        f"{TORN_READS}::test_a_read_that_is_torn_again_and_again_ends_with_the_conflict",
    ),
    Mutant(
        "a task that is alike to a checked one is not checked",
        "engine/verbs/create.py",
        "check = inputs.check_new_task if models[id(new)] is new else inputs.check_own",
        "check = inputs.check_new_task if models[id(new)] is new else id",
        "test_every_task_of_a_batch_is_checked",
    ),
    Mutant(
        "all tasks of a batch count as alike",
        "core/inputs.py",
        "models.append(models[-1] if own == shape else new)",
        "models.append(models[-1] if models else new)",
        "test_tasks_created_together_are_the_same_as_if_created_one_by_one",
    ),
    Mutant(
        "an event tells the idempotency key of another task",
        "engine/runtime/unit_of_work.py",
        "if row.idempotency_key is None:",
        "if row.id is None:",
        "test_tasks_created_together_are_the_same_as_if_created_one_by_one",
    ),
    Mutant(
        "a row that is not as it was loaded is written over on SQLite",
        "stores/sqlite/transaction.py",
        "if changed() != 1:",
        "if changed() > 1:",
        "tests/stores/test_sqlite.py::TestSqlite::test_a_task_that_moved_on_since_it_was_loaded_is_a_conflict[version]",
    ),
    Mutant(
        "a large text that alike tasks share is counted once",
        "engine/verbs/create.py",
        "if cap or task.sealed or is_reference(brief.spec):",
        "if cap or task.sealed:",
        "test_a_large_text_that_many_tasks_share_is_counted_for_each",
    ),
    Mutant(
        "values of rows saved together that only look equal are written as one",
        "stores/sql/codec.py",
        "is_same = are_many and all(map(is_, values, repeat(first)))",
        "is_same = are_many and values.count(first) == len(values)",
        "tests/stores/test_sqlite.py::TestSqlite"
        "::test_values_of_rows_saved_together_that_only_look_equal_are_told_apart",
    ),
    Mutant(
        "a row that is written alone among many is lost",
        "stores/sql/codec.py",
        "are_many = len(rows) > 1",
        "are_many = True",
        "tests/stores/test_postgres.py::TestPostgres::test_a_task_that_alone_is_due_is_saved_with_the_others",
    ),
    Mutant(
        "numbers of many tasks are not checked",
        "core/inputs.py",
        "return kinds == {int} and all(",
        "return True or all(",
        "test_every_task_of_a_batch_is_checked",
    ),
)
