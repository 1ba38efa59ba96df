"""dramatiq on Valkey: its broker's `heartbeat_timeout`, and results by its middleware in the same server."""

from __future__ import annotations

import logging

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from dramatiq.results.errors import ResultMissing

from bench.zombies.stage import LEASE, Ending, act, place, run

# The default lets one command in a thousand look for dead workers; here each does, or a quiet queue takes minutes.
broker = RedisBroker(url=place()["valkey"], heartbeat_timeout=LEASE * 1000, maintenance_chance=1_000_000)
backend = RedisBackend(url=place()["valkey"])
broker.add_middleware(Results(backend=backend))
dramatiq.set_broker(broker)


@dramatiq.actor(broker=broker, queue_name="zombies", store_results=True)
def job() -> str:
    return act()


MESSAGE = job.message().copy(message_id="the-job")


def set_up() -> None:
    broker.client.flushdb()


def enqueue() -> None:
    broker.enqueue(MESSAGE)


def work() -> None:
    logging.basicConfig(level=logging.INFO)
    ending = Ending()
    worker = dramatiq.Worker(broker, worker_threads=1)
    worker.start()
    ending.wait()
    worker.stop()


def records() -> dict[str, object]:
    try:
        result = backend.get_result(MESSAGE)
    except ResultMissing:
        result = None
    kept = int(broker.client.hlen("dramatiq:zombies.msgs"))
    return {
        "is_finished": result is not None and not kept,
        "result": result,
        "trace": "none",
        "rows": [{"messages": kept}],
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
