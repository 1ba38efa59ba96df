"""From a plan to its end: ten agents, fifty tasks, money that runs out, kills of agents and of the coordinator.

A pool on its own store, and nobody but its coordinator, `tenure serve`, starts an agent. The tasks are a graph. The
money covers three in five of them and is raised once it is spent. Meanwhile agents end their own runners, and about
every second a process is killed at any moment: an agent, its runner, a supervisor, or the coordinator. At the end every
task has one accepted result, of the last generation of its lineage; no spawn was open beyond its offer and ten seconds,
never more than the pool's size were able to claim, and the budget was never passed.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.reliability import results
from tests.reliability.fleet_stage import AFTER_OFFER, PATIENCE, Stage, Watch
from tests.servers.postgres import PostgresServer

EVERY = 1.0  # seconds between two kills, on average
COORDINATOR = 5  # one in so many kills is the coordinator's
DIES = 10  # one in so many agents kills its runner
SHOWN = ("raised", "coordinator_kills", "agent_kills")
NUMBERS = (
    "tasks", "claims", "accepted_twice", *SHOWN, "spawn_starting", "spawn_lost", "most_able", "most_holding",
    "most_processes", "longest_surplus_ms", "longest_limbo_ms", "longest_orphan_ms",
)  # fmt: skip


def loop(stage: Stage, options: argparse.Namespace) -> None:
    dice, money = random.Random(options.seed), options.tasks * 3 // 5
    stage.client.set_budget(usd=str(money), default_estimate="1")
    stage.add(options.tasks, dice)
    stage.serve()
    next_kill, give_up = 0.0, time.monotonic() + PATIENCE
    term = 0
    with Watch(stage):
        while not (stage.is_drained() or stage.wrong):
            if time.monotonic() > give_up:
                stage.wrong.append(f"not done after {PATIENCE:g} s: {stage.states()}")
            elif stage.client.budget()["remaining"] == "0.00" and stage.is_quiet():
                money += options.tasks * 2 // 5  # an agent that was killed may have spent without a result
                stage.client.set_budget(usd=str(money), default_estimate="1")
                stage.figures["raised"] += 1
            elif kills_of(stage) < options.kills and time.monotonic() > next_kill:
                term = strike(stage, dice, term)
                next_kill = time.monotonic() + EVERY * dice.uniform(0.5, 1.5)
            time.sleep(0.02)
        stage.until(stage.is_quiet, "every process ended", stage.offer + 3 * AFTER_OFFER)
    stage.wrong += [f"nothing was shown: {what} 0" for what in SHOWN if not stage.figures[what]]


def strike(stage: Stage, dice: random.Random, killed: int) -> int:
    """Kill one process; the last term whose leader was killed. One that never leads would show nothing."""
    term = (stage.client.status()["coordinator"] or {}).get("term") or 0
    if term > killed and (dice.randrange(COORDINATOR) == 0 or not killed):
        stage.kill_server()
        stage.serve()
        stage.figures["coordinator_kills"] += 1
        return term
    if len(stage.runners()) > 1 and stage.kill_one(dice):  # a last one would be killed for ever
        stage.figures["agent_kills"] += 1
    return killed


def kills_of(stage: Stage) -> int:
    return stage.figures["coordinator_kills"] + stage.figures["agent_kills"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x reliability loop", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--agents", type=int, default=10, help="places of the pool")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--offer", type=float, default=20.0, help="seconds that a task is offered to an agent")
    parser.add_argument("--work", type=float, default=1.0, help="seconds that a task takes, on average")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args(argv)
    began = time.monotonic()
    print(f"seed {options.seed}", flush=True)
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-loop-")))
        url = str(root / "store.db")
        if options.store == "postgres":
            url = f"{stack.enter_context(PostgresServer()).url}?schema=loop"
        stage = Stage(
            root / "loop",
            url,
            size=options.agents,
            offer=options.offer,
            work=options.work,
            seed=options.seed,
            dies=DIES,
        )
        try:
            loop(stage, options)
            stage.check()
        finally:
            stage.close()
        if stage.wrong:
            print(json.dumps(stage.wrong[:20], indent=1))
            print((root / "loop" / "log").read_text()[-3000:])
    numbers: dict[str, results.Figure] = {name: stage.figures[name] for name in NUMBERS}
    numbers |= {"size": stage.size, "wrong": len(stage.wrong), "seconds": round(time.monotonic() - began)}
    results.tell("loop", numbers, variant=options.store if options.store != "sqlite" else "")
    return 1 if stage.wrong else 0
