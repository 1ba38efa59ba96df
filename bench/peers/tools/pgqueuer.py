"""PgQueuer with its asyncpg driver; `setting` is the batch size of its worker (10 unless given)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers.speaking import InThread, Log, Place

ENTRYPOINT = "noop"
BULK = 1000


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = place.postgres
        self.batch = int(place.setting or 10)
        self.loop = asyncio.new_event_loop()
        self.link: asyncpg.Connection | None = None

    def _do(self, made: object) -> object:
        return self.loop.run_until_complete(made)  # type: ignore[arg-type]

    async def _queries(self) -> Queries:
        if self.link is None:
            self.link = await asyncpg.connect(self.url)
        return Queries.from_asyncpg_connection(self.link)

    def set_up(self) -> None:
        async def run() -> None:
            await (await self._queries()).install()

        self._do(run())

    def enqueue(self, jobs: Sequence[int]) -> None:
        async def run() -> None:
            queries = await self._queries()
            for job in jobs:
                await queries.enqueue(ENTRYPOINT, str(job).encode())

        self._do(run())

    def enqueue_many(self, jobs: Sequence[int]) -> None:
        async def run() -> None:
            queries = await self._queries()
            for start in range(0, len(jobs), BULK):
                some = jobs[start : start + BULK]
                await queries.enqueue(
                    [ENTRYPOINT] * len(some), [str(job).encode() for job in some], [0] * len(some)
                )  # fmt: skip

        self._do(run())

    def start(self, log: Log) -> float:
        self.began = 0.0
        self.app: PgQueuer | None = None
        self.worker = InThread(lambda: asyncio.run(self._work(log)))
        self.worker.start()
        while not self.began:
            self.worker.check()
            time.sleep(0.001)
        return self.began

    async def _work(self, log: Log) -> None:
        link = await asyncpg.connect(self.url)
        app = PgQueuer.from_asyncpg_connection(link)

        @app.entrypoint(ENTRYPOINT)
        async def noop(job: Job) -> None:
            log.note(int(job.payload or b""))

        self.app, self.own = app, asyncio.get_running_loop()
        self.began = time.monotonic()
        await app.run(batch_size=self.batch, dequeue_timeout=timedelta(seconds=30))

    def left(self) -> int:
        async def run() -> int:
            await self._queries()
            return int(await self.link.fetchval("SELECT count(*) FROM pgqueuer"))  # type: ignore[union-attr]

        return int(self._do(run()))  # type: ignore[call-overload]

    def stop(self) -> None:
        assert self.app is not None
        self.own.call_soon_threadsafe(self.app.shutdown.set)
        self.worker.join()
