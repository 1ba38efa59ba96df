"""The parts of a run, their rounds, the arguments."""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.ground import TELLING, WrongAnswer, fast_rounds, sync_cost
from bench.peers import install
from bench.peers.talking import PeerFailed
from bench.postgres import (
    arrivals,
    creations,
    drains,
    idle_reader,
    lookups,
    pickups,
    policies,
    profiling,
    rivals,
    singles,
    sizes,
)
from bench.postgres.goals import plain, times, versus
from bench.postgres.ground import BATCH, Ground
from bench.postgres.scale import FULL, QUICK, Scale
from bench.report import Figure, show
from tests.servers.postgres import PostgresServer
from tests.servers.processes import Unavailable

PARTS = ("drains", "creations", "idle_reader", "arrivals", "pickups", "singles", "sizes", "lookups", "policies")


class Run:
    """One run: the server and stores, the rounds, the results."""

    def __init__(self, ground: Ground, scale: Scale, folder: Path, python: Path | None) -> None:
        self.ground, self.scale, self.folder, self.python = ground, scale, folder, python

    def drains(self) -> list[Figure]:
        """Cycles, claims, renewals and submits a second, beside the raw limit and PgQueuer."""
        scale, ground = self.scale, self.ground
        found: dict[str, list[Any]] = {}
        sides: dict[str, Callable[[], Any]] = {
            "raw": lambda: rivals.raw(ground, scale.seconds),
            "pgqueuer": self._pgqueuer,
            "cycle": lambda: drains.cycle(ground, scale, min(drains.MOST_AT_ONCE, scale.batch)),
            "singles": lambda: drains.cycle(ground, scale, 1),
            "many": lambda: drains.many_projects(ground, scale),
            "one": lambda: drains.one_project(ground, scale),
        }
        for number in range(scale.rounds):
            # Turned round each time, so that nobody always follows the same one.
            for name in sides if number % 2 == 0 else reversed(sides):
                gc.collect()
                began = time.monotonic()
                found.setdefault(name, []).append(sides[name]())
                say(f"round {number + 1}, {name}: {time.monotonic() - began:.1f} s")
        raw = [r.drain for r in found["raw"]]
        cycles = found["cycle"]
        figures = [
            plain("raw_cycle_per_s", raw, "1/s"),
            versus("cycle_per_s", cycles, raw)._replace(value=statistics.median(cycles), unit="1/s"),
            versus("cycle_vs_raw", cycles, raw),
            versus("cycle_singles_vs_raw", found["singles"], raw),
        ]
        if None not in found["pgqueuer"]:
            figures.append(versus("cycle_vs_pgqueuer", cycles, found["pgqueuer"]))
        for name, verb, side in (
            ("claims_many_vs_raw", "claims", "many"), ("claims_one_vs_raw", "claims", "one"),
            ("starts_vs_raw", "starts", "many"), ("starts_one_vs_raw", "starts", "one"),
            ("renewals_vs_raw", "renewals", "many"), ("renewals_one_vs_raw", "renewals", "one"),
            ("submits_vs_raw", "submits", "many"), ("submits_one_vs_raw", "submits", "one"),
        ):  # fmt: skip
            figures.append(versus(name, [getattr(r, verb) for r in found[side]], raw))
        # The same verb by itself, in batches of a thousand: stricter than the raw limit, which is a whole cycle.
        for name, verb, side in (
            ("claims_many_vs_raw_claims", "claims", "many"), ("claims_one_vs_raw_claims", "claims", "one"),
            ("submits_vs_raw_submits", "submits", "many"),
        ):  # fmt: skip
            theirs = [getattr(r, verb) for r in found["raw"]]
            figures.append(versus(name, [getattr(r, verb) for r in found[side]], theirs))
        figures.append(plain("live_claims", [r.held for r in found["many"]], ""))
        return figures

    def creations(self) -> list[Figure]:
        """Tasks created in batches of 1,000."""
        found = creations.measure(self.ground, self.scale.turns)
        return [
            plain("created_per_s", [1e6 / cost.wall for cost in found.ours], "1/s"),
            plain("created_client_us", [cost.client for cost in found.ours], "µs"),
            plain("created_server_us", [cost.server for cost in found.ours], "µs"),
            plain("created_log_bytes", [cost.log for cost in found.ours], "B"),
            times("created_cost_vs_raw", *([c.processor for c in side] for side in found)),
        ]

    def idle_reader(self) -> list[Figure]:
        """What both sides spend on claims beside a reader in a transaction, and without it in tables as full."""
        found = idle_reader.measure(self.ground, self.scale)
        first, beside, without = (cost.processor * 1e6 for cost in found[:3])
        say(f"{found.cycles:,} cycles while a reader was idle for {self.scale.idle:g} s")
        say(f"a claim took {first:.0f} µs before that, {beside:.0f} beside it, {without:.0f} when it had gone")
        rates = [[1 / cost.processor] for cost in (found.beside, found.without)]
        return [versus("claims_beside_idle_reader", *rates)]

    def arrivals(self) -> list[Figure]:
        """Latencies of claims and submits that come whether or not the earlier ones are answered."""
        scale = self.scale
        slow, fast = [], []
        for _ in range(scale.rounds):
            slow.append(arrivals.measure(self.ground, scale, 10_000, scale.seconds / 2, with_submits=True))
            fast.append(arrivals.measure(self.ground, scale, 50_000, scale.fast_seconds, with_submits=False))
        figures = []
        for name, found in (
            ("claim_{}_ms_at_10k", [claimed for claimed, _ in slow]),
            ("claim_{}_ms_at_50k", [claimed for claimed, _ in fast]),
            ("submit_{}_ms_at_10k", [submitted for _, submitted in slow if submitted is not None]),
        ):
            rates = [latencies.rate for latencies in found]
            if any(latencies.unsent for latencies in found):
                say(f"{name.format('p99')} is at least that: it fell behind, and some were never sent")
            figures.append(plain(name.format("p50"), [one.p50 * 1e3 for one in found], "ms", rates))
            figures.append(plain(name.format("p99"), [one.p99 * 1e3 for one in found], "ms", rates))
        return figures

    def pickups(self) -> list[Figure]:
        """From the call that adds a task until an idle worker in another process holds it."""
        looks, python = self.scale.looks, self.python
        found: dict[str, list[pickups.PickUps]] = {}
        for _ in range(self.scale.rounds):
            found.setdefault("pickup", []).append(pickups.ours(self.ground, self.folder, looks))
            raw = pickups.theirs(self.ground, self.folder, looks, Path(sys.executable), "raw_limit")
            found.setdefault("pickup_raw", []).append(raw)
            if python is not None:
                other = pickups.theirs(self.ground, self.folder, looks, python, "pgqueuer", str(rivals.PGQUEUER_BATCH))
                found.setdefault("pickup_pgqueuer", []).append(other)
        figures = []
        for name, rounds in found.items():
            figures.append(plain(f"{name}_p50_ms", [one.p50 for one in rounds], "ms"))
            figures.append(plain(f"{name}_p99_ms", [one.p99 for one in rounds], "ms"))
        return figures

    def singles(self) -> list[Figure]:
        """One at a time, beside bare prepared statements."""
        costs = singles.measure(self.ground, self.folder, self.scale.turns, self.scale.each)
        per_s = {name: [1 / cost for cost in found] for name, found in _counted(costs).items()}
        figures = [
            versus("single_claim_vs_bare", per_s["claim"], per_s["bare_claim"]),
            versus("single_submit_vs_bare", per_s["submit"], per_s["bare_submit"]),
        ]
        return _judged(figures, costs.syncs)

    def sizes(self) -> list[Figure]:
        """A single claim among few and among very many."""
        scale = self.scale
        costs = sizes.measure(self.ground, self.folder, scale.many, scale.turns, scale.each, say)
        if scale.many != FULL.many:
            say(f"{scale.many:,} tasks stand for the million in these names")
        kept = _counted(costs)
        figures = [
            times("claim_1m_vs_1k", kept["many"], kept["few"]),
            times("claim_1m_finished_vs_none", kept["among_finished"], kept["few"]),
        ]
        nothing = plain("claim_nothing_matches_ms", [cost * 1e3 for cost in kept["nothing"]], "ms")
        return [*_judged(figures, costs.syncs), nothing]

    def lookups(self) -> list[Figure]:
        """History and lists, on both SQL stores."""
        scale = self.scale
        if (scale.tasks, scale.generations) != (FULL.tasks, FULL.generations):
            say(f"{scale.generations:,} generations, and {scale.tasks:,} tasks to list, stand for those in these names")
        postgres = lookups.on_postgres(self.ground, scale.tasks, scale.generations, scale.turns)
        sqlite = lookups.on_sqlite(self.folder, scale.tasks, scale.generations, scale.turns)
        return [
            plain(f"{name}{store}", [cost * 1e3 for cost in found], "ms")
            for store, costs in (("", postgres), ("_sqlite", sqlite))
            for name, found in costs.items()
        ]

    def policies(self) -> list[Figure]:
        """Claims and submits under row-level security, beside those of a store without."""
        scale = self.scale
        costs = policies.measure(self.ground, scale.turns, min(scale.batch, BATCH), scale.policy_batches)
        seconds = {name: [cost / 1e6 for cost in found] for name, found in costs.items()}
        return [
            times(f"{what}s_rls_vs_plain", seconds[f"rls_{what}"], seconds[f"plain_{what}"])
            for what in ("claim", "submit", "single_claim", "single_submit")
        ]

    def _pgqueuer(self) -> float | None:
        if self.python is None:
            return None
        try:
            return rivals.pgqueuer(self.ground, self.python, self.folder, self.scale.jobs)
        except PeerFailed as why:
            say(f"PgQueuer failed, and its lines are left out: {why}")
            self.python = None
            return None


def _counted(costs: singles.Costs | sizes.Costs) -> dict[str, list[float]]:
    """Those of the turns in which the disk was not slow."""
    turns = fast_rounds(costs.syncs)
    return {name: [found[n] for n in turns] for name, found in costs._asdict().items()}


def _judged(figures: list[Figure], syncs: list[float]) -> list[Figure]:
    """Without their goals where the disk was too slow to compare both sides."""
    sync = statistics.median(syncs[n] for n in fast_rounds(syncs)) * 1e6
    if sync <= TELLING:
        return figures
    say(f"a sync takes {sync:.0f} µs: too slow to compare single commands, no verdict")
    return [figure._replace(goal="") for figure in figures]


@contextmanager
def running(folder: Path | None, settings: dict[str, str] | None = None) -> Iterator[Ground]:
    """A server for this run, with its settings printed; raises Unavailable."""
    with PostgresServer.measured(folder, settings) as server:
        asked = ("server_version", "fsync", "synchronous_commit", "full_page_writes")
        with tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=folder) as name:
            sync = sync_cost(Path(name)) * 1e6
        values = ", ".join(f"{name} {server.ask(f'SHOW {name}')}" for name in asked)
        say(f"PostgreSQL {values}; a sync of the disk takes {sync:.0f} µs")
        yield Ground(server)


def peers_python() -> Path | None:
    """The Python of PgQueuer; None, with a message, where it is unavailable."""
    try:
        return install.install()
    except install.NotInstalled as why:
        say(f"PgQueuer is not measured, and its lines are left out: {why}")
        return None


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./x bench postgres", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, in less than a minute")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--only", metavar="PARTS", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, help="of which the median counts")
    parser.add_argument("--seconds", type=float, help="of each phase")
    parser.add_argument("--threads", type=int, help="of ours, in one process")
    parser.add_argument("--idle", type=float, help="seconds that a reader stays in its transaction; the goal is of 300")
    parser.add_argument("--profile", choices=profiling.VERBS, help="show where the time of one verb goes, and end")
    parser.add_argument("--single", action="store_true", help="with --profile: one command a transaction, not 500")
    parser.add_argument("--folder", type=Path, help="where the server's files go: a real disk")
    given = parser.parse_args(argv)
    given.parts = tuple(PARTS if given.only is None else (part.strip() for part in given.only.split(",")))
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"{unknown[0]!r} is none of {', '.join(PARTS)}")
    scale = QUICK if given.quick else FULL
    given.scale = scale._replace(
        rounds=given.rounds or scale.rounds, seconds=given.seconds or scale.seconds,
        threads=given.threads or scale.threads, idle=given.idle or scale.idle,
    )  # fmt: skip
    if min(given.scale.rounds, given.scale.seconds, given.scale.threads) <= 0:
        parser.error("rounds, seconds and threads are more than 0")
    return given


def main(argv: list[str]) -> int:
    given = arguments_of(argv)
    try:
        if given.profile:
            with running(given.folder, profiling.SETTINGS) as ground:
                return profiling.profile(ground, given.scale, given.profile, is_single=given.single)
        return measure(given.scale, given.parts, given.folder, as_json=given.json)
    except Unavailable as why:
        say(str(why))
        return 1
    except WrongAnswer as wrong:
        say(f"WRONG: {wrong}")
        return 1


def measure(scale: Scale, parts: tuple[str, ...], folder: Path | None, *, as_json: bool) -> int:
    python = peers_python()
    figures: list[Figure] = []
    with running(folder) as ground, tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=folder) as name:
        run = Run(ground, scale, Path(name), python)
        for part in parts:
            began = time.monotonic()
            found = getattr(run, part)()
            say(f"{part}: {time.monotonic() - began:.0f} s")
            figures += found
    show(figures, as_json=as_json)
    return 0


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)
