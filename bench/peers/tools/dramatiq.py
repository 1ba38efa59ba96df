"""dramatiq on Valkey: its worker with the eight threads that its command line starts in one process."""

from __future__ import annotations

import time
from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers.speaking import Log, Place

THREADS = 8


class Peer:
    def __init__(self, place: Place) -> None:
        self.broker = RedisBroker(url=place.valkey)
        dramatiq.set_broker(self.broker)
        self.log = Log()

        @dramatiq.actor(broker=self.broker, queue_name="bench")
        def noop(job: int) -> None:
            self.log.note(job)

        self.noop = noop

    def set_up(self) -> None:
        self.broker.client.flushdb()

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.noop.send(job)

    def start(self, log: Log) -> float:
        self.log = log
        self.running = dramatiq.Worker(self.broker, worker_threads=THREADS)
        began = time.monotonic()
        self.running.start()
        return began

    def left(self) -> int:
        return int(self.broker.client.hlen("dramatiq:bench.msgs"))

    def stop(self) -> None:
        self.running.stop()
