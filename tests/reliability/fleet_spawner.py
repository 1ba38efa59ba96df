"""The start command of the proof `fleet`: a spawner with faults, drawn with a seed."""

from __future__ import annotations

import fcntl
import os
import random
import sys
import time
from pathlib import Path

from tests.reliability.fleet_agent import DIES_AFTER
from tests.spawners.machine import ask

WORKS = "works"
HANGS = "hangs"
LATE = "late"
TWICE = "answers twice"
REFUSES = "refuses"
DIES_BEFORE = "dies before its claim"
FAULTS = (HANGS, LATE, TWICE, REFUSES, DIES_BEFORE, DIES_AFTER)


def fault_of(seed: int, number: int, one_in: int) -> str:
    """The fault of the n-th spawn: each fault once before chance decides, then one in so many spawns has one."""
    first = [fault for each in random.Random(seed).sample(FAULTS, len(FAULTS)) for fault in (each, WORKS)]
    if number < len(first):
        return first[number]
    dice = random.Random(f"{seed} {number}")
    return dice.choice(FAULTS) if dice.randrange(one_in) == 0 else WORKS


def start(folder: Path, seed: int, one_in: int, offer: float, spawn: str, words: list[str]) -> int:
    socket = str(folder / "machine")
    with (folder / "faults").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        fault = fault_of(seed, len(file.readlines()), one_in)
        file.write(f"{spawn} {fault}\n")
    if fault == REFUSES:
        return 1
    if fault == HANGS:
        time.sleep(60)
    if fault == LATE:
        ask("start-late", socket, [str(offer + 1), *words])
        time.sleep(60)
    if fault == DIES_BEFORE:
        return ask("start", socket, ["true"])
    if fault == DIES_AFTER:
        os.environ["FLEET_FAULT"] = DIES_AFTER
    code = ask("start", socket, words)
    return ask("start", socket, words) if fault == TWICE else code


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(start(Path(given[0]), int(given[1]), int(given[2]), float(given[3]), given[4], given[5:]))
