"""Where the time of a single claim and a single submit goes, part by part, in microseconds.

Functions are wrapped with a clock that counts each its own time only, and leaves out its own bookkeeping. A tenth of a
microsecond a call remains, and caches are colder; so trust the large parts, and `./x bench engine` for the whole.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.ground import AGENTS, check, claim_next, fill, open_engine, submit

# (module, function or Class.method, part). A name that no longer exists is reported and left out.
PARTS = (
    ("core.inputs", "validated", "validate the command"),
    ("stores.sqlite.lock", "TurnLock.acquire", "turn: two flocks"),
    ("stores.sqlite.lock", "TurnLock.release", "turn: two flocks"),
    ("stores.sqlite.transaction", "SqliteTransaction.__enter__", "begin, read meta and clock"),
    ("stores.sqlite.transaction", "SqliteTransaction.due", "query: due"),
    ("stores.sqlite.transaction", "SqliteTransaction.load", "load {kind}"),
    ("stores.sqlite.transaction", "SqliteTransaction.find", "find {kind} by {fields}"),
    ("stores.sqlite.transaction", "SqliteTransaction.lanes", "query: lanes"),
    ("stores.sqlite.transaction", "SqliteTransaction.ready", "query: ready"),
    ("stores.sqlite.transaction", "SqliteTransaction.save", "save rows"),
    ("stores.sqlite.transaction", "SqliteTransaction.append", "append events"),
    ("stores.sqlite.transaction", "SqliteTransaction.__exit__", "commit"),
    ("stores.sqlite.store", "Sqlite.announce", "announce"),
    ("engine.settling", "settle_due", "settle: loop"),
    ("engine.work", "Work.__init__", "work: rows, changes"),
    ("engine.work", "Work.get", "work: rows, changes"),
    ("engine.work", "Work.find", "work: rows, changes"),
    ("engine.work", "Work.put", "work: rows, changes"),
    ("engine.work", "Work.save", "work: rows, changes"),
    ("engine.work", "Work.record", "record: event"),
    ("engine.work", "Work.new_id", "record: ids"),
    ("engine.work", "_difference", "record: patch"),
    ("core.settle", "stamp", "rules: stamp"),
    ("core.claims", "granted", "rules: granted"),
    ("core.claims", "judge", "rules: judge"),
    ("core.claims", "ended", "rules: ended"),
    ("core.ids", "parse_receipt", "receipt"),
    ("core.ids", "receipt_of", "receipt"),
    ("engine.claiming", "command_digest", "request digest"),
    ("engine.claiming", "_outcome", "answer"),
    ("engine.handing", "task_view", "answer"),
    ("engine.handing", "inputs_of", "answer"),
    ("engine.lanes", "Lanes.__init__", "lanes in Python"),
    ("engine.lanes", "Lanes.offer", "lanes in Python"),
    ("engine.claiming", "claim_next", "claim_next, the rest"),
    ("engine.claiming", "_grant", "claim_next, the rest"),
    ("engine.holding", "submit", "submit, the rest"),
    ("engine.holding", "judged", "submit, the rest"),
    ("engine.holding", "_accepted", "submit, the rest"),
    ("engine.effects", "spread", "effects on others"),
    ("engine.engine", "Engine.run", "engine, the rest"),
)


class Meter:
    """Own time by part: what a wrapped function spends in other wrapped functions is theirs."""

    def __init__(self) -> None:
        self.own: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._inside = [0.0]

    def wrap(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        inside, own, calls, clock = self._inside, self.own, self.calls, time.perf_counter
        named = "{" in part

        @wraps(function)
        def timed(*given: Any, **named_too: Any) -> Any:
            entered = clock()
            inside.append(0.0)
            began = clock()
            try:
                return function(*given, **named_too)
            finally:
                took = clock() - began - inside.pop()
                name = _named(part, given) if named else part
                own[name] = own.get(name, 0.0) + took
                calls[name] = calls.get(name, 0) + 1
                inside[-1] += clock() - entered

        return timed

    def take(self) -> dict[str, tuple[float, int]]:
        """Seconds and calls of each part since the last look."""
        taken = {name: (seconds, self.calls[name]) for name, seconds in self.own.items()}
        self.own.clear()
        self.calls.clear()
        return taken


def _named(part: str, given: tuple[Any, ...]) -> str:
    _, kind, keys = given[:3]
    fields = ", ".join(f for f in keys if f != "project") if isinstance(keys, dict) else ""
    return part.format(kind=kind.__name__, fields=fields)


def install(meter: Meter) -> None:
    modules = {name for name, _, _ in PARTS}
    loaded = {name: importlib.import_module(f"tenure.{name}") for name in modules}
    everywhere = [m for n, m in sys.modules.items() if n.startswith("tenure") and isinstance(m, ModuleType)]
    for name, path, part in PARTS:
        owner: Any = loaded[name]
        *outer, last = path.split(".")
        for step in outer:
            owner = getattr(owner, step, None)
        old = getattr(owner, last, None)
        if old is None:
            print(f"bench: tenure.{name} has no {path}", file=sys.stderr)
            continue
        new = meter.wrap(old, part)
        setattr(owner, last, new)
        for module in everywhere:  # where it was imported by name, or put into a table of handlers
            for key, value in list(vars(module).items()):
                if value is old:
                    setattr(module, key, new)
                elif isinstance(value, dict) and key == "HANDLERS":
                    value.update({k: new for k, v in value.items() if v is old})


def show(what: str, operations: list[dict[str, tuple[float, int]]]) -> None:
    """The median operation, part by part: what a neighbour on the machine did to some does not count."""
    names = {name for operation in operations for name in operation}
    rows = []
    for name in names:
        seconds, calls = zip(*(operation.get(name, (0.0, 0)) for operation in operations), strict=True)
        rows.append((statistics.median(seconds) * 1e6, statistics.median(calls), name))
    print(f"\n{what}: {sum(row[0] for row in rows):.0f} µs")
    for micros, calls, name in sorted(rows, reverse=True):
        if calls:
            print(f"  {micros:7.1f} µs  {calls:4.0f} calls  {name}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench parts", description=__doc__)
    parser.add_argument("--ready", type=int, default=10_000, help="ready tasks")
    parser.add_argument("--count", type=int, default=1000, help="claims and submits")
    parser.add_argument("--folder", type=Path, help="where the file goes; /dev/shm leaves the disk out")
    given = parser.parse_args(argv)
    claims, submits = [], []
    with tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=given.folder) as folder:
        engine = open_engine(Path(folder) / "parts.db")
        fill(engine, given.ready, "rows")
        meter = Meter()
        install(meter)
        for number in range(-AGENTS, given.count):
            meter.take()
            grant = engine.do(claim_next(number % AGENTS))
            claims.append(meter.take())
            check([engine.do(submit(grant.receipt or ""))], "ACCEPTED")
            submits.append(meter.take())
        engine.store.close()
    show("claim", claims[AGENTS:])  # the first ones make agents known
    show("submit", submits[AGENTS:])
    return 0
