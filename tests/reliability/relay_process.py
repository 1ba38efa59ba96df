"""The process that relays: a coordinator and a relay, as `serve` has them, and a sink that ends its process."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tenure.engine.duties.coordinator import SOONEST, Coordinator
from tenure.engine.relay.relay import Relay, Settings
from tenure.sinks.open_sink import open_sink
from tenure.sinks.port import Message, Sink
from tests.reliability.storm_worker import Worker, open_engine

NAME = "out"
URL = "sink"  # the file with the sink's URL
CALM = "calm"  # a file: while it is there, no process ends itself
STOPS = "stops"  # a file with the share of pages after which the process stops itself, instead of ending
LEASE = 1.0  # the shortest there is
CUT = 0.3  # of the pages: the process ends between their acknowledgement and the write of the row

Around = Callable[[Sink], Sink]


class Faulty(NamedTuple):
    """A sink that hands everything on, and ends its own process when a page of the log is acknowledged."""

    sink: Sink
    folder: Path
    dice: random.Random

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        sent = self.sink.send(messages, timeout)
        if any(message.sequence for message in messages) and not (self.folder / CALM).exists():
            stops = self.folder / STOPS
            if stops.exists() and len(messages) >= int(stops.read_text()):
                (self.folder / CALM).touch()  # once
                os.kill(os.getpid(), signal.SIGSTOP)
            elif not stops.exists() and self.dice.random() < CUT:
                os.kill(os.getpid(), signal.SIGKILL)
        return sent

    def identity(self) -> str:
        return self.sink.identity()

    def lag(self) -> int | None:
        return self.sink.lag()

    def close(self) -> None:
        self.sink.close()


class Relaying(Worker):
    """Stands for election and relays while it leads, until it is killed."""

    lease = LEASE

    def __init__(self, folder: Path, slot: int, life: int, seed: str) -> None:
        self.folder, self.dice = folder, random.Random(f"{seed}/{slot}/{life}")
        self.coordinator = Coordinator(
            open_engine(folder), f"r{slot}-{life}", time.monotonic, lease=self.lease, looks=SOONEST
        )
        self.relay = Relay(
            self.coordinator.engine, Settings(NAME), self.opened_sink, self.coordinator.led, time.monotonic
        )

    def opened_sink(self) -> Sink:
        return Faulty(open_sink((self.folder / URL).read_text()), self.folder, self.dice)

    def live(self) -> None:
        parent = os.getppid()
        self.coordinator.start()
        self.relay.start()
        while os.getppid() == parent:
            time.sleep(0.5)
