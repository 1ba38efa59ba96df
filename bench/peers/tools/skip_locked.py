"""The loop that most people write first: FOR UPDATE SKIP LOCKED, one job at a time, a short sleep when idle."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg

from bench.peers.speaking import InThread, Log, Place

POLL = 0.1
_TABLE = """
    CREATE TABLE job (
        id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', payload text NOT NULL, result text,
        locked_until timestamptz
    );
    CREATE INDEX job_state ON job (state, id);
"""
_CLAIM = """
    UPDATE job SET state = 'running', locked_until = now() + interval '30 seconds'
     WHERE id = (
        SELECT id FROM job
         WHERE state = 'ready' OR (state = 'running' AND locked_until < now())
         ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
     )
 RETURNING id
"""
_DONE = "UPDATE job SET state = 'done', result = %s WHERE id = %s"


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = place.postgres
        self.link = psycopg.connect(place.postgres, autocommit=True)

    def set_up(self) -> None:
        self.link.execute(_TABLE)

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self.link.execute("INSERT INTO job (id, payload) VALUES (%s, %s)", (job, f'{{"id": {job}}}'))

    def enqueue_many(self, jobs: Sequence[int]) -> None:
        with self.link.cursor() as cursor, cursor.copy("COPY job (id, payload) FROM STDIN") as copy:
            for job in jobs:
                copy.write_row((job, f'{{"id": {job}}}'))

    def start(self, log: Log) -> float:
        self.is_wanted = True
        self.worker = InThread(lambda: self._work(log))
        return self.worker.start()

    def _work(self, log: Log) -> None:
        with psycopg.connect(self.url, autocommit=True) as link:
            while self.is_wanted:
                row = link.execute(_CLAIM, prepare=True).fetchone()
                if row is None:
                    time.sleep(POLL)
                    continue
                log.note(row[0])
                link.execute(_DONE, ("ok", row[0]), prepare=True)

    def left(self) -> int:
        return int(self.link.execute("SELECT count(*) FROM job WHERE state <> 'done'").fetchone()[0])

    def stop(self) -> None:
        self.is_wanted = False
        self.worker.join()
