"""Absurd by its Python SDK and the schema that `absurdctl` brings; `setting` is the batch size of its worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from absurd_sdk import Absurd
from absurdctl import BUNDLED_SCHEMA_SQL

from bench.peers.speaking import InThread, Log, Place

QUEUE = "bench"
POLL = 0.1  # as the other pollers here


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = place.postgres
        self.batch = int(place.setting or 1)
        self._client: Absurd | None = None

    @property
    def client(self) -> Absurd:
        if self._client is None:
            self._client = Absurd(self.url, queue_name=QUEUE)
        return self._client

    def set_up(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as link:
            link.execute(BUNDLED_SCHEMA_SQL)
        self.client.create_queue()

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.client.spawn("noop", {"id": job}, queue=QUEUE)

    def start(self, log: Log) -> float:
        self.app = Absurd(self.url, queue_name=QUEUE)

        @self.app.register_task(name="noop")
        def noop(params: dict[str, Any], ctx: Any) -> None:
            log.note(params["id"])

        self.worker = InThread(lambda: self.app.start_worker(batch_size=self.batch, poll_interval=POLL))
        return self.worker.start()

    def left(self) -> int:
        with psycopg.connect(self.url) as link:
            return int(link.execute(f"SELECT count(*) FROM absurd.t_{QUEUE} WHERE state <> 'completed'").fetchone()[0])

    def stop(self) -> None:
        self.app.stop_worker()
        self.worker.join()
        self.app.close()
