"""The power is cut at every sync: what the disk may hold then must open, verify, and have all that was acknowledged.

One process makes a store and works with it while strace records each change of a file. From that, images of the disk
are built for each moment before and after a sync or a change of names: what was not synced is dropped, kept, torn,
reordered or mixed sector by sector. The normal store opens each image. Its rows must be exactly those after the last
acknowledged step, or those after the step that was under way; backups, artifacts and the outbox must have what they
acknowledged; a command that was under way is sent again and must get its one answer. A second recording is the upgrade
of a store that the first release filled. With `--no-sync` the disk ignores syncs, and losses must be found.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from tenure.artifacts.local import LocalArtifacts
from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.engine import Engine
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tests.reliability import results
from tests.reliability.disk_images import MODES, Disk
from tests.reliability.disk_trace import Operation, Sync, Write, recorded
from tests.reliability.powerloss_work import (
    HOME,
    MARKS,
    STORE,
    SeededChance,
    digest,
    digest_of,
    make_first_schema,
    outbox_in,
)

WORK = "tests.reliability.powerloss_work"


class Moment(NamedTuple):
    """What had been acknowledged, and what was under way."""

    done: tuple[dict[str, Any], ...]
    begun: dict[str, Any] | None


class Recording:
    """The operations of one run, with its marks taken out of them."""

    def __init__(self, folder: Path, operations: list[Operation]) -> None:
        self.folder = folder
        self.operations: list[Operation] = []
        self.marks: list[tuple[int, dict[str, Any]]] = []  # after so many operations
        for operation in operations:
            if operation[0] != str(folder / MARKS):
                self.operations.append(operation)
            elif isinstance(operation, Write):
                self.marks.append((len(self.operations), msgspec.json.decode(operation.data)))
        self.answers = {mark["done"]: mark for _, mark in self.marks if "done" in mark}

    def boundaries(self) -> list[int]:
        """Numbers of operations after which the power may go: before and after each that is not a plain write."""
        found = {0, len(self.operations), *(at for at, _ in self.marks)}
        for number, operation in enumerate(self.operations):
            if not isinstance(operation, Write):
                found |= {number, number + 1}
        return sorted(found)

    def moment(self, at: int) -> Moment:
        """After so many operations; of several marks between two operations the last one promises most."""
        done: list[dict[str, Any]] = []
        begun: dict[str, Any] | None = None
        for number, mark in self.marks:
            if number > at:
                break
            if "begin" in mark:
                begun = mark
            else:
                done.append(mark)
                begun = None
        return Moment(tuple(done), begun)


class Check:
    def __init__(self, recording: Recording, image: Path) -> None:
        self.recording, self.image = recording, image
        self.verified: dict[str, list[str]] = {}  # by digest: equal rows have equal faults
        self.counts: Counter[str] = Counter()
        self.found: list[tuple[str, str]] = []

    def judge(self, moment: Moment, what: str) -> None:
        self.counts["images"] += 1
        try:
            for kind, text in self._faults(moment):
                self.found.append((kind, f"{what}: {text}"))
        except (TenureError, apsw.Error, OSError) as error:
            self.found.append(("broken", f"{what}: {type(error).__name__}: {error}"))

    def _faults(self, moment: Moment) -> list[tuple[str, str]]:
        path = self.image / STORE
        is_made = bool(moment.done)
        clock = FakeClock((moment.begun or self.recording.marks[-2][1]).get("now", 0))
        if is_made and not path.exists():
            return [("lost", "there is no store")]
        store = Sqlite(str(path), clock=clock, random=SeededChance(1).token)
        try:
            return [*self._rows(store, moment), *self._beside(moment)]
        finally:
            store.close()

    def _rows(self, store: Sqlite, moment: Moment) -> list[tuple[str, str]]:
        now = digest(store)
        allowed = {self._digest_after(moment.begun["begin"])} if moment.begun else set()
        if moment.done:
            allowed.add(moment.done[-1]["digest"])
        found = [("broken", line) for line in store.check()]
        if now not in allowed:
            earlier = [mark["done"] for mark in moment.done if mark["digest"] == now]
            last = moment.done[-1]["done"] if moment.done else 0
            if earlier:
                return [*found, ("lost", f"step {last} was acknowledged; the store is as after step {earlier[-1]}")]
            return [*found, ("half", f"the rows are not those of any moment up to step {last + 1}")]
        store.is_copy = False  # an image has another inode; the machine that lost its power has not
        engine = Engine(store, SeededChance(2))
        if now not in self.verified:
            self.verified[now] = engine.verify()
            self.counts["states"] += 1
        found += [("half", line) for line in self.verified[now]]
        if moment.begun is not None and moment.begun["command"] is not None:
            found += self._again(engine, moment.begun, was_there=now == self._digest_after(moment.begun["begin"]))
        return found

    def _digest_after(self, step: int) -> str:
        return str(self.recording.answers[step]["digest"]) if step in self.recording.answers else ""

    def _again(self, engine: Engine, begun: dict[str, Any], *, was_there: bool) -> list[tuple[str, str]]:
        """The command that was cut off, with its request id: one effect, and the answer that it had."""
        self.counts["sent again"] += 1
        self.counts["found done"] += was_there
        answer = self.recording.answers[begun["begin"]]
        outcome = engine.do(msgspec.convert(begun["command"], commands.AnyCommand))
        wrong = outcome.outcome != answer["outcome"] or (was_there and outcome.receipt != answer["receipt"])
        return [("double", f"sent again: {outcome.outcome}, not {answer['outcome']}")] if wrong else []

    def _beside(self, moment: Moment) -> list[tuple[str, str]]:
        """What was acknowledged outside of the database."""
        found = []
        artifacts = LocalArtifacts(self.image / HOME / "artifacts")
        waiting = {finished.receipt for _, finished in outbox_in(self.image).waiting()}
        for mark in moment.done:
            if "outbox" in mark and mark["outbox"] not in waiting:
                found.append(("lost", f"outbox: {mark['outbox']}"))
            if "artifact" in mark:
                try:
                    b"".join(artifacts.read(mark["artifact"]))
                except TenureError as error:
                    found.append(("lost", f"artifact of step {mark['done']}: {error}"))
            if "backup" in mark:
                found += self._backup(self.image / mark["backup"], None if "earlier" in mark else mark["digest"])
        if moment.begun is not None and moment.begun["kind"] == "upgrade":  # it was finished just now
            found += self._backup(self.image / f"{STORE}.schema-0001.backup", None)
        return found

    def _backup(self, path: Path, expected: str | None) -> list[tuple[str, str]]:
        """`expected`: the digest of its rows; None: sound, and with tasks."""
        if not path.exists():
            return [("lost", f"there is no {path.name}")]
        try:
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            try:
                sound = connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
                good = digest_of(connection) == expected if expected else connection.execute("SELECT 1 FROM task").get
            finally:
                connection.close()
        except apsw.Error as error:
            return [("lost", f"{path.name}: {error}")]
        return [] if sound and good else [("lost", f"{path.name} does not have the rows that it should")]


def record(folder: Path, *arguments: str) -> Recording:
    return Recording(folder, recorded([sys.executable, "-m", WORK, str(folder), *arguments], folder))


def wanted_places(recording: Recording, images: int, dice: random.Random) -> list[tuple[int, str]]:
    """Each boundary in each mode while there is room for that; more of them, and other places, where there is more."""
    every = [(at, mode) for at in recording.boundaries() for mode in MODES]
    if images <= len(every):
        return sorted(dice.sample(every, images))
    more = [(dice.randint(0, len(recording.operations)), dice.choice(MODES[2:])) for _ in range(images - len(every))]
    return sorted(every + more)


def cut(recording: Recording, images: int, seed: int, image: Path, base: Path, *, ignores_syncs: bool) -> Check:
    dice = random.Random(seed)
    check = Check(recording, image)
    disk = Disk(base, recording.folder, ignores_syncs=ignores_syncs)
    done = 0
    for at, mode in wanted_places(recording, images, dice):
        while done < at:
            disk.follow(recording.operations[done])
            done += 1
        before = recording.operations[at] if at < len(recording.operations) else None
        check.counts["at a sync"] += isinstance(before, Sync)
        check.counts[mode] += 1
        disk.write(image, mode, dice)
        check.judge(recording.moment(at), f"operation {at}, {mode}")
    return check


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="powerloss", description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=60, help="commands that are recorded")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--no-sync", action="store_true", help="a disk that ignores syncs: losses must be found")
    wanted = parser.parse_args(argv)
    began = time.monotonic()
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None  # an image needs no disk of its own
    print(f"seed {wanted.seed}", flush=True)
    counts: Counter[str] = Counter()
    found: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="tenure-powerloss-", dir=where) as folder:
        for name, share in (("work", 0.85), ("upgrade", 0.15)):
            root, base = Path(folder) / name, Path(folder) / f"{name}-base"
            root.mkdir()
            if name == "upgrade":
                make_first_schema(root)
            shutil.copytree(root, base)
            arguments = ("upgrade",) if name == "upgrade" else (str(wanted.seed), str(wanted.steps))
            recording = record(root, *arguments)
            print(f"{name}: {len(recording.operations)} operations, {len(recording.answers)} steps", flush=True)
            check = cut(
                recording, round(wanted.images * share), wanted.seed, Path(folder) / "image", base,
                ignores_syncs=wanted.no_sync,
            )  # fmt: skip
            counts += check.counts
            found += [(kind, f"{name}: {text}") for kind, text in check.found]
    for kind, text in found[:30]:
        print(f"{kind}: {text}")
    for name, number in sorted(counts.items()):
        print(f"{number:8} {name}")
    kinds = Counter(kind for kind, _ in found)
    numbers: dict[str, results.Figure] = {
        "images": counts["images"], "at_a_sync": counts["at a sync"], "again": counts["sent again"],
        **{kind: kinds[kind] for kind in ("lost", "half", "double", "broken")},
        "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    results.tell("powerloss", numbers, variant="no-sync" if wanted.no_sync else "")
    return 0 if bool(found) == wanted.no_sync else 1
