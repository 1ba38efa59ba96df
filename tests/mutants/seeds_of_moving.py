"""Seeded bugs in the archive, in copying and in restoring."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_RESTORING = "tests/client/test_restore.py"
TEST_COPYING = "tests/engine/test_copying.py"
TEST_UPGRADE = "tests/upgrades/test_upgrade.py"

ARCHIVE = "engine/archive/mover.py"
RECALL = "engine/archive/recall.py"
COPY = "engine/project_copy.py"
RESTORE = "stores/sqlite/backup.py"

MOVING = (
    # --- upgrades
    Mutant(
        "upgrade: an SQLite step without its transaction",
        "stores/sqlite/schema.py",
        """    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.all(migration.text)""",
        """    connection.all(migration.text)
    connection.execute("BEGIN IMMEDIATE")
    try:""",
        f"{TEST_UPGRADE}::test_an_upgrade_that_is_cut_off_leaves_the_old_store_whole[0001-sqlite]",
    ),
    Mutant(
        "upgrade: a PostgreSQL step without its transaction",
        "stores/postgres/schema.py",
        """        _apply(connection, steps[0])""",
        """        connection.run([("COMMIT", ()), (f'SET search_path TO "{schema}"', ())])
        connection.script(steps[0].text)
        connection.run([(RECORD, [*steps[0][:2], steps[0].checksum, steps[0].since, False])])""",
        f"{TEST_UPGRADE}::test_an_upgrade_that_is_cut_off_leaves_the_old_store_whole[0001-postgres]",
    ),
    Mutant(
        "upgrade: no backup before it",
        "stores/sqlite/store.py",
        "                self._back_up_beside(connection)\n",
        "",
        f"{TEST_UPGRADE}::test_an_sqlite_store_is_backed_up_beside_itself_first",
    ),
    Mutant(
        "upgrade: an older program opens a newer store",
        "stores/sql/migrations.py",
        "    if len(applied) > len(known):",
        "    if False:",
        f"{TEST_UPGRADE}::test_an_older_program_refuses_the_upgraded_store[0001-sqlite]",
    ),
    Mutant(
        "former names: the log is read by today's names alone",
        "core/former_names.py",
        "_RENAMED.get(name, name): value",
        "name: value",
        (
            "tests/stores/test_former_rows.py::test_on_sqlite",
            "tests/upgrades/test_upgrade.py::test_every_promise_holds_afterwards_and_the_log_gives_the_tables_back",
        ),
    ),
    Mutant(
        "former names: archived tasks are read by today's names alone",
        "core/archive.py",
        "if kind is Task:",
        "if kind is Claim:",
        "tests/stores/test_former_rows.py::test_an_archived_task_is_read_by_the_names_it_was_written_with",
    ),
    # --- what may go into the archive
    Mutant(
        "archive: young tasks go",
        "core/archive.py",
        " and task.updated_at <= until",
        "",
        "test_a_task_goes_by_when_it_was_last_touched_not_by_when_it_was_made",
    ),
    Mutant(
        "archive: dags go in part",
        ARCHIVE,
        "dag is None or dag.completed + dag.cancelled != dag.total",
        "False",
        "test_a_dag_goes_when_all_of_it_is_finished",
    ),
    Mutant(
        "archive: what open tasks depend on goes",
        ARCHIVE,
        "if any(task.state not in lifecycle.FINISHED for task in below.values()):",
        "if False:",
        "test_what_something_open_depends_on_stays",
    ),
    Mutant(
        "archive: what lies below a reopened task goes",
        ARCHIVE,
        "if any(task.state not in lifecycle.FINISHED for task in tasks):",
        "if False:",
        "test_what_was_finished_below_a_task_that_was_reset_stays",
    ),
    Mutant(
        "archive: lineages go in part",
        ARCHIVE,
        "yield [first, *descendants(work, first)]",
        "yield [task]",
        "test_a_lineage_goes_whole_or_stays_whole",
    ),
    Mutant(
        "archive: one bad task keeps all",
        ARCHIVE,
        "            broken.add(task.root or id)\n            continue\n        try:",
        "            raise ValueError(id)\n        try:",
        "test_one_that_cannot_be_moved_keeps_nobody_else",
    ),
    Mutant(
        "archive: a sweep looks at its first page only",
        ARCHIVE,
        "reached[project, state] = last",
        "pass",
        "test_pages_that_must_stay_do_not_hide_what_lies_behind_them",
    ),
    # --- what it leaves behind
    Mutant(
        "archive: events stay",
        ARCHIVE,
        "work.dropped.append((project, tuple(tasks)))",
        "pass",
        "test_counts_by_state_and_track_stay_right",
    ),
    Mutant(
        "archive: usage is forgotten",
        ARCHIVE,
        "fold(work, used, 1)",
        "pass",
        "test_usage_of_archived_tasks_stays_in_every_total",
    ),
    Mutant(
        "archive: tracks are not counted",
        ARCHIVE,
        "_count(work, tasks.values())",
        "pass",
        "test_counts_by_state_and_track_stay_right",
    ),
    Mutant(
        "archive: what archived events say of other tasks is lost",
        ARCHIVE,
        'if not (kind in archive.OWNED and id.partition("@")[0] in tasks):',
        "if False:",
        "test_what_the_log_told_of_others_is_told_again",
    ),
    Mutant(
        "archive: dependents are not counted down",
        ARCHIVE,
        "work.put(replace(needs, dependents=needs.dependents - by))",
        "pass",
        "test_an_archived_task_is_shown_as_it_was_and_marked",
    ),
    Mutant(
        "archive: who came back and goes again stays in the log",
        ARCHIVE,
        "for id in tasks if id in earlier for table, row, _ in",
        "for id in () for table, row, _ in",
        "test_no_answer_depends_on_whether_tasks_were_archived[40]",
    ),
    # --- being found
    Mutant(
        "archive: tasks are not found by id",
        "engine/runtime/rows.py",
        "if row is None and kind is Task:",
        "if False:",
        "test_a_circle_through_the_archive_is_found",
    ),
    Mutant(
        "archive: tasks are not found by short key",
        "engine/runtime/rows.py",
        "found = _archived(work, project, ref=ref, key=beginning) or _archived(work, project, key=ref)",
        "pass",
        "test_no_answer_depends_on_whether_tasks_were_archived[49]",
    ),
    Mutant(
        "archive: idempotency keys are given twice",
        "engine/runtime/rows.py",
        "*(t for t in _archived(work, project, idempotency_key=keys) if t.id not in there)",
        "",
        "test_the_same_idempotency_key_gives_the_archived_task",
    ),
    Mutant(
        "archive: a cycle through it is not found",
        "engine/verbs/create.py",
        "work.get(Task, project, here)  # an archived task has its edges in the archive",
        "pass",
        "test_a_circle_through_the_archive_is_found",
    ),
    Mutant(
        "archive: heights go through it",
        "engine/verbs/create.py",
        " or work.is_recalled(task):",
        ":",
        "test_a_circle_through_the_archive_is_found",
    ),
    # --- coming back
    Mutant(
        "archive: rows are added to what stays there",
        RECALL,
        "changed |= {tasks[owner] for owner in [(row.project, getattr(row, field))] if owner in tasks}",
        "pass",
        "test_what_a_task_may_cost_goes_into_the_archive_with_it_and_comes_back",
    ),
    Mutant(
        "archive: a read brings a task back",
        RECALL,
        " and _is_changed(*work.versions(key))",
        "",
        "test_a_circle_through_the_archive_is_found",
    ),
    Mutant(
        "archive: what came back is there twice",
        RECALL,
        "work.put(archive.emptied(kept))",
        "pass",
        "test_what_came_back_is_not_pruned",
    ),
    Mutant(
        "archive: usage of what came back counts twice",
        RECALL,
        "if isinstance(row, Usage)], -1)",
        "if False], -1)",
        "test_what_a_task_may_cost_goes_into_the_archive_with_it_and_comes_back",
    ),
    Mutant(
        "archive: the event of the return comes last",
        RECALL,
        "first=True",
        "first=False",
        "test_a_circle_through_the_archive_is_found",
    ),
    Mutant(
        "archive: unmet is as it was",
        RECALL,
        "unmet=sum(not graph.is_met(e, states[e.needs]) for e in edges),",
        "",
        "test_one_that_comes_back_waits_for_what_has_opened_since",
    ),
    Mutant(
        "archive: large values go with the first",
        "engine/archive/totals.py",
        "if body.uses > 1:",
        "if False:",
        "test_large_values_go_along_and_stay_for_whoever_else_refers_to_them",
    ),
    Mutant(
        "archive: large values do not come back",
        RECALL,
        "            uses[key] += 1\n",
        "            pass\n",
        "test_checked_tasks_go_to_the_archive_and_come_back_whole",
    ),
    Mutant(
        "archive: large values used again are not stored",
        RECALL,
        "after.uses - before.uses if isinstance(after, Body) else 0",
        "0",
        "test_a_large_value_of_the_archive_that_is_used_anew_is_stored",
    ),
    Mutant(
        "large values are not counted",
        "engine/reads/task_view.py",
        "uses=kept.uses + 1",
        "uses=kept.uses",
        "test_a_large_value_of_the_archive_that_is_used_anew_is_stored",
    ),
    # --- going for good
    Mutant(
        "archive: pruned though something waits",
        ARCHIVE,
        'return not work.find(Edge, {"project": lineage[0]',
        'return True or not work.find(Edge, {"project": lineage[0]',
        "test_what_something_still_waits_for_is_not_pruned",
    ),
    Mutant(
        "archive: pruned though it came back",
        ARCHIVE,
        "row.out or row.archived_at > until",
        "row.archived_at > until",
        "test_what_came_back_is_not_pruned",
    ),
    Mutant(
        "archive: pruned too soon",
        ARCHIVE,
        "row.out or row.archived_at > until",
        "row.out",
        "test_the_time_in_the_archive_counts_from_when_it_went_there",
    ),
    Mutant(
        "archive: pruned keys are given again",
        "engine/verbs/create.py",
        "if is_gone or key.ref",
        "if key.ref",
        "test_after_its_time_the_row_goes_and_leaves_counts",
    ),
    Mutant(
        "the last event is dropped",
        "stores/sql/statements.py",
        "'DELETE FROM {self.place} WHERE {joined(clauses)} AND \"sequence\" + 0 < {last}'",
        "'DELETE FROM {self.place} WHERE {joined(clauses)} AND \"sequence\" + 0 <= {last}'",
        "tests/stores/test_sqlite.py::TestSqlite::test_the_last_event_stays_and_sequences_go_on_from_it",
    ),
    Mutant(
        "PostgreSQL: the last event is dropped",
        "stores/postgres/migrations/0021_guarded_log.sql",
        "AND e.sequence + 0 < v_last;",
        "AND e.sequence + 0 <= v_last;",
        "tests/stores/test_postgres.py::TestPostgres::test_the_last_event_stays_and_sequences_go_on_from_it",
    ),
    Mutant(
        "PostgreSQL: the last event is dropped from its block",
        "stores/postgres/migrations/0021_guarded_log.sql",
        " AND gone.at < v_last",
        "",
        "tests/stores/test_postgres_blocks.py::test_what_is_dropped_leaves_its_neighbours",
    ),
    # --- copying
    Mutant(
        "copied under live claims",
        COPY,
        "            _refuse_while_held(old, project)\n",
        "",
        f"{TEST_COPYING}::test_live_claims_refuse_the_copy_and_are_named",
    ),
    Mutant(
        "copied into a project of that name",
        COPY,
        "    if new.load(Project, ((project, project),)):\n        raise CopyRefused(",
        "    if False:\n        raise CopyRefused(",
        f"{TEST_COPYING}::test_a_project_of_that_name_is_never_mixed_with",
    ),
    Mutant(
        "a kind is forgotten in copying",
        COPY,
        "for kind in copied_kinds()}\n    return rows",
        "for kind in copied_kinds()[1:]}\n    return rows",
        f"{TEST_COPYING}::test_rows_of_every_kind_are_copied_whatever_kinds_there_will_be",
    ),
    Mutant(
        "what arrives is not compared",
        COPY,
        "if digest(old, (project,), where) != digest(new, (project,), where):",
        "if False:",
        f"{TEST_COPYING}::test_a_row_that_arrives_otherwise_is_noticed",
    ),
    Mutant(
        "the epoch of the receipts stays",
        COPY,
        'or work.epoch in work.count(Claim, {"project": project}, "epoch")',
        "",
        f"{TEST_COPYING}::test_an_epoch_that_old_receipts_know_ends_with_their_arrival",
    ),
    Mutant(
        "others' claims end with a copy",
        COPY,
        "if alone or work.epoch in",
        "if True or work.epoch in",
        f"{TEST_COPYING}::test_others_in_the_store_it_goes_to_are_not_disturbed",
    ),
    Mutant(
        "claiming goes on where the project was",
        COPY,
        "        source.do(commands.StopLine(project=project, scope=LINE, reason=why))\n",
        "        pass\n",
        f"{TEST_COPYING}::test_nobody_goes_on_by_mistake_where_the_project_was",
    ),
    Mutant(
        "a failed copy leaves the line stopped",
        COPY,
        "            source.do(commands.StartLine(project=project, scope=LINE))\n",
        "            pass\n",
        f"{TEST_COPYING}::test_live_claims_refuse_the_copy_and_are_named",
    ),
    Mutant(
        "reservations are copied",
        COPY,
        'release_reservations(work, project, work.find(Reservation, {"project": project}))',
        "pass",
        f"{TEST_COPYING}::test_reservations_end_with_the_move",
    ),
    # --- restoring
    Mutant(
        "restored while others use it",
        RESTORE,
        "        if error.errno in (errno.EACCES, errno.EAGAIN):\n            _in_use(path)\n",
        "        if error.errno in (errno.EACCES, errno.EAGAIN):\n            return\n",
        f"{TEST_RESTORING}::test_a_damaged_store_that_others_have_open_is_left_alone",
    ),
    Mutant(
        "a strange schema is restored",
        RESTORE,
        "            store_file.look(connection, backup)\n",
        "",
        f"{TEST_RESTORING}::test_what_is_no_sound_backup_of_ours_is_refused_and_the_store_untouched",
    ),
    Mutant(
        "a kept store is written over",
        RESTORE,
        "if os.path.lexists(aside):",
        "if False:",
        f"{TEST_RESTORING}::test_a_name_that_is_taken_is_not_written_over",
    ),
    Mutant(
        "a strange log is read into the restored store",
        RESTORE,
        "            _refuse_log_alone(target)\n",
        "",
        f"{TEST_RESTORING}::test_a_log_without_its_database_is_never_mixed_with_the_restored_one",
    ),
    Mutant(
        "the log of the kept store is lost",
        RESTORE,
        '            os.rename(f"{target}{companion}", f"{aside}{companion}")',
        '            os.unlink(f"{target}{companion}")',
        f"{TEST_RESTORING}::test_a_damaged_store_is_replaced_and_kept_as_it_is",
    ),
    Mutant(
        "a restored store goes on in its epoch",
        "client/restore.py",
        'epoch = engine.new_epoch(f"restored from {backup}")',
        'epoch = ""',
        f"{TEST_RESTORING}::test_the_backup_is_the_store_and_its_live_claims_have_ended",
    ),
    Mutant(
        "archive: what has gone still counts for the place of the task above",
        ARCHIVE,
        "            lower_height(work, needs)\n",
        "",
        "test_what_is_below_a_task_no_longer_counts_for_its_place_once_it_has_gone",
    ),
    Mutant(
        "copy: a content of another size counts as there",
        COPY,
        "if new.size(row.id) == row.size:",
        "if new.size(row.id) is not None:",
        f"{TEST_COPYING}::test_a_content_that_is_cut_short_there_is_copied_whole",
    ),
)
