"""huey's consumer with its one worker thread, on Valkey or (`setting` sqlite) on SQLite with every commit synced."""

from __future__ import annotations

import time
from collections.abc import Sequence

from huey import RedisHuey, SqliteHuey

from bench.peers.speaking import Log, Place


class Peer:
    def __init__(self, place: Place) -> None:
        if place.setting == "sqlite":
            self.huey = SqliteHuey("bench", filename=f"{place.folder}/huey.db", fsync=True)
        else:
            self.huey = RedisHuey("bench", url=place.valkey)
        self.log = Log()

        @self.huey.task()
        def noop(job: int) -> None:
            self.log.note(job)

        self.noop = noop

    def set_up(self) -> None:
        self.huey.storage.flush_all()

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.noop(job)

    def start(self, log: Log) -> float:
        self.log = log
        self.consumer = self.huey.create_consumer(workers=1, periodic=False)
        began = time.monotonic()
        self.consumer.start()
        return began

    def left(self) -> int:
        return int(self.huey.pending_count())

    def stop(self) -> None:
        self.consumer.stop(graceful=True)
