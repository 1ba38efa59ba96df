"""Random tamperings with a sealed log, past the program, in SQL: each is found, and no untouched log is accused.

An event is edited, removed, inserted, or exchanged with another; so are items of PostgreSQL's blocks, seals, documents
of the archive, and the leaves of what retention has deleted; or the end of the log is cut off with its seals. Then the
log is verified, with the head that was exported before. The project has events of all ways: archived before the audit
and under it, deleted by retention, signed, written in batches, still open.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tenure.core import archive
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask
from tenure.core.log_seals import LEAF
from tenure.core.records import Archived, Task, replace
from tenure.engine.archive import mover
from tenure.engine.audit import sealer
from tenure.engine.reads.query_table import read_query
from tenure.stores.port import Store
from tenure.stores.postgres.event_blocks import CLAIMED, COMPLETED, ITEMS
from tenure.testing.clock import FakeClock
from tenure.testing.engine.archive import churning
from tenure.testing.engine.histories import play
from tenure.testing.engine.signing import keyed, sent, submit_of
from tenure.testing.factories import PROJECT, Scene
from tests.reliability import results

A_WORLD = 250  # tamperings with one log
IN_SEAL = 25  # events, so that there are several seals
TABLES = ("event", "event_block", "seal", "archived", "pruned_leaves")
TEXTS = ("kind", "level", "agent", "session", "user", "address", "message", "key", "track", "task", "trace_id",
         "causation_id", "previous_state", "new_state", "id")  # fmt: skip
NUMBERS = ("time", "version", "generation")
# Columns that a block has once, and how they are changed.
IN_BLOCK = {
    "time": '"time" + 1', "kind": "kind || 'x'", "new_state": "new_state || 'x'", "epoch": "coalesce(epoch, '') || 'x'",
    "form": "form + 1", "seed": "'\\x00112233445566778899'", "first": "first + 1", "project": "project || 'x'",
}  # fmt: skip
# Columns of a block that no event of its kind shows: nothing reads them, so they carry no meaning.
_MADE = {"id", "causation_id"}  # from the seed
SILENT = {
    CLAIMED: {*_MADE, "previous_state", "said", "summary"},
    COMPLETED: {*_MADE, "epoch", "request_hash"},
}


def filled(store: Store, clock: FakeClock, seed: int, length: int = 40) -> Scene:
    """A project with something of everything."""
    dice = random.Random(seed)
    scene = Scene(store, clock, seed)
    churning(scene, history_retention=1)
    scene.finish(scene.add("before the audit"))
    mover.move_all(scene.engine, PROJECT)
    scene.do(c.AuditOn)
    sealer.seal_all(scene.engine, PROJECT)
    scene.finish(scene.add("deleted by retention"))
    archived(scene)
    scene.pass_time(hours=25)
    mover.move_all(scene.engine, PROJECT)
    assert scene.rows(sealer.Seal)
    in_batches(scene, dice)
    archived(scene)
    in_batches(scene, dice)
    play(scene, seed, length)
    if dice.randrange(2):  # in the other logs whole blocks are left
        archived(scene)
    for task in scene.rows(Task, state="ready")[:2]:
        granted = scene.try_to(c.ClaimTask, task=task.key, agent="last", session="s-last")
        if not isinstance(granted, Exception) and granted.receipt:
            scene.submit(granted.receipt)
    keyed(scene, "zed")  # at last: in a project with such a session PostgreSQL writes no more blocks
    sent(scene, submit_of(scene.take(scene.add("signed"), "zed"), data={"n": 1}))
    for turn in range(dice.randint(1, 3)):
        scene.add(f"open {turn}")
        sealer.seal_all(scene.engine, PROJECT)
    return scene


def in_batches(scene: Scene, dice: random.Random) -> None:
    """On PostgreSQL: blocks of claims and of results, some of them with several items."""
    names = [f"w{n}" for n in range(dice.randint(2, 6))]
    scene.run(*(c.Register(project=PROJECT, agent=name, session=f"s-{name}") for name in names))
    scene.run(*(c.Add(project=PROJECT, task=NewTask(title=f"batch {n}")) for n in range(8)))
    grants = scene.run(*(c.ClaimNext(project=PROJECT, agent=name, session=f"s-{name}") for name in names))
    receipts = [grant.receipt for grant in grants if not isinstance(grant, Exception) and grant.receipt]
    scene.run(*(c.Submit(project=PROJECT, receipt=receipt, data={"n": 1}) for receipt in receipts[len(names) // 2 :]))


def archived(scene: Scene) -> None:
    sealer.seal_all(scene.engine, PROJECT)
    mover.move_all(scene.engine, PROJECT)


def findings(scene: Scene, head: str | None) -> list[str]:
    return list(read_query(scene.engine, q.VerifyAudit(project=PROJECT, head=head))["findings"])


def head_of(scene: Scene) -> str:
    return str(read_query(scene.engine, q.AuditHead(project=PROJECT))["head"])


# --- the store, past the program ------------------------------------------------------------------------------


class Raw:
    """SQL on the store of a scene. Its tables are kept as they are now, and restored after each tampering."""

    def __init__(self, store: Any, folder: Path) -> None:
        self.is_postgres = store.url.startswith("postgres")
        if self.is_postgres:
            import psycopg

            self.refusals: tuple[type[Exception], ...] = (psycopg.IntegrityError,)
            self._db: Any = psycopg.connect(store.url.partition("?")[0], autocommit=True)
            self._place = store.queries.dialect.schema
            self._db.execute("DROP SCHEMA IF EXISTS keep CASCADE; CREATE SCHEMA keep")
        else:
            import sqlite3

            self.refusals = (sqlite3.IntegrityError,)
            self._db = sqlite3.connect(store.url.removeprefix("sqlite://"), isolation_level=None, timeout=30)
            self._place = "main."
            self._db.execute("ATTACH ? AS keep", [str(folder / "keep.db")])
        self.tables = TABLES if self.is_postgres else tuple(name for name in TABLES if name != "event_block")
        self._changed: set[str] = set()
        for name in self.tables:
            self._db.execute(f"CREATE TABLE keep.{name} AS SELECT * FROM {self._place}{name}")

    def run(self, text: str, *values: Any) -> list[Any]:
        """`{event}` and the like are tables; `?` are values."""
        if not text.startswith(("SELECT", "PRAGMA")):
            self._changed |= {name for name in self.tables if f"{{{name}}}" in text}
        text = text.format(**{name: self._place + name for name in TABLES})
        found = self._db.execute(text.replace("?", "%s") if self.is_postgres else text, values)
        return list(found.fetchall()) if found.description else []

    def restore(self) -> None:
        parts = ["BEGIN"]
        for name in self._changed:
            over = "OVERRIDING SYSTEM VALUE " if self.is_postgres and name == "event" else ""
            kept = f"INSERT INTO {self._place}{name} {over}SELECT * FROM keep.{name}"
            parts += [f"DELETE FROM {self._place}{name}", kept]
        parts.append("COMMIT")
        for part in ["; ".join(parts)] if self.is_postgres else parts:
            self._db.execute(part)
        self._changed.clear()

    def close(self) -> None:
        self._db.close()


class Tamperer:
    """Each method changes something that a verification must find; False: there is nothing to change in this log."""

    def __init__(self, scene: Scene, raw: Raw, dice: random.Random) -> None:
        self.scene, self.raw, self.dice = scene, raw, dice
        (self.last,) = raw.run("SELECT max(last) FROM {seal} WHERE project = ?", PROJECT)[0]
        self.events = [row[0] for row in raw.run(
            "SELECT sequence FROM {event} WHERE project = ? AND sequence <= ? ORDER BY 1", PROJECT, self.last
        )]  # fmt: skip

    def edit_an_event(self) -> bool:
        at, name = self.dice.choice(self.events), self.dice.choice((*TEXTS, *NUMBERS, "details", "patch"))
        ((value,),) = self.raw.run(f'SELECT "{name}" FROM {{event}} WHERE sequence = ?', at)
        if name in NUMBERS:
            other: Any = 7 if value is None else value + self.dice.choice((-1, 1, 1000))
        elif name in ("details", "patch"):
            other = '{"forged":true}' if name == "details" else '[["task","task_x",{"state":"completed"}]]'
        else:
            other = None if value and name in ("agent", "session", "user", "address", "trace_id") else f"{value}x"
        self.raw.run(f'UPDATE {{event}} SET "{name}" = ? WHERE sequence = ?', other, at)
        return True

    def delete_an_event(self) -> bool:
        self.raw.run("DELETE FROM {event} WHERE sequence = ?", self.dice.choice(self.events))
        return True

    def delete_several_events(self) -> bool:
        for at in self.dice.sample(self.events, self.dice.randint(2, 5)):
            self.raw.run("DELETE FROM {event} WHERE sequence = ?", at)
        return True

    def swap_two_events(self) -> bool:
        one, other = self.dice.sample(self.events, 2)
        self.raw.run("DELETE FROM {event} WHERE sequence IN (?, ?)", one, other)
        self._inserted(one, other)
        self._inserted(other, one)
        return True

    def _inserted(self, source: int, target: int, **changes: str | None) -> None:
        """The event that was at `source`, at another place."""
        names = [name for name in self._columns() if name not in ("sequence", "xid", *changes)]
        listed = ", ".join(f'"{name}"' for name in names)
        more = "".join(f', "{name}"' for name in changes)
        values = "".join(", NULL" if value is None else f", '{value}'" for value in changes.values())
        over = "OVERRIDING SYSTEM VALUE " if self.raw.is_postgres else ""
        self.raw.run(
            f"INSERT INTO {{event}} (sequence, {listed}{more}) {over}"
            f"SELECT {target}, {listed}{values} FROM keep.event WHERE sequence = ?",
            source,
        )

    def _columns(self) -> Sequence[str]:
        if not self.raw.is_postgres:
            return [row[1] for row in self.raw.run("PRAGMA main.table_info(event)")]
        text = "SELECT column_name FROM information_schema.columns WHERE table_name = 'event' AND table_schema = 'keep'"
        return [row[0] for row in self.raw.run(text)]

    def insert_an_event(self) -> bool:
        """At the place of one that is in the archive now, or that another project has."""
        taken = {row[0] for row in self.raw.run("SELECT sequence FROM {event}")}
        blocks = self.raw.run("SELECT first, last FROM {event_block}") if self.raw.is_postgres else []
        free = [
            n for n in range(self.events[0], self.last)
            if n not in taken and not any(first <= n <= last for first, last in blocks)
        ]  # fmt: skip
        if not free:
            return False
        self._inserted(self.dice.choice(self.events), self.dice.choice(free), id="evt_forged", version=None)
        return True

    def cut_the_tail(self) -> bool:
        """The last seals with all events behind the one before them."""
        seals = self.raw.run("SELECT number, last FROM {seal} WHERE project = ? ORDER BY number", PROJECT)
        logged = [n for n, (_, last) in enumerate(seals) if last]
        at = self.dice.choice(logged)
        end = seals[at - 1][1] if at else 0
        self.raw.run("DELETE FROM {seal} WHERE project = ? AND number >= ?", PROJECT, seals[at][0])
        self.raw.run("DELETE FROM {event} WHERE project = ? AND sequence > ?", PROJECT, end)
        if self.raw.is_postgres:
            self.raw.run("DELETE FROM {event_block} WHERE project = ? AND last > ?", PROJECT, end)
        return True

    def edit_a_block(self) -> bool:
        """Any column of any item. Where no event shows the column (`SILENT`), the edit must change no event."""
        if not self.raw.is_postgres:
            return False
        blocks = self.raw.run("SELECT first, kind, version FROM {event_block} WHERE project = ?", PROJECT)
        items = [(f, kind, n + 1) for f, kind, versions in blocks for n, v in enumerate(versions) if v is not None]
        if not items:
            return False
        first, kind, n = self.dice.choice(items)
        name = self.dice.choice((*ITEMS, *IN_BLOCK, "swap"))
        if name == "swap":
            others = [m for f, _, m in items if f == first and m != n]
            if not others:
                return False
            m = self.dice.choice(others)
            changed = f"numbers[{n}] = numbers[{m}], numbers[{m}] = numbers[{n}]"
        elif name in IN_BLOCK:
            changed = f'"{name}" = {IN_BLOCK[name]}'
        elif name in ("version", "generation", "numbers"):
            changed = f'"{name}"[{n}] = coalesce("{name}"[{n}], 1) + 1'
        elif name == "facts":
            changed = f"facts[{n}] = '7' || facts[{n}]"
        else:
            changed = f"\"{name}\"[{n}] = coalesce(\"{name}\"[{n}], '') || 'x'"
        before = self.scene.events(project=PROJECT) if name in SILENT[kind] else []
        self.raw.run(f"UPDATE {{event_block}} SET {changed} WHERE first = ?", first)
        if name in SILENT[kind]:
            assert self.scene.events(project=PROJECT) == before, f"{kind}: an event shows {name}"
            return False
        return True

    def delete_a_block(self) -> bool:
        if not self.raw.is_postgres:
            return False
        blocks = self.raw.run("SELECT first FROM {event_block} WHERE project = ?", PROJECT)
        if not blocks:
            return False
        self.raw.run("DELETE FROM {event_block} WHERE first = ?", self.dice.choice(blocks)[0])
        return True

    def swap_two_seals(self) -> bool:
        numbers = [row[0] for row in self.raw.run("SELECT number FROM {seal} WHERE project = ?", PROJECT)]
        if len(numbers) < 2:
            return False
        one, other = self.dice.sample(numbers, 2)
        for old, new in ((one, -1), (other, one), (-1, other)):
            text = "UPDATE {seal} SET id = ?, number = ? WHERE project = ? AND number = ?"
            self.raw.run(text, f"{new:012}", new, PROJECT, old)
        return True

    def edit_a_seal(self) -> bool:
        seals = self.raw.run("SELECT number, leaves, head FROM {seal} WHERE project = ? AND count > 0", PROJECT)
        number, leaves, head = self.dice.choice(seals)
        name = self.dice.choice(("leaves", "head", "previous", "sealed_at", "first", "last", "form", "count"))
        if name in ("leaves", "head", "previous"):
            value = bytes(leaves if name == "leaves" else head)
            at = self.dice.randrange(len(value))
            other: Any = value[:at] + bytes([value[at] ^ (1 << self.dice.randrange(8))]) + value[at + 1 :]
            self.raw.run(f"UPDATE {{seal}} SET {name} = ? WHERE project = ? AND number = ?", other, PROJECT, number)
        else:
            text = f'UPDATE {{seal}} SET "{name}" = "{name}" + 1 WHERE project = ? AND number = ?'
            self.raw.run(text, PROJECT, number)
        return True

    def delete_a_seal(self) -> bool:
        seals = self.raw.run("SELECT number FROM {seal} WHERE project = ?", PROJECT)
        self.raw.run("DELETE FROM {seal} WHERE project = ? AND number = ?", PROJECT, self.dice.choice(seals)[0])
        return True

    def delete_all_seals(self) -> bool:
        self.raw.run("DELETE FROM {seal}")
        return True

    def edit_an_archived_document(self) -> bool:
        rows = self.scene.rows(Archived)
        row = self.dice.choice(rows)
        changed = self._edited(row)
        text = "UPDATE {archived} SET document = ?, size = ?, state = ?, key = ? WHERE project = ? AND id = ?"
        self.raw.run(text, changed.document, changed.size, changed.state, changed.key, PROJECT, row.id)
        return True

    def _edited(self, row: Archived) -> Archived:
        way = self.dice.randrange(6)
        if way == 0:
            at = self.dice.randrange(1, len(row.document))
            flipped = bytes([row.document[at] ^ (1 << self.dice.randrange(8))])
            return replace(row, document=row.document[:at] + flipped + row.document[at + 1 :])
        if way == 1 and not row.out:
            return replace(row, state="completed" if row.state != "completed" else "cancelled")
        document = archive._read(row)
        events = list(document.events)
        if way == 2 and len(events) > 1:
            del events[self.dice.randrange(len(events))]
        elif way == 3 and document.rows:
            table = self.dice.choice(sorted(document.rows))
            return _with(row, rows={name: raws for name, raws in document.rows.items() if name != table})
        elif way == 4 and len(events) > 1:
            one, other = self.dice.sample(range(len(events)), 2)
            events[one], events[other] = (
                replace(events[other], sequence=events[one].sequence),
                replace(events[one], sequence=events[other].sequence),
            )
        else:
            n = self.dice.randrange(len(events))
            events[n] = replace(events[n], message=f"{events[n].message}x")
        return _with(row, events=tuple(events))

    def delete_an_archived_task(self) -> bool:
        rows = self.scene.rows(Archived)
        self.raw.run("DELETE FROM {archived} WHERE project = ? AND id = ?", PROJECT, self.dice.choice(rows).id)
        return True

    def edit_what_retention_left(self) -> bool:
        rows = self.raw.run("SELECT id, leaves FROM {pruned_leaves} WHERE project = ?", PROJECT)
        if not rows:
            return False
        id, leaves = self.dice.choice(rows)
        other = bytes(leaves)[LEAF:] if self.dice.randrange(2) else bytes(leaves)[:-1] + b"\0"
        if other == bytes(leaves):
            return False
        self.raw.run("UPDATE {pruned_leaves} SET leaves = ? WHERE project = ? AND id = ?", other, PROJECT, id)
        return True


def _with(row: Archived, **changes: Any) -> Archived:
    import msgspec

    document = msgspec.json.encode(replace(archive._read(row), **changes))
    return replace(row, size=len(document), document=archive.deflated(document))


KINDS: tuple[str, ...] = tuple(name for name in vars(Tamperer) if not name.startswith("_"))


# --- the run --------------------------------------------------------------------------------------------------


@contextmanager
def stores(kind: str) -> Iterator[Callable[[FakeClock, Path], Store]]:
    if kind == "sqlite":
        from tenure.stores.sqlite import Sqlite

        yield lambda clock, folder: Sqlite(str(folder / "store.db"), clock=clock)
        return
    from tenure.stores.postgres import Postgres
    from tests.servers.postgres import PostgresServer, connections, empty

    with PostgresServer() as server:

        def opening(clock: FakeClock, _: Path) -> Store:
            """The same schema each time, emptied: to make one takes a second."""
            empty(server.url, "tamper")
            return Postgres(server.place("tamper"), clock=clock, connections=connections(server.url))

        yield opening


def tampered(opening: Callable[[FakeClock, Path], Store], seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """So many tamperings with one log: how many of each kind, and those that were not found."""
    done: Counter[str] = Counter()
    missed: list[str] = []
    dice, clock = random.Random(seed), FakeClock()
    with tempfile.TemporaryDirectory(dir=_quick()) as name:
        store = opening(clock, Path(name))
        try:
            scene = filled(store, clock, seed)
            head = head_of(scene)
            assert findings(scene, head) == []
            scene.pass_time(seconds=1)  # a seal that is made again is another one
            raw = Raw(store, Path(name))
            while done.total() < count:
                tamperer = Tamperer(scene, raw, dice)
                kind = dice.choice(KINDS)
                try:
                    if not getattr(tamperer, kind)():
                        raw.restore()
                        continue
                except raw.refusals:  # the database keeps what is unique
                    raw.restore()
                    continue
                done[kind] += 1
                if not _found(scene, head):
                    missed.append(f"seed {seed}, tampering {done.total()}: {kind}")
                raw.restore()
            if wrong := findings(scene, head):
                missed.append(f"seed {seed}: accused after all was restored: {wrong[0]}")
            raw.close()
        finally:
            store.close()
    return done, missed


def _found(scene: Scene, head: str) -> bool:
    """A store that refuses to read what was changed has found it too."""
    from tenure.core.errors import StoreError

    try:
        return bool(findings(scene, head))
    except (StoreError, ValueError):
        return True


def untouched(opening: Callable[[FakeClock, Path], Store], seed: int) -> list[str]:
    """What the verification says of a log that nobody has touched."""
    clock = FakeClock()
    with tempfile.TemporaryDirectory(dir=_quick()) as name:
        store = opening(clock, Path(name))
        try:
            scene = filled(store, clock, seed, length=20)
            return [f"seed {seed}: {line}" for line in findings(scene, head_of(scene))]
        finally:
            store.close()


def _quick() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability tamper", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--tamperings", type=int, default=10_000)
    parser.add_argument("--untouched", type=int, default=1000, help="logs that nobody touches")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    began, sealer.IN_SEAL = time.monotonic(), IN_SEAL
    kinds: Counter[str] = Counter()
    missed: list[str] = []
    accused: list[str] = []
    with stores(options.store) as opening:
        logs = 0
        while kinds.total() < options.tamperings:
            done, not_found = tampered(opening, seed + logs, min(A_WORLD, options.tamperings - kinds.total()))
            kinds, missed, logs = kinds + done, missed + not_found, logs + 1
        for n in range(options.untouched):
            accused += untouched(opening, seed + 1_000_000 + n)
    print(f"seed {seed}:", ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items())))
    for line in (*missed[:10], *accused[:10]):
        print(line)
    numbers: dict[str, results.Figure] = {
        "tamperings": kinds.total(), "kinds": len(kinds), "logs": logs, "missed": len(missed),
        "untouched": options.untouched, "accused": len(accused), "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    results.tell("tamper", numbers, variant="postgres" if options.store == "postgres" else "")
    print("all were found, and no untouched log was accused" if not missed and not accused else "FAILED")
    return 1 if missed or accused else 0
