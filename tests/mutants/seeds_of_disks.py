"""Seeded bugs in what survives power cuts, failed calls and stopped processes: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on_each

POWER = ("tests/chaos/test_powerloss.py",)
FAULTS = ("tests/chaos/test_faults.py",)
WRITING = ("tests/stores/test_sqlite_writing.py",)
STORE, PLACE, LOCK = "stores/sqlite/store.py", "stores/sqlite/store_file.py", "stores/sqlite/lock.py"
LOCAL, FAILURES, OUTBOX = "artifacts/local.py", "stores/sqlite/errors.py", "agents/runner/outbox.py"

DISKS = (
    # --- power cuts
    Mutant(
        "power: synchronous NORMAL", "stores/sqlite/connections.py", "synchronous = FULL", "synchronous = NORMAL", POWER
    ),
    Mutant("power: a new store's name is not synced", STORE, "            store_file.sync_new(self.path)\n", "", POWER),
    Mutant(
        "power: a new store's folder is not synced", PLACE, "    sync_folder(os.path.dirname(path))\n", "", POWER
    ),
    Mutant(
        "power: folders above a new store are not synced", PLACE, "                sync_folder(new)\n",
        "                pass\n", POWER,
    ),
    Mutant("power: artifact bytes are not synced", LOCAL, "            os.fsync(self._handle)\n", "", POWER),
    Mutant("power: artifact names are not synced", LOCAL, "                _sync(folder)\n", "                pass\n",
           POWER),
    Mutant("power: new artifact folders are not synced", LOCAL, "    _sync(folder.parent)\n", "", POWER),
    Mutant("power: outbox bytes are not synced", OUTBOX, "            os.fsync(file.fileno())\n", "", POWER),
    Mutant("power: the outbox folder is not synced", OUTBOX, "            sync_folder(folder)\n", "            pass\n",
           POWER),
    Mutant(
        "power: half a backup passes for one before an upgrade", STORE, 'draft = f"{target}.new"', "draft = target",
        POWER,
    ),
    # --- failed calls
    Mutant(
        "faults: a failed sync is reported as nothing done", FAILURES,
        "    if isinstance(error, apsw.IOError):\n        return OutcomeUnknown(",
        "    if False:\n        return OutcomeUnknown(", FAULTS,
    ),
    Mutant("faults: a failed read is corruption", FAILURES, "        if _is_sound(path):\n", "        if False:\n",
           WRITING),
    Mutant("faults: a connection that met a fault stays", FAILURES, "return isinstance(error, apsw.Error) and not",
           "return isinstance(error, apsw.Error) and False and not", WRITING),
    # --- stopped processes
    Mutant("lock: a queue that does not move closes the store", LOCK, "if self._pass_by():", "if False:", WRITING),
    Mutant("lock: the holder is not named", LOCK, "            self._files.sign()\n", "", WRITING),
    Mutant("lock: a pid that comes again is named", LOCK, " or (start and began != start)", "", WRITING),
    # --- undo
    Mutant("undo: what was started over is undone by half", "engine/verbs/undo.py",
           " or any(e.kind in _FINAL for e in told)", "",
           first=on_each("test_an_undone_retry_that_was_edited_is_not_undone_by_half")),
    Mutant("undo: a task in a final state is cancelled again", "engine/verbs/undo.py",
           "    if task.state not in lifecycle.FINISHED:\n        cancel_task", "    if True:\n        cancel_task",
           first=on_each("test_undoing_a_plan_cancels_each_task_once")),
)  # fmt: skip
