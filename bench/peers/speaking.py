"""The peer's side of the talk: one JSON object a line in, one out. Runs in the peers' venv, standard library only.

`python -m bench.peers.speaking MODULE PLACE` makes `bench.peers.tools.MODULE.Peer(place)` and runs its commands:
set_up, enqueue, enqueue_many, send, drain, finish.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

PATIENCE = 120.0  # seconds that a drain may take
AFTER_ALL = 0.3  # seconds to wait for executions that should not come


class Place(NamedTuple):
    """Where a peer keeps its jobs."""

    postgres: str = ""
    valkey: str = ""
    folder: str = ""
    setting: str = ""  # a variant of the tool, as the roster names it


class Log:
    """Which jobs were executed, and when by the clock that all processes of the machine share."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, float]] = []

    def note(self, job: int) -> None:
        self.entries.append((job, time.monotonic()))

    def count(self) -> int:
        return len(self.entries)

    def read(self) -> list[tuple[int, float]]:
        return list(self.entries)


class FileLog(Log):
    """For tools with separate worker processes: a line for each execution, appended in one write."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self._handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(self, job: int) -> None:
        os.write(self._handle, f"{job} {time.monotonic()!r}\n".encode())

    def count(self) -> int:
        return len(self.read())

    def read(self) -> list[tuple[int, float]]:
        with open(self.path, encoding="ascii") as file:  # noqa: PTH123 - read every few milliseconds
            lines = [line.split() for line in file]
        return [(int(job), float(at)) for job, at in lines]


class Tool(Protocol):
    """What each peer's module has as `Peer`. Bulk enqueueing is `enqueue_many`; a tool that has none leaves it out."""

    def set_up(self) -> None:
        """Make the tables or empty the queue; once, before all else."""

    def enqueue(self, jobs: Sequence[int]) -> None:
        """One at a time, each acknowledged before the next."""

    def start(self, log: Log) -> float:
        """Have one worker run in the background; the `time.monotonic()` from which it asks for jobs."""

    def left(self) -> int:
        """How many jobs are not finished, by the tool's own records."""

    def stop(self) -> None:
        """End the worker as its documentation says, with nothing under way."""


class InThread:
    """Runs a worker's loop in a thread and hands on what it raised."""

    def __init__(self, loop: Callable[[], None]) -> None:
        self.error: str = ""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> float:
        began = time.monotonic()
        self._thread.start()
        return began

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException:  # noqa: BLE001 - the waiting thread raises it
            self.error = traceback.format_exc(limit=-3)

    def join(self, timeout: float = 10.0) -> None:
        self._thread.join(timeout)
        if self.error:
            raise RuntimeError(self.error)
        if self._thread.is_alive():
            raise RuntimeError(f"the worker did not end within {timeout} s")

    def check(self) -> None:
        if self.error:
            raise RuntimeError(self.error)


class Speaker:
    def __init__(self, peer: Any, place: Place) -> None:
        self.peer = peer
        self.place = place
        self.log = Log()

    def set_up(self) -> dict[str, Any]:
        self.peer.set_up()
        return {"has_bulk": hasattr(self.peer, "enqueue_many")}

    def enqueue(self, jobs: list[int]) -> dict[str, Any]:
        return self._timed(self.peer.enqueue, jobs)

    def enqueue_many(self, jobs: list[int]) -> dict[str, Any]:
        return self._timed(self.peer.enqueue_many, jobs)

    @staticmethod
    def _timed(action: Callable[[list[int]], None], jobs: list[int]) -> dict[str, Any]:
        began = time.perf_counter()
        action(jobs)
        return {"seconds": time.perf_counter() - began}

    def send(self, jobs: list[int], gaps: list[float]) -> dict[str, Any]:
        """Enqueue one after the other with a pause before each; when each call began."""
        sent = []
        for job, gap in zip(jobs, gaps, strict=True):
            time.sleep(gap)
            sent.append((job, time.monotonic()))
            self.peer.enqueue([job])
        return {"sent": sent}

    def drain(self, count: int) -> dict[str, Any]:
        """Start the worker, which goes on running; how long until `count` executions were seen and nothing is left."""
        if getattr(self.peer, "has_processes", False):
            self.log = FileLog(f"{self.place.folder}/executed")
        began = self.peer.start(self.log)
        until = time.monotonic() + PATIENCE
        while self.log.count() < count:
            self._check(until)
            time.sleep(0.002)
        while self.peer.left():
            self._check(until)
            time.sleep(0.002)
        return {"seconds": time.monotonic() - began}

    def finish(self, count: int) -> dict[str, Any]:
        """Wait for `count` executions in all and end the worker; which jobs were executed, and when."""
        until = time.monotonic() + PATIENCE
        while self.log.count() < count:
            self._check(until)
            time.sleep(0.01)
        time.sleep(AFTER_ALL)
        self.peer.stop()
        return {"executed": self.log.read()}

    def _check(self, until: float) -> None:
        worker = getattr(self.peer, "worker", None)
        if isinstance(worker, InThread):
            worker.check()
        if time.monotonic() > until:
            raise TimeoutError(f"{self.log.count()} executed and {self.peer.left()} left after {PATIENCE} s")


def main(argv: list[str]) -> int:
    name, place = argv[0], Place(**json.loads(argv[1]))
    # Tools print and log; what they say goes to stderr, and the talk has its own handle.
    voice = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    speaker: Speaker | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if speaker is None:
                speaker = Speaker(importlib.import_module(f"bench.peers.tools.{name}").Peer(place), place)
            answer = getattr(speaker, request.pop("do"))(**request)
        except BaseException as error:  # noqa: BLE001 - the other side decides what a failure means
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error).strip()[-600:]}"}
        voice.write(json.dumps(answer) + "\n")
        voice.flush()
    process = getattr(speaker and speaker.peer, "process", None)
    if process is not None and process.poll() is None:
        process.kill()  # we were left in the middle of something
    # Some tools leave threads that nothing ends; the talk is over, and so is the process.
    os._exit(0)


if __name__ == "__main__":
    # By its name, as the tools import it: two copies of this module would have two classes of each name.
    sys.exit(importlib.import_module("bench.peers.speaking").main(sys.argv[1:]))
