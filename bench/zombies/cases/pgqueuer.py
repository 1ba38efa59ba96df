"""PgQueuer: `heartbeat_timeout` of its worker. It keeps no results, so the handler writes its own."""

from __future__ import annotations

import asyncio
import logging
import signal
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.zombies import own_table
from bench.zombies.stage import LEASE, act_apart, place, run


async def _set_up() -> None:
    await Queries.from_asyncpg_connection(await asyncpg.connect(place()["postgres"])).install()


def set_up() -> None:
    asyncio.run(_set_up())
    own_table.make(place()["postgres"])


async def _enqueue() -> None:
    await Queries.from_asyncpg_connection(await asyncpg.connect(place()["postgres"])).enqueue("job", b"1")


def enqueue() -> None:
    asyncio.run(_enqueue())


async def _work() -> None:
    app = PgQueuer.from_asyncpg_connection(await asyncpg.connect(place()["postgres"]))

    @app.entrypoint("job")
    async def job(_: Job) -> None:
        own_table.write(place()["postgres"], await act_apart())

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.shutdown.set)
    await app.run(dequeue_timeout=timedelta(seconds=0.5), heartbeat_timeout=timedelta(seconds=LEASE))


def work() -> None:
    logging.basicConfig(level=logging.INFO)
    asyncio.run(_work())


async def _records() -> dict[str, object]:
    link = await asyncpg.connect(place()["postgres"])
    queued = await link.fetch("SELECT status::text FROM pgqueuer")
    logged = await link.fetch("SELECT status::text FROM pgqueuer_log ORDER BY id")
    return {
        "is_finished": not queued,
        "trace": "log: " + ", ".join(r["status"] for r in logged),
        "own_result": own_table.read(place()["postgres"]),
        "rows": [{"in": "pgqueuer", "status": r["status"]} for r in queued]
        + [{"in": "pgqueuer_log", "status": r["status"]} for r in logged],
    }


def records() -> dict[str, object]:
    return asyncio.run(_records())


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
