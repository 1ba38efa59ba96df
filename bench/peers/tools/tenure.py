"""tenure through its engine: claims and submits in batches, with history, events, receipts and request ids. Our venv.

`setting` is the store: sqlite (a file) or postgres. `store_url` is the place to add another.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from bench.peers.speaking import InThread, Log, Place
from tenure import Client
from tenure.core import commands
from tenure.core.records import Task

PROJECT = "bench"
BATCH = 100
BULK = 500


def store_url(place: Place) -> str:
    return place.postgres if place.setting == "postgres" else f"{place.folder}/tenure.db"


def drain_once(client: Client, log: Log, batch: int = BATCH, wait: float = 0.0) -> int:
    """Claim up to `batch` tasks in one command and hand all of them in, in one batch; how many there were."""
    claimed = client.claim(n=batch, wait=wait, request_id=os.urandom(16).hex())
    if not claimed.ok:
        return 0
    grants = claimed.claims or (claimed,)
    submits = []
    for grant in grants:
        assert grant.task is not None
        assert grant.receipt is not None
        log.note(int(grant.task["title"]))
        submits.append(
            commands.Submit(
                project=PROJECT, receipt=grant.receipt, data={"ok": True}, summary="done",
                request_id=os.urandom(16).hex(),
            )
        )  # fmt: skip
    for outcome in client.batch(submits):
        if getattr(outcome, "outcome", "") != "ACCEPTED":
            raise RuntimeError(f"ACCEPTED was expected, not {outcome!r}")
    return len(grants)


class Peer:
    def __init__(self, place: Place) -> None:
        self.url = store_url(place)
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = Client(self.url, PROJECT, agent="bench", create=True)
        return self._client

    def set_up(self) -> None:
        self.client.init()

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            outcome = self.client.add(str(job))
            if not outcome.ok:
                raise RuntimeError(repr(outcome))

    def enqueue_many(self, jobs: Sequence[int]) -> None:
        for start in range(0, len(jobs), BULK):
            some = [
                commands.Add(project=PROJECT, task=commands.NewTask(title=str(job)))
                for job in jobs[start : start + BULK]
            ]
            for outcome in self.client.batch(some):
                if getattr(outcome, "outcome", "") != "CREATED":
                    raise RuntimeError(repr(outcome))

    def start(self, log: Log) -> float:
        self.is_wanted = True
        self.began = 0.0
        self.worker = InThread(lambda: self._work(log))
        self.worker.start()
        while not self.began:
            self.worker.check()
            time.sleep(0.001)
        return self.began

    def _work(self, log: Log) -> None:
        with Client(self.url, PROJECT, agent="worker") as client:
            self.began = time.monotonic()
            while self.is_wanted:
                drain_once(client, log, wait=0.5)

    def left(self) -> int:
        with self.client.store.begin("local", write=False) as tx:
            states: dict[str, Any] = tx.count(Task, {"project": PROJECT}, "state")
        return sum(number for state, number in states.items() if state != "completed")

    def stop(self) -> None:
        self.is_wanted = False
        self.worker.join()
