"""Celery on Valkey: `acks_late`, a short `visibility_timeout`, results in the same server, its own worker process."""

from __future__ import annotations

import json
import os
import sys

import redis
from celery import Celery

from bench.zombies.stage import LEASE, act, place, run

JOB = "the-job"
app = Celery("zombies", broker=place()["valkey"], backend=place()["valkey"])
app.conf.update(
    task_acks_late=True,
    # The last two let the restoring scan run each second; by default it runs about every 100 s.
    broker_transport_options={
        "visibility_timeout": LEASE, "unacked_restore_interval": 1, "unacked_restore_throttle": 1,
    },
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
)  # fmt: skip


@app.task(name="job")
def job() -> str:
    return act()


def set_up() -> None:
    redis.Redis.from_url(place()["valkey"]).flushdb()


def enqueue() -> None:
    job.apply_async(task_id=JOB)


def work() -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "celery",
        "-A",
        "bench.zombies.cases.celery",
        "worker",
        "-c",
        "1",
        "-l",
        "INFO",
    ]
    os.execv(sys.executable, command)


def records() -> dict[str, object]:
    valkey = redis.Redis.from_url(place()["valkey"])
    kept = valkey.get(f"celery-task-meta-{JOB}")
    meta = json.loads(kept) if kept else {}
    waiting = int(valkey.llen("celery"))
    return {
        "is_finished": meta.get("status") == "SUCCESS",
        "result": meta.get("result"),
        "trace": "none",
        "rows": [{"status": meta.get("status"), "queued": waiting, "unacked": int(valkey.hlen("unacked"))}],
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
