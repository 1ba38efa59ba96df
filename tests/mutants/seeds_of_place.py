"""Seeded bugs in how a store notices what happens to its file, and to its clock: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PLACE_CHECKS = ("tests/stores/test_sqlite_place.py",)
OUTBOX = ("tests/runner/test_outbox.py",)
STORE = "stores/sqlite/store.py"
CLOCKS = ("tests/engine/test_on_sqlite.py",)  # PostgreSQL goes by its server's clock
CLOCK = "core/clock.py"
TRANSACTION = "stores/sqlite/transaction.py"

PLACE = (
    Mutant(
        "place: no look at the file before a transaction",
        TRANSACTION,
        "if (change := self._connections.change()) is not None:\n                raise moved",
        "if (change := None) is not None:\n                raise moved",
        PLACE_CHECKS,
    ),
    Mutant(
        "place: no look at the file after the commit",
        TRANSACTION,
        "if (change := self._connections.change()) is not None:  # it may",
        "if (change := None) is not None:  # it may",
        PLACE_CHECKS,
    ),
    Mutant(
        "place: no look at the file before a question",
        STORE,
        "if (change := connections.change())",
        "if (change := None)",
        PLACE_CHECKS,
    ),
    Mutant(
        "place: only the database is looked at",
        "stores/sqlite/store_file.py",
        "for name, known in zip(names, files, strict=True):",
        "for name, known in [(names[0], files[0])]:",
        PLACE_CHECKS,
    ),
    Mutant(
        "place: a replaced file is not noticed",
        "stores/sqlite/store_file.py",
        "if (found.st_dev, found.st_ino) != known:",
        "if False:",
        PLACE_CHECKS,
    ),
    Mutant(
        "place: a backup is not marked",
        STORE,
        'target.execute("UPDATE meta SET place = ?", (COPIED,)).fetchall()',
        "pass",
        PLACE_CHECKS,
    ),
    Mutant("place: the noted sequence is ignored", STORE, "(last or 0) < known", "False", PLACE_CHECKS),
    Mutant(
        "place: the end of an epoch is not noted",
        STORE,
        "note(self._place, {ended: sequence, epoch: sequence}, os.environ)",
        "pass",
        PLACE_CHECKS,
    ),
    Mutant(
        "place: a copy that is opened again keeps its epoch",
        "engine/runtime/engine.py",
        "if self.store.is_copy and not founding:",
        "if False:",
        PLACE_CHECKS,
    ),
    Mutant("place: the log of another file is read", STORE, "store_file.put_aside(log)", "pass", PLACE_CHECKS),
    Mutant(
        "place: a log that was removed is made again",
        STORE,
        "if os.path.exists(index) and (is_open_here or store_file.is_shared(index)):",
        "if False:",
        PLACE_CHECKS,
    ),
    Mutant(
        "outbox: what is of another store goes",
        "agents/runner/outbox.py",
        "if not is_unknown(finished, outcome):",
        "if True:",
        OUTBOX,
    ),
    # --- the clock
    Mutant("clock: a jump ahead is accepted", CLOCK, "if ahead > MOST_AHEAD:", "if False:", CLOCKS),
    Mutant(
        "clock: a jump is told and written all the same",
        TRANSACTION,
        "        if self.jump:",
        "        if False:",
        CLOCKS,
    ),
    Mutant(
        "clock: now does not advance while the clock is behind",
        CLOCK,
        "kept.ahead_at + max(0, at.uptime - kept.ahead_uptime)",
        "kept.ahead_at",
        CLOCKS,
    ),
    Mutant(
        "clock: one that is behind makes the right one a jump",
        CLOCK,
        "if ahead > DRIFT:",
        "if abs(ahead) > DRIFT:",
        CLOCKS,
    ),
    Mutant(
        "clock: another boot is held to the clock of the last",
        CLOCK,
        "if kept.boot != at.boot:",
        "if not kept.boot:",
        CLOCKS,
    ),
    Mutant(
        "clock: claims made ahead go on",
        CLOCK,
        "task.claimed_at is not None and task.claimed_at > now",
        "False",
        CLOCKS,
    ),
    Mutant("clock: times that were set ahead stay", CLOCK, "{name: at - back for name", "{name: at for name", CLOCKS),
    Mutant(
        "clock: people's dates move too", CLOCK, "(_BY_PEOPLE if row.created_at > now else ())", "_BY_PEOPLE", CLOCKS
    ),
    Mutant(
        "clock: an earlier event is not found",
        "engine/verify/__init__.py",
        "if event.time < last.get(event.project, 0) and",
        "if False and",
        CLOCKS,
    ),
    Mutant(
        "clock: a duration counts from the beginning of time",
        "engine/verbs/create.py",
        "now + inputs.micros(seconds,",
        "0 + inputs.micros(seconds,",
        CLOCKS,
    ),
)
