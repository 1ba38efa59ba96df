"""What every case's script is made of: the body of the job, and the four things that the referee asks for.

    python -m bench.zombies.cases.NAME set_up | enqueue | work | records

`ZOMBIE_PLACE` says where the servers are, `ZOMBIE_ME` which of the two workers this is. Standard library only.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# Seconds without a sign of life after which a job may be given to another, wherever a tool lets one say so.
LEASE = int(os.environ.get("ZOMBIE_LEASE", "5"))


def place() -> dict[str, str]:
    found: dict[str, str] = json.loads(os.environ["ZOMBIE_PLACE"])
    return found


def me() -> str:
    return os.environ["ZOMBIE_ME"]


def act() -> str:
    """The job itself: say that it began, wait for the cue, say that it returns; its result is the worker's name."""
    folder = Path(place()["folder"])
    (folder / f"{me()}.began").touch()
    while not (folder / f"{me()}.cue").exists():
        time.sleep(0.02)
    (folder / f"{me()}.returns").touch()
    return me()


async def act_apart() -> str:
    """The same without blocking the event loop, on which some tools send their signs of life."""
    return await asyncio.to_thread(act)


class Ending:
    """Set by SIGTERM, the referee's word that a worker shall finish what it has and go."""

    def __init__(self) -> None:
        self.is_asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self.is_asked = True

    def wait(self) -> None:
        while not self.is_asked:
            time.sleep(0.02)


def say(text: str) -> None:
    """One line of the worker's log, where the referee looks for refusals."""
    print(text, file=sys.stderr, flush=True)


def run(parts: Mapping[str, Callable[[], Any]]) -> None:
    """Do the part that the command line names; what it returns is printed as JSON."""
    answer = parts[sys.argv[1]]()
    sys.stderr.flush()
    if answer is not None:
        print(json.dumps(answer, default=str))
    sys.stdout.flush()
    # Some tools leave threads that nothing ends.
    os._exit(0)
