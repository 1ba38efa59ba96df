"""The stores that are measured: made, filled, used, checked."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.raw import Raw, Script, Traced, trace, traced_connections
from tenure.core import commands, ids
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.records import Brief, Claim, Result, Row, Task, Track, replace
from tenure.engine import Context, Engine
from tenure.stores.open_store import open_store
from tenure.stores.port import Change

PROJECT = "bench"
TITLE = "Measure what a claim costs"
RESULT = {"ok": True, "files": ["src/one.py", "src/two.py"], "tests": 42}
AGENTS = 100  # as many claims as may be held at once, each by an agent that holds nothing else
BY_ENGINE = 100_000  # more than that is filled by rows: see `fill`


class WrongAnswer(Exception):
    """The measured run had a wrong result."""


class Chance:
    token = staticmethod(os.urandom)
    fraction = staticmethod(random.random)


def open_engine(path: Path) -> Engine:
    return Engine(open_store(str(path)), Chance(), Context(pause=time.sleep))


def request_id() -> str:
    return os.urandom(16).hex()


def claim_next(agent: int) -> commands.ClaimNext:
    return commands.ClaimNext(
        project=PROJECT, agent=f"agent-{agent}", session=f"session-{agent}", request_id=request_id()
    )


def submit(receipt: str) -> commands.Submit:
    return commands.Submit(project=PROJECT, receipt=receipt, data=RESULT, summary="done", request_id=request_id())


def check(answers: list[Any], wanted: str) -> None:
    for answer in answers:
        if not isinstance(answer, Outcome) or answer.outcome != wanted:
            raise WrongAnswer(f"{wanted} was expected, not {answer!r}")


# --- filling ------------------------------------------------------------------------------------------------


def add(engine: Engine, count: int) -> None:
    for start in range(0, count, 500):
        new = commands.NewTask(title=TITLE)
        batch = [commands.Add(project=PROJECT, task=new)] * min(500, count - start)
        check(engine.run(batch), "CREATED")


def fill(engine: Engine, count: int, how: str) -> str:
    """`count` ready tasks in a new project: through the engine, or as rows of the very shape that the engine makes.

    A million takes the engine about four minutes and the store less than two.
    """
    engine.do(commands.DefineProject(project=PROJECT))
    if how == "engine" or (how == "auto" and count <= BY_ENGINE):
        add(engine, count)
        return "engine"
    add(engine, 1)
    with engine.store.begin("local", write=False) as tx:
        models = tx.find(Task, {"project": PROJECT})
    multiply(engine, models, count - 1)
    return "rows"


def multiply(engine: Engine, models: Sequence[Task], count: int) -> None:
    """Save `count` copies of each of these tasks, with their briefs and events, through the store's port.

    The models are of one track and have the sequences from 1 on.
    """
    for model in models:
        _multiply(engine, model, count, len(models))


def _multiply(engine: Engine, task: Task, count: int, step: int) -> None:
    with engine.store.begin("local", write=False) as tx:
        (brief,) = tx.load(Brief, ((PROJECT, task.id),))
        (track,) = tx.load(Track, ((PROJECT, task.track),))
        (event,) = tx.events({"project": PROJECT, "task": task.id})
    name = task.id.removeprefix("task_")
    models = [msgspec.json.encode(row).decode() for row in (task, brief, replace(event, sequence=0))]
    kinds: list[type[Any]] = [Task, Brief, Event]
    readers = [msgspec.json.Decoder(kind) for kind in kinds]
    ids_of = ids.IdMaker(task.created_at + 1_000_000, os.urandom(ids.IdMaker.RANDOM_BYTES))
    for start in range(0, count, 5000):
        changes, events = [], []
        for n in range(start, min(start + 5000, count)):
            sequence = task.sequence + (1 + n) * step
            own = ids_of.next("").removeprefix("_")
            ref = ids.ref_of(task.track, sequence)
            made = [
                read.decode(
                    model.replace(name, own)
                    .replace(task.ref, ref)
                    .replace(f'"sequence":{task.sequence},', f'"sequence":{sequence},')
                )
                for read, model in zip(readers, models, strict=True)
            ]
            changes += [Change(None, made[0]), Change(None, made[1])]
            events.append(replace(made[2], id=f"evt_{own}"))
        after = replace(track, last_sequence=track.last_sequence + len(events))
        with engine.store.begin("local", write=True) as tx:
            tx.save([*changes, Change(track, after)])
            tx.append(events)
        track = after


# --- one size -----------------------------------------------------------------------------------------------


class Scripts(NamedTuple):
    claim: Script
    submit: Script
    claim_traced: Traced
    submit_traced: Traced


def read_scripts(folder: Path) -> Scripts:
    """The statements of a claim and of a submit by an agent that is known already and holds nothing."""
    with traced_connections() as lines:
        engine = open_engine(folder / "traced.db")
        fill(engine, 2, "engine")
        check([engine.do(submit(engine.do(claim_next(0)).receipt or ""))], "ACCEPTED")
        asked = claim_next(0)
        claimed, grant = trace(engine, lines, asked)
        handed = submit(grant.receipt)
        submitted, accepted = trace(engine, lines, handed)
        check([grant], "GRANTED")
        check([accepted], "ACCEPTED")
        engine.store.close()
    names = {"id": grant.task["id"].removeprefix("task_"), "ref": grant.task["ref"]}
    return Scripts(
        Script(claimed, names | {"request": asked.request_id or ""}),
        Script(submitted, names | {"request": handed.request_id or ""}),
        claimed,
        submitted,
    )


class Pitch:
    """One size: our store and a copy of it for the raw driver, both kept at about as many ready tasks."""

    def __init__(self, folder: Path, size: int, how: str, scripts: Scripts) -> None:
        self.size = size
        self.path = folder / f"ours-{size}.db"
        began = time.monotonic()
        engine = open_engine(self.path)
        self.filled_by = fill(engine, size, how)
        self.seconds_to_fill = time.monotonic() - began
        with engine.store.begin("local", write=False) as tx:
            (lane,) = tx.lanes(PROJECT)
        engine.store.close()
        _settle_file(self.path)
        other = folder / f"raw-{size}.db"
        shutil.copyfile(self.path, other)
        self.engine = open_engine(self.path)
        self.raw = Raw(str(other), PROJECT, lane, scripts.claim, scripts.submit)
        self.granted: list[str] = []
        self.accepted = 0
        self.raw_claimed: list[str] = []

    def claim_ours(self, count: int, batch: int) -> list[str]:
        """`count` claims in transactions of `batch`, each by another agent; returns their receipts."""
        outcomes: list[Any] = []
        for start in range(0, count, batch):
            outcomes += self.engine.run([claim_next(n) for n in range(start, start + batch)])
        check(outcomes, "GRANTED")
        self.granted += [o.task["id"] for o in outcomes]
        return [o.receipt for o in outcomes]

    def submit_ours(self, receipts: list[str], batch: int) -> None:
        outcomes: list[Any] = []
        for start in range(0, len(receipts), batch):
            outcomes += self.engine.run([submit(r) for r in receipts[start : start + batch]])
        check(outcomes, "ACCEPTED")
        self.accepted += len(outcomes)

    def claim_raw(self, count: int, batch: int) -> list[dict[str, str]]:
        held: list[dict[str, str]] = []
        for _ in range(0, count, batch):
            held += self.raw.claim(batch)
        self.raw_claimed += [facts["id"] for facts in held]
        return held

    def submit_raw(self, held: list[dict[str, str]], batch: int) -> None:
        for start in range(0, len(held), batch):
            self.raw.submit(held[start : start + batch])

    def refill(self, count: int) -> None:
        with self.engine.store.begin("local", write=False) as tx:
            (last,) = tx.find(Task, {"project": PROJECT}, order="-id", limit=1)
        add(self.engine, count)
        self.raw.refill(str(self.path), last.id)

    def verify(self) -> None:
        """No task is claimed twice, and every acknowledged change is stored, on both sides."""
        where = {"project": PROJECT}
        with self.engine.store.begin("local", write=False) as tx:
            found = {
                "claims": _number(tx, Claim, where),
                "tasks completed": tx.count(Task, {**where, "state": "completed"}, "state").get("completed", 0),
                "results": _number(tx, Result, {**where, "accepted": True}),
                "tasks with a result": len({r.task for r in tx.find(Result, where)}),
            }
        for what, number in found.items():
            if number != self.accepted:
                raise WrongAnswer(f"{self.size}: {number} {what}, {self.accepted} accepted submits")
        if len(set(self.granted)) != len(self.granted):
            raise WrongAnswer(f"{self.size}: a task was claimed twice")
        ((claims, results, events),) = self.raw.ask(
            "SELECT (SELECT count(*) FROM claim), (SELECT count(*) FROM result WHERE accepted = 1),"
            " (SELECT count(*) FROM event WHERE kind = 'task.completed')"
        )
        if len({claims, results, events, len(self.raw_claimed), len(set(self.raw_claimed))}) != 1:
            raise WrongAnswer(f"{self.size}: the raw side has {claims} claims, {results} results, {events} events")

    def close(self) -> None:
        self.engine.store.close()
        self.raw.close()


def _number(tx: Any, kind: type[Row], where: dict[str, Any]) -> int:
    return int(tx.tally(kind, where, 1 << 40))


def _settle_file(path: Path) -> None:
    """Everything of the write-ahead log into the file, so that it can be copied."""
    import apsw

    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


SLOW = 3  # times the fastest sync of the run
ENOUGH = 3  # rounds
TELLING = 500  # µs of a sync: beside longer ones our own cost does not show


def fast_rounds(syncs: Sequence[float]) -> list[int]:
    """The rounds that count, by what a sync of the disk took in each.

    A slow disk flatters us: beside a sync of 4 ms nothing else counts, and every ratio nears 1. Some disks change their
    speed forty-fold within seconds, so rounds with a slow one are left out as long as enough others are there.
    """
    fast = [n for n, sync in enumerate(syncs) if sync <= SLOW * min(syncs)]
    return fast if len(fast) >= ENOUGH else list(range(len(syncs)))


def sync_cost(folder: Path) -> float:
    """Median seconds of an fdatasync after a page was appended: what no durable commit can be faster than."""
    times = []
    handle = os.open(folder / "sync", os.O_CREAT | os.O_RDWR)
    try:
        for n in range(20):
            os.pwrite(handle, b"x" * 4096, n * 4096)
            began = time.perf_counter()
            os.fdatasync(handle)
            times.append(time.perf_counter() - began)
    finally:
        os.close(handle)
    return statistics.median(times)
