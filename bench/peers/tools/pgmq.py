"""pgmq by its Python client, which also brings its SQL: read a batch with a visibility timeout, delete it."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from pgmq import PGMQueue
from pgmq.install import install_pgmq_from_sql

from bench.peers.speaking import InThread, Log, Place

QUEUE = "bench"
BATCH = 1000


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = place.postgres
        self._queue: PGMQueue | None = None

    @property
    def queue(self) -> PGMQueue:
        if self._queue is None:
            self._queue = PGMQueue(conn_string=self.url, init_extension=False)
        return self._queue

    def set_up(self) -> None:
        install_pgmq_from_sql(dsn=self.url)
        self.queue.create_queue(QUEUE)

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.queue.send(QUEUE, {"id": job})

    def enqueue_many(self, jobs: Sequence[int]) -> None:
        for start in range(0, len(jobs), BATCH):
            self.queue.send_batch(QUEUE, [{"id": job} for job in jobs[start : start + BATCH]])

    def start(self, log: Log) -> float:
        self.is_wanted = True
        self.queue.metrics(QUEUE)  # its pool is open before the clock runs
        self.worker = InThread(lambda: self._work(log))
        return self.worker.start()

    def _work(self, log: Log) -> None:
        while self.is_wanted:
            # Waits inside the server, which looks every poll_interval_ms.
            read = self.queue.read_with_poll(QUEUE, vt=30, qty=BATCH, max_poll_seconds=1, poll_interval_ms=100)
            if not read:
                continue
            for message in read:
                log.note(message.message["id"])
            self.queue.delete_batch(QUEUE, [message.msg_id for message in read])

    def left(self) -> int:
        with psycopg.connect(self.url) as link:
            return int(link.execute(f"SELECT count(*) FROM pgmq.q_{QUEUE}").fetchone()[0])

    def stop(self) -> None:
        self.is_wanted = False
        self.worker.join()
