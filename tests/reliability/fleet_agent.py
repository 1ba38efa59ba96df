"""A scripted agent of the proof `fleet`: works for a while and reports its cost, or takes its runner with it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

DIES_AFTER = "dies after its claim"


def runner_above() -> int:
    """The pid of the `tenure run` above this process."""
    pid = os.getppid()
    while True:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"run" in words and b"tenure" in words:
            return pid
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat[stat.rindex(")") + 2 :].split()[1])


def work(folder: Path, seconds: float, seed: int, one_in: int) -> None:
    spawn = os.environ["TENURE_SPAWN"]
    with (folder / "executions").open("a") as file:
        file.write(f"{os.environ['TENURE_TASK']} {os.environ['TENURE_GENERATION']} {spawn}\n")
    subprocess.Popen(["sleep", "1000"], start_new_session=True)  # agents leave things behind
    dice = random.Random(f"{seed} {spawn}")
    time.sleep(dice.uniform(0.5, 1.5) * seconds)
    if os.environ.get("FLEET_FAULT") == DIES_AFTER or (one_in and dice.randrange(one_in) == 0):
        with (folder / "deaths").open("a") as file:
            file.write(f"{spawn}\n")
        os.kill(runner_above(), signal.SIGKILL)
        time.sleep(60)
    usage = {"model": "scripted", "fresh": 1, "output": 1, "cost_usd": "1"}
    print(json.dumps({"result": {"task": os.environ["TENURE_TASK"], "spawn": spawn}, "usage": usage}))


if __name__ == "__main__":
    sys.stdin.read()
    work(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
