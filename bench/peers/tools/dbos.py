"""DBOS Transact: a workflow on a queue, its system database PostgreSQL; `setting` is how often it polls, in seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg
from dbos import DBOS, DBOSClient, DBOSConfig

from bench.peers.speaking import Log, Place

QUEUE = "bench"
_log = Log()


@DBOS.workflow(name="noop")
def noop(job: int) -> None:
    _log.note(job)


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = place.postgres
        self.poll = float(place.setting or 1.0)
        self._client: DBOSClient | None = None

    @property
    def client(self) -> DBOSClient:
        if self._client is None:
            self._client = DBOSClient(system_database_url=self.url)
        return self._client

    def _launch(self) -> None:
        config: DBOSConfig = {
            "name": "bench", "system_database_url": self.url, "application_version": "1", "log_level": "WARNING",
        }  # fmt: skip
        DBOS(config=config)
        DBOS.launch()
        DBOS.register_queue(QUEUE, polling_interval_sec=self.poll)

    def set_up(self) -> None:
        self._launch()
        DBOS.destroy()

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.client.enqueue({"queue_name": QUEUE, "workflow_name": "noop"}, job)

    def start(self, log: Log) -> float:
        global _log  # noqa: PLW0603 - the workflow is registered once, by its module
        _log = log
        self._launch()
        # Launching takes a second and does not belong to the drain; it may have begun to dequeue before that returns.
        return min([time.monotonic(), *(at for _, at in log.read()[:1])])

    def left(self) -> int:
        with psycopg.connect(self.url) as link:
            return int(
                link.execute("SELECT count(*) FROM dbos.workflow_status WHERE status <> 'SUCCESS'").fetchone()[0]
            )

    def stop(self) -> None:
        DBOS.destroy(workflow_completion_timeout_sec=10)
