"""Pools: spawners hang, answer twice or late, die; servers and gateways are killed; real processes drain a plan.

Four parts, each with a pool on its own store: *faults* (a spawner with a seeded fault for some spawns), *server*
(`tenure serve` killed -9 before, during or after a spawner's call), *gateway* (`tenure gateway` killed with all its
children), and *budget* (more tasks than the money covers, and agents that die). At the end no task was accepted twice
and none is left, no spawn was open beyond its offer and ten seconds, never more than the pool's size were able to
claim, and the budget was never passed. The offer and the leader's lease are shorter than the product's, by the same
factor: `--offer`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tenure.core import pools
from tests.reliability import results
from tests.reliability.fleet_server import POINTS
from tests.reliability.fleet_stage import AFTER_OFFER, HERE, ROOT, Stage, Watch
from tests.servers.gateway import SECRET, GatewayServer
from tests.servers.postgres import PostgresServer
from tests.servers.processes import end, end_with_us
from tests.spawners import machine

PARTS = ("faults", "server", "gateway", "budget")
SUMS = ("tasks", "claims", "accepted_twice", "looks", "kills", "spawn_starting", "spawn_lost")
MOST = (
    "most_able",
    "most_holding",
    "most_processes",
    "longest_surplus_ms",
    "longest_limbo_ms",
    "longest_held_ms",
    "longest_orphan_ms",
)
TURNS = 5  # pools of the part `server`
FAULTY = 3  # one in so many spawns has a fault


def faults(options: argparse.Namespace, folder: Path, url: str) -> Stage:
    """The spawner is a command; the machine that it starts agents on is a daemon."""
    socket = folder / "machine"
    python, client = [sys.executable], [sys.executable, machine.__file__]
    command = [*python, "-m", "tests.reliability.fleet_spawner", str(folder), str(options.seed), str(FAULTY)]
    words = [str(options.offer), "{spawn}", *python, "-P", "-m", "tenure", "run", "--once", "--spawn", "{spawn}"]
    words += ["--task", "{key}", "--name", "{agent}", "--grace", "1", "--agent"]
    agent = f"{sys.executable} {HERE / 'fleet_agent.py'} {folder} {options.work} {options.seed} 0"
    settings = (
        f'[spawners.faulty]\nkind = "command"\nstart = {json.dumps([*command, *words, agent])}\n'
        f"status = {json.dumps([*client, 'status', str(socket), '{handle}'])}\n"
        f"end = {json.dumps([*client, 'end', str(socket), '{handle}', '{graceful}'])}\n"
    )
    stage = _stage(options, folder, url, settings=settings, spawner="faulty")
    daemon = subprocess.Popen(
        [*client, "daemon", str(socket)], cwd=ROOT, env=stage.environ(),
        preexec_fn=end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
    )  # fmt: skip
    try:
        stage.add(options.tasks)
        stage.serve()
        with Watch(stage):
            stage.until(stage.is_drained, "every task completed")
            stage.until(stage.is_quiet, "every process ended", options.offer + 3 * AFTER_OFFER)
    finally:
        end(daemon)
    drawn = Counter(line.split(" ", 1)[1] for line in (folder / "faults").read_text().splitlines())
    stage.figures.update({f"spawns that: {name}": count for name, count in drawn.items()})
    return stage


def server(options: argparse.Namespace, folder: Path, url: str) -> Stage:
    """The server dies at a drawn point of its first, second, third or fourth spawn.

    Pools take turns: while the offers of one run out, the next one starts agents.
    """
    stage, dice = _stage(options, folder, url, pool_count=TURNS), random.Random(options.seed)
    for pool in stage.pools:
        stage.client.pause_pool(pool)
    stage.add(options.tasks)
    with Watch(stage):
        while stage.figures["kills"] < options.kills and not stage.wrong:
            if stage.free_tasks() < 2 * options.size:
                stage.add(2 * options.size)  # there is always a task to start an agent for
            pool = stage.pools[stage.figures["kills"] % TURNS]
            stage.client.resume_pool(pool)
            point = POINTS[stage.figures["kills"] % len(POINTS)]
            stage.serve(f"{point} {dice.randint(1, options.size)}")
            if not stage.dies(pool, options.offer + 60):
                stage.wrong.append("the server started no agent")
                break
            stage.client.pause_pool(pool)
            stage.figures["kills"] += 1
            stage.figures[f"kills {point} a call"] += 1
        for pool in stage.pools:
            stage.client.resume_pool(pool)
        stage.serve()
        stage.until(stage.is_drained, "every task completed")
        stage.until(stage.is_quiet, "every process ended", options.offer + 3 * AFTER_OFFER)
    return stage


def gateway(options: argparse.Namespace, folder: Path, url: str) -> Stage:
    """The gateway's machine loses its power, and comes back at once."""
    agent = [sys.executable, str(HERE / "fleet_agent.py"), str(folder), str(options.work), str(options.seed), "0"]
    other = GatewayServer({"bot": agent}, options=("--grace", "1"))
    (folder.parent / "secret").write_text(SECRET)
    (folder.parent / "secret").chmod(0o600)
    settings = f'[spawners.far]\nkind = "gateway"\nurl = "{other.url}"\nsecret_file = "{folder.parent}/secret"\n'
    stage, dice = _stage(options, folder, url, settings=settings, spawner="far"), random.Random(options.seed)
    other.more["PROOF_MARK"] = stage.mark
    stage.add(options.tasks)
    with other, Watch(stage):
        stage.serve()
        while stage.figures["kills"] < options.gateway_kills and not stage.wrong:
            if stage.free_tasks() < 2 * options.size:
                stage.add(2 * options.size)
            stage.until(lambda: stage.client.spawns(state=("running",)), "an agent runs")
            time.sleep(dice.uniform(0.0, 2 * options.work))
            _lose(stage, other)
            stage.client.resume_pool(stage.pools[0])
        stage.until(stage.is_drained, "every task completed")
        stage.until(stage.is_quiet, "every process ended", options.offer + 3 * AFTER_OFFER)
    return stage


def _lose(stage: Stage, other: GatewayServer) -> None:
    """Kill the gateway with its children; what they held must be free in time."""
    open_before = {spawn["id"] for spawn in stage.client.spawns(state=pools.OPEN)}
    stage.figures["killed_processes"] += other.kill_with_children()
    stage.figures["kills"] += 1
    began = time.monotonic()
    other.start()

    def is_over() -> bool:
        return not open_before & {spawn["id"] for spawn in stage.client.spawns(state=pools.OPEN)}

    stage.until(is_over, "the spawns of a killed gateway are over", stage.offer + AFTER_OFFER)
    took = round((time.monotonic() - began) * 1000)
    stage.figures["longest_held_ms"] = max(stage.figures["longest_held_ms"], took)


def budget(options: argparse.Namespace, folder: Path, url: str) -> Stage:
    """Money for fewer tasks than there are; a task costs a dollar, and some agents die while they hold it."""
    stage = _stage(options, folder, url, dies=5)
    stage.client.set_budget(usd=str(options.budget), default_estimate="1")
    stage.add(options.budget + 8)
    stage.serve()

    def is_spent() -> bool:
        return stage.states().get("completed", 0) >= options.budget and stage.is_quiet()

    with Watch(stage):
        stage.until(is_spent, f"{options.budget} tasks completed")
    done = stage.states().get("completed", 0)
    if done != options.budget:
        stage.wrong.append(f"{done} tasks were completed with money for {options.budget}")
    stage.figures["completed"] = done
    return stage


def _stage(options: argparse.Namespace, folder: Path, url: str, **more: Any) -> Stage:
    return Stage(folder, url, size=options.size, offer=options.offer, work=options.work, seed=options.seed, **more)


STAGES: dict[str, Callable[[argparse.Namespace, Path, str], Stage]] = {
    "faults": faults, "server": server, "gateway": gateway, "budget": budget,
}  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability fleet", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part (may be repeated)")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--size", type=int, default=4, help="places of the pool")
    parser.add_argument("--kills", type=int, default=50, help="kills of the server")
    parser.add_argument("--gateway-kills", type=int, default=20)
    parser.add_argument("--budget", type=int, default=37, help="tasks that the money covers")
    parser.add_argument("--offer", type=float, default=20.0, help="seconds that a task is offered to an agent")
    parser.add_argument("--work", type=float, default=0.5, help="seconds that a task takes, on average")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    options.seed = random.randrange(1 << 32) if options.seed is None else options.seed
    wrong: list[str] = []
    total: Counter[str] = Counter()
    began = time.monotonic()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-fleet-")))
        postgres = stack.enter_context(PostgresServer()) if options.store == "postgres" else None
        for part in options.part or PARTS:
            url = str(root / f"{part}.db") if postgres is None else f"{postgres.url}?schema={part}"
            wrong += _run(part, options, root / part, url, total)
    print(f"seed {options.seed}, {options.store}: {time.monotonic() - began:.0f} s")
    numbers: dict[str, results.Figure] = {name: total[name] for name in (*SUMS, *MOST)}
    numbers |= {"size": options.size, "offer_seconds": options.offer, "wrong": len(wrong)}
    results.tell("fleet", numbers, variant=options.store if options.store != "sqlite" else "")
    return 1 if wrong else 0


def _run(part: str, options: argparse.Namespace, folder: Path, url: str, total: Counter[str]) -> list[str]:
    """Run one part, print its figures, add them to the total; what is wrong."""
    stage = STAGES[part](options, folder, url)
    try:
        stage.check()
    finally:
        stage.close()
    print(f"{part}:", ", ".join(f"{name} {number}" for name, number in sorted(stage.figures.items())))
    for name in SUMS:
        total[name] += stage.figures[name]
    for name in MOST:
        total[name] = max(total[name], stage.figures[name])
    if stage.wrong:
        print(json.dumps(stage.wrong[:20], indent=1))
        for name in ("log", "children"):
            if (folder / name).exists():
                print((folder / name).read_text()[-3000:])
    return [f"{part}: {what}" for what in stage.wrong]
