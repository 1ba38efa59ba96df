"""Seeded bugs in the archive, in copying and in restoring: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DROPPING = ("tests/stores/test_sqlite.py", "tests/stores/test_postgres.py")
COPYING = ("tests/engine/test_copying.py",)
RESTORING = ("tests/client/test_restore.py",)
UPGRADES = ("tests/upgrades/test_upgrade.py",)
ARCHIVE = "engine/archive/mover.py"
RECALL = "engine/archive/recall.py"
COPY = "engine/project_copy.py"
RESTORE = "stores/sqlite/restore.py"

MOVING = (
    # --- upgrades
    Mutant(
        "upgrade: an SQLite step without its transaction",
        "stores/sqlite/schema.py",
        """    link.execute("BEGIN IMMEDIATE")
    try:
        link.all(migration.text)""",
        """    link.all(migration.text)
    link.execute("BEGIN IMMEDIATE")
    try:""",
        UPGRADES,
    ),
    Mutant(
        "upgrade: a PostgreSQL step without its transaction",
        "stores/postgres/schema.py",
        """                _apply(link, steps[0])""",
        """                link.run([("COMMIT", ()), (f'SET search_path TO "{schema}"', ())])
                link.script(steps[0].text)
                link.run([(RECORD, [*steps[0][:2], steps[0].checksum, steps[0].since, False])])""",
        UPGRADES,
    ),
    Mutant(
        "upgrade: no backup before it",
        "stores/sqlite/store.py",
        "                self._back_up_beside(link)\n",
        "",
        UPGRADES,
    ),
    Mutant(
        "upgrade: an older program opens a newer store",
        "stores/sql/migrations.py",
        "    if len(applied) > len(known):",
        "    if False:",
        UPGRADES,
    ),
    # --- what may go into the archive
    Mutant("archive: young tasks go", "core/archive.py", " and task.updated_at <= until", ""),
    Mutant("archive: dags go in part", ARCHIVE, "dag is None or dag.completed + dag.cancelled != dag.total", "False"),
    Mutant(
        "archive: what open tasks depend on goes",
        ARCHIVE,
        "if any(task.state not in lifecycle.FINISHED for task in below.values()):",
        "if False:",
    ),
    Mutant(
        "archive: what lies below a reopened task goes",
        ARCHIVE,
        "if any(task.state not in lifecycle.FINISHED for task in tasks):",
        "if False:",
    ),
    Mutant("archive: lineages go in part", ARCHIVE, "yield [first, *descendants(work, first)]", "yield [task]"),
    Mutant(
        "archive: one bad task keeps all",
        ARCHIVE,
        "            broken.add(task.root or id)\n            continue\n        try:",
        "            raise ValueError(id)\n        try:",
    ),
    Mutant("archive: a sweep looks at its first page only", ARCHIVE, "reached[project, state] = last", "pass"),
    # --- what it leaves behind
    Mutant("archive: events stay", ARCHIVE, "work.dropped.append((project, tuple(tasks)))", "pass"),
    Mutant("archive: usage is forgotten", ARCHIVE, "fold(work, used, 1)", "pass"),
    Mutant("archive: tracks are not counted", ARCHIVE, "_count(work, tasks.values())", "pass"),
    Mutant(
        "archive: what went events told of others is forgotten",
        ARCHIVE,
        'if not (kind in archive.OWNED and id.partition("@")[0] in tasks):',
        "if False:",
    ),
    Mutant(
        "archive: dependents are not counted down",
        ARCHIVE,
        "work.put(replace(needs, dependents=needs.dependents - by))",
        "pass",
    ),
    Mutant(
        "archive: who came back and goes again stays in the log",
        ARCHIVE,
        "for id in tasks if id in earlier for table, row, _ in",
        "for id in () for table, row, _ in",
    ),
    # --- being found
    Mutant(
        "archive: tasks are not found by id", "engine/runtime/rows.py", "if row is None and kind is Task:", "if False:"
    ),
    Mutant(
        "archive: tasks are not found by short key",
        "engine/runtime/references.py",
        "found = _archived(work, project, ref=ref, key=beginning) or _archived(work, project, key=ref)",
        "pass",
    ),
    Mutant(
        "archive: idempotency keys are given twice",
        "engine/runtime/references.py",
        "*(t for t in _archived(work, project, idempotency_key=keys) if t.id not in there)",
        "",
    ),
    Mutant(
        "archive: a circle through it is not found",
        "engine/verbs/create.py",
        "work.get(Task, project, here)  # one of the archive has its edges there",
        "pass",
    ),
    Mutant("archive: heights go through it", "engine/verbs/create.py", " or work.is_recalled(task):", ":"),
    # --- coming back
    Mutant(
        "archive: rows are added to what stays there",
        RECALL,
        "changed |= {tasks[owner] for owner in [(row.project, getattr(row, field))] if owner in tasks}",
        "pass",
    ),
    Mutant("archive: whoever is looked at comes back", RECALL, " and _is_changed(*work.versions(key))", ""),
    Mutant("archive: what came back is there twice", RECALL, "work.put(archive.emptied(kept))", "pass"),
    Mutant(
        "archive: usage of what came back counts twice", RECALL, "if isinstance(row, Usage)], -1)", "if False], -1)"
    ),
    Mutant("archive: the return is told last", RECALL, "first=True", "first=False"),
    Mutant(
        "archive: unmet is as it was", RECALL, "unmet=sum(not graph.is_met(e, states[e.needs]) for e in edges),", ""
    ),
    Mutant("archive: large values go with the first", "engine/archive/totals.py", "if body.uses > 1:", "if False:"),
    Mutant("archive: large values do not come back", RECALL, "            uses[key] += 1\n", "            pass\n"),
    Mutant(
        "archive: large values used anew are not stored",
        RECALL,
        "after.uses - before.uses if isinstance(after, Body) else 0",
        "0",
    ),
    Mutant("large values are not counted", "engine/reads/task_view.py", "uses=kept.uses + 1", "uses=kept.uses"),
    # --- going for good
    Mutant(
        "archive: pruned though something waits",
        ARCHIVE,
        'return not work.find(Edge, {"project": lineage[0]',
        'return True or not work.find(Edge, {"project": lineage[0]',
    ),
    Mutant(
        "archive: pruned though it came back", ARCHIVE, "row.out or row.archived_at > until", "row.archived_at > until"
    ),
    Mutant("archive: pruned too soon", ARCHIVE, "row.out or row.archived_at > until", "row.out"),
    Mutant("archive: pruned keys are given again", "engine/verbs/create.py", "if is_gone or key.ref", "if key.ref"),
    Mutant(
        "the last event is dropped",
        "stores/sql/statements.py",
        "'DELETE FROM {self.place} WHERE {_joined(found[0])} AND \"sequence\" + 0 < {last}'",
        "'DELETE FROM {self.place} WHERE {_joined(found[0])} AND \"sequence\" + 0 <= {last}'",
        DROPPING,
    ),
    # --- copying
    Mutant("copied under live claims", COPY, "            _refuse_while_held(old, project)\n", "", COPYING),
    Mutant(
        "copied into a project of that name",
        COPY,
        "    if new.load(Project, ((project, project),)):\n        raise CopyRefused(",
        "    if False:\n        raise CopyRefused(",
        COPYING,
    ),
    Mutant(
        "a kind is forgotten in copying",
        COPY,
        "for kind in KINDS}\n    return rows",
        "for kind in list(KINDS)[1:]}\n    return rows",
        COPYING,
    ),
    Mutant(
        "what arrives is not compared", COPY, "if _digest(old, project) != _digest(new, project):", "if False:", COPYING
    ),
    Mutant(
        "the epoch of the receipts stays",
        COPY,
        'or work.epoch in work.count(Claim, {"project": project}, "epoch")',
        "",
        COPYING,
    ),
    Mutant("others' claims end with a copy", COPY, "if alone or work.epoch in", "if True or work.epoch in", COPYING),
    Mutant(
        "claiming goes on where the project was",
        COPY,
        "        source.do(commands.StopLine(project=project, scope=LINE, reason=why))\n",
        "        pass\n",
        COPYING,
    ),
    Mutant(
        "a failed copy leaves the line stopped",
        COPY,
        "            source.do(commands.StartLine(project=project, scope=LINE))\n",
        "            pass\n",
        COPYING,
    ),
    Mutant(
        "reservations are copied",
        COPY,
        'release_reservations(work, project, work.find(Reservation, {"project": project}))',
        "pass",
        COPYING,
    ),
    # --- restoring
    Mutant(
        "restored under others' hands",
        RESTORE,
        "        if error.errno in (errno.EACCES, errno.EAGAIN):\n            _in_use(path)\n",
        "        if error.errno in (errno.EACCES, errno.EAGAIN):\n            return\n",
        RESTORING,
    ),
    Mutant("a strange schema is restored", RESTORE, "            schema.look(link, backup)\n", "", RESTORING),
    Mutant("a kept store is written over", RESTORE, "if os.path.lexists(aside):", "if False:", RESTORING),
    Mutant(
        "a strange log is read into the restored store",
        RESTORE,
        "            _refuse_log_alone(target)\n",
        "",
        RESTORING,
    ),
    Mutant(
        "the log of the kept store is lost",
        RESTORE,
        '            os.rename(f"{target}{companion}", f"{aside}{companion}")',
        '            os.unlink(f"{target}{companion}")',
        RESTORING,
    ),
    Mutant(
        "a restored store goes on in its epoch",
        "client/restore.py",
        'epoch = engine.new_epoch(f"restored from {backup}")',
        'epoch = ""',
        RESTORING,
    ),
)
