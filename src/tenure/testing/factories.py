"""An engine to play with: a store, a clock that is moved by hand, chance that repeats, and short words for commands.

scene = Scene(Memory(clock=clock), clock)
key = scene.add("Write the parser")
receipt = scene.take(key, "ann")
assert scene.do(Submit, receipt=receipt, data="done").outcome == "ACCEPTED"
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from tenure.core import commands as c
from tenure.core import records
from tenure.core.claims import claim_id
from tenure.core.commands import Command, NewTask, Principal
from tenure.core.errors import TenureError
from tenure.core.events import Event
from tenure.core.ids import Receipt, parse_receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import KINDS, Claim, Result, Row, Task, replace
from tenure.engine import Answer, Context, Engine
from tenure.engine.runtime.effects import Report, settle_due
from tenure.engine.runtime.rows import task_named
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import KeySource
from tenure.sealing.signing import SEED_BYTES, SigningKey
from tenure.stores.port import Change, Store, Transaction
from tenure.testing.clock import FakeClock
from tenure.testing.secret_watch import WatchedSealer

PROJECT = "p"
ID_BYTES = 10
AGENT = Principal(role="agent", agent="ann")
MEMBER = Principal(role="member", user="mia")
OWNER = Principal(role="owner", user="olaf")
# Engines of a scene seal secrets under this master key.
SECRETS = Context(
    sealer=Cipher(KeySource({"TENURE_MASTER_KEY": "5a" * 32})), signer=lambda: SigningKey(b"\x5a" * SEED_BYTES)
)


class Dice:
    """Chance that gives the same numbers each time; `next_fraction` is what the next roll shows."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.rolls = 0
        self.next_fraction = 0.5

    def token(self, size: int) -> bytes:
        """Numbers for ids only grow, so that what is made later sorts later, in one transaction or in two."""
        self.rolls += 1
        if size == ID_BYTES:
            return (self.rolls << 48).to_bytes(size, "big")
        return hashlib.shake_256(f"{self.seed}:{self.rolls}".encode()).digest(size)

    def fraction(self) -> float:
        return self.next_fraction


class Scene:
    """One project on one store. Every verb is a command on the engine; looks are settled and write nothing."""

    def __init__(self, store: Store, clock: FakeClock, seed: int = 0, context: Context = SECRETS) -> None:
        self.store, self.clock, self.dice = store, clock, Dice(seed)
        self.sealer = None if context.sealer is None else WatchedSealer(context.sealer)
        self.answers: list[Answer] = []  # everything that was returned to a caller: see `testing/secret_watch.py`
        self.engine = Engine(store, self.dice, msgspec.structs.replace(context, sealer=self.sealer))
        self.broken = False  # a test that damages rows says so, and is not verified at its end
        self.engine.run((c.DefineProject(project=PROJECT),), OWNER)

    # --- commands ---

    def do(self, kind: type[Command], /, *, by: Principal = OWNER, **fields: Any) -> Outcome:
        """The outcome of one command; its error is raised."""
        answer = self.try_to(kind, by=by, **fields)
        if isinstance(answer, TenureError):
            raise answer
        return answer

    def try_to(self, kind: type[Command], /, *, by: Principal = OWNER, **fields: Any) -> Answer:
        """The outcome, or the error as a value."""
        (answer,) = self.run(kind(**{"project": PROJECT, **fields}), by=by)
        return answer

    def run(self, *batch: Command, by: Principal = OWNER) -> list[Answer]:
        answers = self.engine.run(batch, by)
        self.answers += answers
        return answers

    def know(self, *agents: str) -> Scene:
        """Register agents, so that mail and offers may name them."""
        for agent in agents:
            self.do(c.Register, agent=agent)
        return self

    def add(self, title: str = "work", /, **fields: Any) -> str:
        """The key of a new task."""
        outcome = self.do(c.Add, task=NewTask(title=title, **fields))
        assert outcome.task is not None
        return str(outcome.task["key"])

    def plan(self, *tasks: NewTask, **fields: Any) -> list[str]:
        """The keys of a new dag's tasks."""
        return [str(t["key"]) for t in self.do(c.Plan, tasks=tasks, **fields).tasks or ()]

    def claim(self, task: str, agent: str = "ann", **fields: Any) -> Outcome:
        return self.do(c.ClaimTask, task=task, agent=agent, **{"session": f"s-{agent}", **fields})

    def take(self, task: str, agent: str = "ann", **fields: Any) -> str:
        """The receipt of a claim that must be granted."""
        outcome = self.claim(task, agent, **fields)
        assert outcome.outcome == "GRANTED", outcome
        assert outcome.receipt is not None
        return outcome.receipt

    def next(self, agent: str = "ann", **fields: Any) -> Outcome:
        return self.do(c.ClaimNext, agent=agent, **{"session": f"s-{agent}", **fields})

    def next_keys(self, count: int, agent: str = "ann", **fields: Any) -> list[str]:
        """The keys of what is offered, in order, for as long as there is something and at most `count`."""
        keys = []
        for _ in range(count):
            outcome = self.next(agent, **fields)
            if outcome.task is None:
                break
            keys.append(str(outcome.task["key"]))
        return keys

    def submit(self, receipt: str, data: Any = "done", **fields: Any) -> Outcome:
        return self.do(c.Submit, receipt=receipt, data=data, **fields)

    def finish(self, *tasks: str, agent: str = "ann") -> None:
        """Claim and complete each."""
        for task in tasks:
            assert self.submit(self.take(task, agent), f"output of {task}").outcome == "ACCEPTED"

    def fail(self, receipt: str, error_class: str = "task", **fields: Any) -> Outcome:
        return self.do(c.Fail, receipt=receipt, error_class=error_class, **fields)

    def bury(self, task: str, agent: str = "ann") -> None:
        """Make a dead letter of a task by failing it as often as it may be tried."""
        while self.state(task) != "dead_lettered":
            self.fail(self.take(task, agent), retry_after=0)

    def pass_time(self, **duration: float) -> None:
        """Let seconds, minutes or hours go by."""
        units = {"seconds": 1, "minutes": 60, "hours": 3600}
        self.clock.advance(seconds=sum(units[unit] * value for unit, value in duration.items()))

    # --- looks ---

    @property
    def now(self) -> int:
        return self.clock.now

    def task(self, name: str, project: str = PROJECT) -> Task:
        return self.engine.read_settled((project,), lambda work: task_named(work, project, name))

    def state(self, name: str) -> str:
        return self.task(name).state

    def states(self, *names: str) -> list[str]:
        return [self.state(name) for name in names]

    def lineage(self, name: str) -> list[Claim]:
        """The claims of a task, oldest first."""
        return self.rows(Claim, task=self.task(name).id, order="generation")

    def last_claim(self, name: str) -> Claim:
        return self.lineage(name)[-1]

    def results(self, name: str) -> list[Result]:
        return self.rows(Result, task=self.task(name).id)

    def row(self, kind: type[Any], id: str, project: str = PROJECT) -> Any:
        return self.engine.read_settled((project,), lambda work: work.get(kind, project, id))

    def rows(self, kind: type[Any], *, order: str = "id", **where: Any) -> list[Any]:
        wanted = {"project": PROJECT, **where}
        return self.engine.read_settled((PROJECT,), lambda work: work.find(kind, wanted, order=order))

    def events(self, **where: Any) -> list[Event]:
        return self.engine.read(lambda tx: tx.events(where, limit=1_000_000))

    def log(self, name: str) -> list[str]:
        """The kinds of a task's events, oldest first."""
        return [e.kind for e in self.events(task=self.task(name).id)]

    def tables(self) -> dict[str, list[Row]]:
        """Everything that is stored, and the log: two dumps are equal when nothing has changed."""

        def ask(tx: Transaction) -> dict[str, list[Any]]:
            dump: dict[str, list[Any]] = {kind.table: tx.find(row, {}) for row, kind in KINDS.items()}
            return dump | {"event": tx.events({}, limit=1_000_000)}

        return self.engine.read(ask)

    # --- for tests that forge and damage ---

    def put(self, before: Row | None, after: Row | None) -> None:
        """Change a stored row behind the engine's back."""
        with self.store.begin("local", write=True) as tx:
            tx.save([Change(before, after)])

    def stored_rows(self, kind: type[Any]) -> list[Any]:
        """All rows of a kind as they lie in the store; what is archived is not among them."""
        return self.engine.read(lambda tx: tx.find(kind, {}))

    def stored(self, kind: type[Any], id: str) -> Any:
        """A row as it lies in the store, not settled."""
        (row,) = self.engine.read(lambda tx: tx.load(kind, ((PROJECT, id),)))
        return row

    def secrets(self) -> list[str]:
        """Every nonce, token and digest in use, in each spelling in which it could leak."""
        found = set()
        for row in (*self.rows(Claim), *self.rows(records.Reservation), *self.rows(records.Validation)):
            if row.nonce:
                receipt = Receipt("x", row.generation, row.epoch, row.nonce)
                base64 = b64encode(row.nonce).decode()  # as JSON spells bytes
                found |= {row.nonce.hex(), base64, str(receipt).rpartition(":")[2]}
        keys, triggers = (self.engine.read(partial(_all, kind=kind)) for kind in (records.ApiKey, records.Trigger))
        digests = [digest for key in keys for digest in (key.digest, key.previous) if digest]
        digests += [key for row in triggers for key in (row.secret, row.previous) if key]
        found |= {spelling for d in digests for spelling in (d.hex(), b64encode(d).decode())}
        return sorted(found)


def forged(receipt: str, **changes: Any) -> str:
    """The receipt with another name, generation, epoch or nonce."""
    return str(replace(parse_receipt(receipt), **changes))


def code_of(answer: Answer) -> str:
    """The outcome's code or the error's: the two are one vocabulary to a caller."""
    return answer.code if isinstance(answer, TenureError) else answer.outcome


def comparable(answer: Answer) -> Any:
    """The answer without what chance gave it: receipts, and ids made on the way."""
    if isinstance(answer, TenureError):
        return {"error": type(answer).__name__, "message": _without_chance(answer.message)}
    return _without_chance(msgspec.to_builtins(answer))


_ID = re.compile(r"\b(cmd|dag|hold|msg|result|task)_[0-9A-Z]{26}")
PRODUCT = re.compile(r"\b(wp-[^ ]+-gen[0-9]+)-[0-9a-f]{6}\b")
_BY_CHANCE = {"receipt", "command_id", "id", "dag", "result", "parent"}


def _without_chance(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_chance(v) for k, v in value.items() if k not in _BY_CHANCE}
    if isinstance(value, (list, tuple)):
        return [_without_chance(v) for v in value]
    return PRODUCT.sub(r"\1-…", _ID.sub(r"\1_…", value)) if isinstance(value, str) else value


__all__ = ["AGENT", "MEMBER", "OWNER", "PROJECT", "Dice", "Scene", "claim_id", "code_of", "comparable", "forged"]


def _all(tx: Transaction, kind: type[Any]) -> list[Any]:
    return tx.find(kind, {})


@contextmanager
def reading(engine: Engine, projects: Sequence[str] = ()) -> Iterator[UnitOfWork]:
    """For tests that read on a store with snapshots, where no read is repeated."""
    with engine.store.begin(engine.tenant, write=False) as tx:
        work = UnitOfWork(tx, engine.random, engine.context)
        settle_due(work, projects, Report())
        yield work
