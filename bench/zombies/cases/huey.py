"""huey on Valkey, with its result store; it hands a task out once and has no way to take it back."""

from __future__ import annotations

import logging

import redis
from huey import RedisHuey

from bench.zombies.stage import Ending, act, place, run

huey = RedisHuey("zombies", url=place()["valkey"])


@huey.task()
def job() -> str:
    return act()


def set_up() -> None:
    redis.Redis.from_url(place()["valkey"]).flushdb()


def enqueue() -> None:
    huey.enqueue(job.s().__class__((), {}, id="the-job"))


def work() -> None:
    logging.basicConfig(level=logging.INFO)
    consumer = huey.create_consumer(workers=1, periodic=False)
    consumer.start()
    Ending().wait()  # after the start, which sets its handlers
    consumer.stop(graceful=True)


def records() -> dict[str, object]:
    result = huey.result("the-job", preserve=True)
    return {
        "is_finished": result is not None,
        "result": result,
        "trace": "none",
        "rows": [{"pending": huey.pending_count(), "results": huey.result_count()}],
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
