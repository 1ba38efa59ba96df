"""Procrastinate with its psycopg connector; `setting` is the concurrency of its worker (1 unless given)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import procrastinate
import psycopg

from bench.peers.speaking import InThread, Log, Place

BULK = 1000


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = place.postgres
        self.concurrency = int(place.setting or 1)
        self.client = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=place.postgres))
        self.client.open()
        self.noop = self.client.task(name="noop")(lambda job: None)

    def set_up(self) -> None:
        self.client.schema_manager.apply_schema()

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.noop.defer(job=job)

    def enqueue_many(self, jobs: Sequence[int]) -> None:
        for start in range(0, len(jobs), BULK):
            self.noop.batch_defer(*({"job": job} for job in jobs[start : start + BULK]))

    def start(self, log: Log) -> float:
        self.began = 0.0
        self.worker = InThread(lambda: asyncio.run(self._work(log)))
        self.worker.start()
        while not self.began:
            self.worker.check()
            time.sleep(0.001)
        return self.began

    async def _work(self, log: Log) -> None:
        app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=self.url))

        @app.task(name="noop")
        async def noop(job: int) -> None:
            log.note(job)

        async with app.open_async():
            self.own, self.ended = asyncio.get_running_loop(), asyncio.Event()
            running = asyncio.create_task(
                app.run_worker_async(concurrency=self.concurrency, install_signal_handlers=False)
            )
            self.began = time.monotonic()
            await self.ended.wait()
            running.cancel()  # documented: a cancelled worker finishes what it has begun
            await asyncio.gather(running, return_exceptions=True)

    def left(self) -> int:
        with psycopg.connect(self.url) as link:
            return int(
                link.execute("SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'").fetchone()[0]
            )

    def stop(self) -> None:
        self.own.call_soon_threadsafe(self.ended.set)
        self.worker.join(30)
