"""What runs while every write is recorded: a new store, commands, checkpoints, a backup, artifacts, an outbox.

`python -m tests.reliability.powerloss_work FOLDER SEED COMMANDS` does it, `… FOLDER upgrade` opens a store of the first
schema instead. Before each step and after it one line goes to the file `marks`; the second one is the
acknowledgement, with a digest of all rows at that moment.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import sys
from pathlib import Path
from typing import Any, NoReturn

import apsw
import msgspec

from tenure.agents.runner.outbox import Finished, Outbox
from tenure.artifacts.local import LocalArtifacts
from tenure.core import commands
from tenure.core.commands import Command, NewTask
from tenure.engine import Engine
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock

PROJECT = "power"
MARKS = "marks"
HOME = "repository/.tenure"  # neither of which is there
STORE = f"{HOME}/tenure.db"
TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
# `place` names the inode, which an image cannot have; renewals are counted, and not remembered by their request.
NOT_OF_THE_ROWS = {"place", "renewals"}
LEASE = 60.0
OLD = Path(__file__).parents[1] / "upgrades" / "0001" / "sqlite.db.gz"


class SeededChance:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def token(self, size: int) -> bytes:
        return self.dice.randbytes(size)

    def fraction(self) -> float:
        return self.dice.random()


def digest_of(connection: apsw.Connection) -> str:
    """Of every row of every table."""
    hashed = hashlib.sha256()
    for (table,) in connection.execute(TABLES).fetchall():
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        kept = ", ".join(name for name in names if name not in NOT_OF_THE_ROWS)
        rows = connection.execute(f"SELECT {kept} FROM {table}").fetchall()
        hashed.update(f"{table} {kept}".encode())
        for row in sorted(map(repr, rows)):
            hashed.update(row.encode())
    return hashed.hexdigest()


def digest(store: Sqlite) -> str:
    link = store.connections.take()
    try:
        return digest_of(link.raw)
    finally:
        store.connections.give(link)


class Marks:
    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / MARKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.number = 0

    def begin(self, kind: str, now: int, command: Command | None = None) -> None:
        self.number += 1
        sent = None if command is None else msgspec.to_builtins(command)
        self._write({"begin": self.number, "kind": kind, "now": now, "command": sent})

    def done(self, digest: str, **known: Any) -> None:
        self._write({"done": self.number, "digest": digest, **known})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, msgspec.json.encode(line) + b"\n")


class Work:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.dice = random.Random(seed)
        self.chance = SeededChance(seed)
        self.clock = FakeClock()
        self.marks = Marks(folder)
        self.receipts: list[str] = []
        self.store: Sqlite | None = None

    def run(self, number: int) -> None:
        self.open("init")
        self.do(commands.DefineProject(project=PROJECT, request_id="project"))
        for step in range(number):
            self.clock.advance(seconds=self.dice.choice((1, 1, 1, 5, LEASE + 1)))
            self.do(self.next(step))
            if step % 12 == 5:
                self.artifact(step)
            if step % 15 == 7:
                self.checkpoint()
            if step % 20 == 11:
                self.keep(step)
            if step % 25 == 13:
                self.backup(step)
            if step % 25 == 19:
                self.close()
                self.open("reopen")
        self.close()

    def open(self, kind: str) -> None:
        self.marks.begin(kind, self.clock())
        self.store = Sqlite(str(self.folder / STORE), clock=self.clock, random=SeededChance(1).token)
        self.engine = Engine(self.store, self.chance)
        self.marks.done(digest(self.store))

    def close(self) -> None:
        """With a log over half a megabyte it is brought into the database, and cut."""
        assert self.store is not None
        self.marks.begin("close", self.clock())
        before = digest(self.store)
        self.store.close()
        self.marks.done(before)

    def next(self, step: int) -> Command:
        request = f"step-{step}"
        fate = self.dice.random()
        if fate < 0.35 or step < 3:
            body = "x" * self.dice.choice((10, 10, 6_000, 40_000))
            return commands.Add(project=PROJECT, task=NewTask(title=request, description=body), request_id=request)
        if fate < 0.6 or not self.receipts:
            return commands.ClaimNext(
                project=PROJECT, agent=f"a{step}", session=f"s{step}", lease=LEASE, request_id=request
            )
        receipt = self.dice.choice(self.receipts)
        held: dict[str, Any] = {"project": PROJECT, "receipt": receipt, "request_id": request}
        if fate < 0.7:
            return commands.Renew(**held)
        if fate < 0.78:
            return commands.SaveCheckpoint(**held, data={"at": step, "notes": "y" * 5_000})
        if fate < 0.95:
            return commands.Submit(**held, data={"by": request, "text": "z" * self.dice.choice((10, 9_000))})
        return commands.Fail(**held, error_class="task", message=request)

    def do(self, command: Command) -> None:
        assert self.store is not None
        self.marks.begin("command", self.clock(), command)
        outcome = self.engine.do(command)
        if outcome.receipt is not None:
            self.receipts = [*self.receipts[-3:], outcome.receipt]
        self.marks.done(digest(self.store), outcome=outcome.outcome, receipt=outcome.receipt)

    def checkpoint(self) -> None:
        assert self.store is not None
        self.marks.begin("checkpoint", self.clock())
        link = self.store.connections.take()
        mode = self.dice.choice((apsw.SQLITE_CHECKPOINT_PASSIVE, apsw.SQLITE_CHECKPOINT_RESTART))
        link.raw.wal_checkpoint(mode=mode)
        self.store.connections.give(link)
        self.marks.done(digest(self.store))

    def backup(self, step: int) -> None:
        assert self.store is not None
        self.marks.begin("backup", self.clock())
        name = f"backup-{step}.db"
        self.store.backup(str(self.folder / name))
        now = digest(self.store)
        self.marks.done(now, backup=name)

    def artifact(self, step: int) -> None:
        """The bytes alone: the row that names them is a command like any other."""
        assert self.store is not None
        self.marks.begin("artifact", self.clock())
        content = f"artifact {step}".encode() * self.dice.choice((1, 2_000))
        with LocalArtifacts(self.folder / HOME / "artifacts").begin(largest=1 << 20) as writing:
            writing.write(content)
            kept = writing.keep()
        self.marks.done(digest(self.store), artifact=kept.digest)

    def keep(self, step: int) -> None:
        assert self.store is not None
        self.marks.begin("outbox", self.clock())
        receipt = f"receipt-{step}"
        outbox_in(self.folder).put(
            Finished(what="submit", project=PROJECT, key="P-1", receipt=receipt, data={"step": step})
        )
        self.marks.done(digest(self.store), outbox=receipt)


def outbox_in(folder: Path) -> Outbox:
    """The outbox of the user whose state folder lies in `folder`, wherever that was copied to."""
    # The folder below the temporary one, where a file goes if the first cannot be written, lies in `folder` too.
    environ = {"TENURE_STATE": str(folder / HOME / "state"), "TMPDIR": str(folder / HOME / "tmp")}
    return Outbox(str(folder / HOME), STORE, environ)


def upgrade(folder: Path) -> None:
    """A store of the first schema, which lies there, is opened by this version."""
    clock = FakeClock()
    clock.advance(seconds=3600)
    marks = Marks(folder)
    marks.begin("upgrade", clock())
    store = Sqlite(str(folder / STORE), clock=clock)
    marks.done(digest(store), backup=f"{STORE}.schema-0001.backup", earlier=True)
    store.close()


def make_first_schema(folder: Path) -> None:
    """A store that the first release filled, as it left it."""
    (folder / HOME).mkdir(mode=0o700, parents=True)
    (folder / STORE).write_bytes(gzip.decompress(OLD.read_bytes()))


def main(argv: list[str]) -> NoReturn:
    folder = Path(argv[0])
    if argv[1] == "upgrade":
        upgrade(folder)
    else:
        Work(folder, int(argv[1])).run(int(argv[2]))
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
