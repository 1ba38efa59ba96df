"""The raw limit: one statement claims a batch, one completes it. No history, no events, no lease, no check."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from bench.peers.speaking import InThread, Log, Place

BATCH = 1000
TABLE = """
    CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', payload text NOT NULL);
    CREATE INDEX job_ready ON job (id) WHERE state = 'ready';
"""
# One statement and one commit for both; the second part wakes an idle worker.
_ADD = "WITH made AS (INSERT INTO job (id, payload) VALUES (%s, %s)) SELECT pg_notify('job', '')"
CLAIM = """
    UPDATE job SET state = 'running'
     WHERE id = ANY (ARRAY (SELECT id FROM job WHERE state = 'ready' ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED))
 RETURNING id
"""
DONE = "UPDATE job SET state = 'done' WHERE id = ANY (%s)"


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = place.postgres
        self.link = psycopg.connect(place.postgres, autocommit=True)
        self.listener = psycopg.connect(place.postgres, autocommit=True)

    def set_up(self) -> None:
        self.link.execute(TABLE)

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.link.execute(_ADD, (job, f'{{"id": {job}}}'), prepare=True)

    def enqueue_many(self, jobs: Sequence[int]) -> None:
        with self.link.transaction(), self.link.cursor() as cursor:
            with cursor.copy("COPY job (id, payload) FROM STDIN") as copy:
                for job in jobs:
                    copy.write_row((job, f'{{"id": {job}}}'))
            cursor.execute("NOTIFY job")

    def start(self, log: Log) -> float:
        self.is_wanted = True
        self.listener.execute("LISTEN job")
        self.worker = InThread(lambda: self._work(log))
        return self.worker.start()

    def _work(self, log: Log) -> None:
        with psycopg.connect(self.url, autocommit=True) as link:
            while self.is_wanted:
                claimed = [row[0] for row in link.execute(CLAIM, (BATCH,), prepare=True)]
                if not claimed:
                    for _ in self.listener.notifies(timeout=0.5, stop_after=1):
                        pass
                    continue
                for job in claimed:
                    log.note(job)
                link.execute(DONE, (claimed,), prepare=True)

    def left(self) -> int:
        return int(self.link.execute("SELECT count(*) FROM job WHERE state <> 'done'").fetchone()[0])

    def stop(self) -> None:
        self.is_wanted = False
        self.worker.join()
