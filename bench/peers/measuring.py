"""The rounds: every peer in turn, each round with fresh databases, checked for jobs executed twice or never."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from bench.ground import sync_cost
from bench.peers import install
from bench.peers.chart import draw, markdown
from bench.peers.roster import RAW, Peer, chosen, title
from bench.peers.talking import PeerFailed, Talk
from bench.report import Figure, show
from tests.servers.postgres import PostgresServer
from tests.servers.processes import Unavailable
from tests.servers.valkey import ValkeyServer

ROUNDS = 3
SINGLES = 400  # enqueued one at a time in a full round
LOOKS = 100  # of an idle worker, in a full round
GAP = (0.02, 0.08)  # seconds between them
IDLE = 0.5  # seconds after which a worker that was draining has found nothing and waits


class WrongAnswer(PeerFailed):
    """A job was executed twice, or never."""


class Round(NamedTuple):
    """What one peer did in one round: jobs a second, and seconds of each pick-up."""

    drain: float
    single: float
    bulk: float | None
    pick_ups: list[float]


class Places:
    """The servers, and a fresh place in them for each peer and round."""

    def __init__(self, stack: ExitStack, python: Path, *, valkey_is_durable: bool) -> None:
        self.python = python
        self.missing: dict[str, str] = {}
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-bench-")))
        self.postgres: PostgresServer | None = None
        self.valkey: ValkeyServer | None = None
        try:
            self.postgres = stack.enter_context(PostgresServer.measured())
        except Unavailable as why:
            self.missing["PostgreSQL"] = str(why)
        try:
            self.valkey = stack.enter_context(ValkeyServer(python, is_durable=valkey_is_durable))
        except Unavailable as why:
            self.missing["Valkey"] = str(why)
        self._number = 0

    def make(self, peer: Peer) -> tuple[dict[str, str], str]:
        """The place of one peer in one round, and the name of its database."""
        if peer.store in self.missing:
            raise PeerFailed(self.missing[peer.store])
        self._number += 1
        folder = self.folder / str(self._number)
        folder.mkdir()
        place = {"folder": str(folder), "setting": peer.setting}
        name = ""
        if peer.store == "PostgreSQL" and self.postgres is not None:
            name = f"bench_{self._number}"
            place["postgres"] = self.postgres.create(name)
        if peer.store == "Valkey" and self.valkey is not None:
            place["valkey"] = self.valkey.url()
        return place, name


def play(places: Places, peer: Peer, scale: float) -> Round:
    """One round of one peer. Raises PeerFailed with its reason."""
    place, database = places.make(peer)
    python = Path(sys.executable) if peer.is_ours else places.python
    try:
        log = Path(place["folder"], "log")
        with Talk(python, peer.module, place, log) as client, Talk(python, peer.module, place, log) as worker:
            return _play(client, worker, peer, scale)
    finally:
        if database and places.postgres is not None:
            places.postgres.drop(database)


def _play(client: Talk, worker: Talk, peer: Peer, scale: float) -> Round:
    count = max(20, round(peer.jobs * scale))
    singles = max(10, min(count, round(SINGLES * scale)))
    has_bulk = client.ask("set_up")["has_bulk"]
    first, rest = list(range(singles)), list(range(singles, count))
    single = singles / client.ask("enqueue", jobs=first)["seconds"]
    bulk = None
    if has_bulk and rest:
        bulk = len(rest) / client.ask("enqueue_many", jobs=rest)["seconds"]
    elif rest:
        client.ask("enqueue", jobs=rest)
    seconds = worker.ask("drain", count=count)["seconds"]
    looks = max(10, round(LOOKS * scale))
    jobs = list(range(count, count + looks))
    time.sleep(IDLE)
    sent = client.ask("send", jobs=jobs, gaps=[random.uniform(*GAP) for _ in jobs])["sent"]
    executed = worker.ask("finish", count=count + looks)["executed"]
    check([job for job, _ in executed], list(range(count + looks)))
    began = dict(executed)
    return Round(count / seconds, single, bulk, [began[job] - at for job, at in sent])


def check(executed: list[int], wanted: list[int]) -> None:
    """Each job exactly once."""
    if sorted(executed) == sorted(wanted):
        return
    missing, strange = set(wanted) - set(executed), set(executed) - set(wanted)
    twice = len(executed) - len(set(executed))
    raise WrongAnswer(
        f"{len(wanted)} jobs: {twice} executed again, {len(missing)} never, {len(strange)} that were never enqueued"
    )


def measure(places: Places, peers: tuple[Peer, ...], scale: float) -> tuple[dict[Peer, list[Round]], dict[Peer, str]]:
    """The rounds of each peer, and the reason of each that failed: in one round is in all."""
    rounds: dict[Peer, list[Round]] = {peer: [] for peer in peers}
    failed: dict[Peer, str] = {}
    for number in range(ROUNDS):
        _say(f"round {number + 1}: a sync of the disk takes {sync_cost(places.folder) * 1e6:.0f} µs")
        # Turn the order round, so that nobody always follows the same one.
        for peer in peers if number % 2 == 0 else reversed(peers):
            if peer in failed:
                continue
            try:
                rounds[peer].append(play(places, peer, scale))
            except PeerFailed as why:
                failed[peer] = str(why)
                rounds.pop(peer)
                _say(f"{title(peer)} failed: {why}")
            else:
                _say(f"round {number + 1}, {title(peer)}: {rounds[peer][-1].drain:,.0f} jobs/s")
    return rounds, failed


def figures_of(rounds: dict[Peer, list[Round]]) -> list[Figure]:
    raw = next((own for peer, own in rounds.items() if peer.name == RAW), None)
    found = []
    for what, unit, pick in (
        ("drain", "jobs/s", lambda r: r.drain),
        ("enqueue one at a time", "jobs/s", lambda r: r.single),
        ("enqueue in bulk", "jobs/s", lambda r: r.bulk),
        ("pick-up p50", "ms", lambda r: _percentile(r.pick_ups, 0.5) * 1e3),
        ("pick-up p99", "ms", lambda r: _percentile(r.pick_ups, 0.99) * 1e3),
    ):
        for peer, own in rounds.items():
            values = [pick(r) for r in own]
            if None in values:
                continue
            base = [pick(r) for r in raw] if raw else None
            found.append(
                Figure(
                    f"{what}, {title(peer)}", statistics.median(values), unit,
                    statistics.median(base) if base else None,
                    statistics.median(a / b for a, b in zip(values, base, strict=True)) if base else None,
                )
            )  # fmt: skip
    return found


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def table_of(rounds: dict[Peer, list[Round]], failed: dict[Peer, str]) -> dict[str, Any]:
    """What `bench/results/peers.json` keeps: the table of the docs is made from it."""
    pinned = install.versions()
    rows = []
    for peer, own in rounds.items():
        bulk = [r.bulk for r in own if r.bulk is not None]
        rows.append(
            {
                "name": peer.name, "store": peer.store, "fenced": peer.fenced,
                "version": pinned.get(peer.package, ""),
                "drain": statistics.median(r.drain for r in own),
                "single": statistics.median(r.single for r in own),
                "bulk": statistics.median(bulk) if bulk else None,
                "p50_ms": statistics.median(_percentile(r.pick_ups, 0.5) for r in own) * 1e3,
                "p99_ms": statistics.median(_percentile(r.pick_ups, 0.99) for r in own) * 1e3,
            }
        )  # fmt: skip
    return {"rows": rows, "failed": [{"name": title(peer), "reason": why} for peer, why in failed.items()]}


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./x bench peers", description=__doc__)
    parser.add_argument(
        "--only", metavar="WORDS", help="peers whose name or store has one of these words, as in huey,pgmq"
    )
    parser.add_argument("--scale", type=float, help="of the number of jobs; 1 unless given")
    parser.add_argument("--quick", action="store_true", help="few jobs, in less than 3 minutes")
    parser.add_argument("--durable-valkey", action="store_true", help="have Valkey log and sync every write")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one object a line")
    shape.add_argument("--markdown", action="store_true", help="the table of the docs")
    parser.add_argument("--chart", type=Path, metavar="PATH", help="draw the drain rates into this SVG file")
    parser.add_argument("--save", type=Path, metavar="PATH", help="keep the table as JSON, for the docs")
    given = parser.parse_args(argv)
    given.scale = given.scale or (0.1 if given.quick else 1.0)
    if not 0 < given.scale <= 10:
        parser.error("the scale is more than 0 and at most 10")
    given.peers = chosen(given.only)
    if len(given.peers) == 1 and given.only:
        parser.error(f"no peer has any of {given.only!r} in its name")
    return given


def main(argv: list[str]) -> int:
    given = arguments_of(argv)
    try:
        python = install.install()
    except install.NotInstalled as why:
        _say(str(why))
        return 1
    with ExitStack() as stack:
        places = Places(stack, python, valkey_is_durable=given.durable_valkey)
        _say(_settings(places))
        rounds, failed = measure(places, given.peers, given.scale)
    figures = figures_of(rounds)
    if not given.markdown:
        show(figures, as_json=given.json)
    for peer, why in failed.items() if not given.markdown else ():
        # Where the figures are read by a program, the failure is one more line of theirs.
        line = {"name": f"drain, {title(peer)}", "value": None, "unit": "jobs/s", "baseline": None, "ratio": None}
        print(json.dumps({**line, "failed": why}, ensure_ascii=False) if given.json else f"FAILED {title(peer)}: {why}")
    table = table_of(rounds, failed)
    if given.save:
        given.save.parent.mkdir(parents=True, exist_ok=True)
        given.save.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    if given.chart:
        given.chart.write_text(draw(table["rows"]))
    if given.markdown:
        print(markdown(table))
    # A peer that fails is only reported; without the baseline, or ours, the run is useless.
    return 1 if any(peer.name == RAW or peer.is_ours for peer in failed) else 0


def _settings(places: Places) -> str:
    if places.postgres is None:
        return places.missing["PostgreSQL"]
    asked = ("server_version", "fsync", "synchronous_commit", "full_page_writes")
    return "PostgreSQL " + ", ".join(f"{name} {places.postgres.ask(f'SHOW {name}')}" for name in asked)


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)
