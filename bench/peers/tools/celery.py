"""Celery on Valkey: its own worker process, one child (`-c 1`), results ignored, acknowledged after the task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import redis
from celery import Celery
from celery.signals import worker_ready

from bench.peers.speaking import FileLog, Log, Place

app = Celery("bench", broker=os.environ.get("BENCH_BROKER", "memory://"))
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=64,  # its guide on optimising: more than the usual 4 for short tasks
    worker_hijack_root_logger=False,
)


@app.task(name="noop")
def noop(job: int) -> None:
    _log().note(job)


_open: list[FileLog] = []


def _log() -> FileLog:
    if not _open:
        _open.append(FileLog(os.environ["BENCH_EXECUTED"]))
    return _open[0]


@worker_ready.connect
def _ready(**_: object) -> None:
    Path(os.environ["BENCH_READY"]).write_text(repr(time.monotonic()))


class Peer:
    has_processes = True

    def __init__(self, place: Place) -> None:
        self.place = place
        app.conf.broker_url = place.valkey
        self.valkey = redis.Redis.from_url(place.valkey)
        self.pool = place.setting or "prefork"

    def set_up(self) -> None:
        self.valkey.flushdb()

    def enqueue(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            noop.delay(job)

    def start(self, log: Log) -> float:
        assert isinstance(log, FileLog)
        ready = Path(self.place.folder, "ready")
        ready.unlink(missing_ok=True)
        own = {"BENCH_BROKER": self.place.valkey, "BENCH_EXECUTED": log.path, "BENCH_READY": str(ready)}
        self.process = subprocess.Popen(
            [
                sys.executable, "-P", "-m", "celery", "-A", "bench.peers.tools.celery", "worker", "-c", "1",
                "-P", self.pool, "-l", "WARNING",
            ],
            env={**os.environ, **own}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        while not (ready.exists() and ready.read_text()):
            if self.process.poll() is not None:
                raise RuntimeError(f"the worker ended with {self.process.returncode}")
            time.sleep(0.005)
        return float(ready.read_text())

    def left(self) -> int:
        return int(self.valkey.llen("celery")) + int(self.valkey.hlen("unacked"))

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
