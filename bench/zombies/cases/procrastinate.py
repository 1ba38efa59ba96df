"""Procrastinate: heartbeats and the periodic task of its guide. It keeps no results, so the handler writes its own."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import procrastinate
import psycopg

from bench.zombies import own_table
from bench.zombies.stage import LEASE, act_apart, place, run


def app_of(url: str) -> procrastinate.App:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    @app.task(name="job")
    async def job() -> None:
        own_table.write(url, await act_apart())

    # As in "Retry stalled jobs", with a shorter period: a sixth field counts seconds.
    @app.periodic(cron="* * * * * */1")
    @app.task(name="retry_stalled_jobs", queueing_lock="retry_stalled_jobs", pass_context=True)
    async def retry_stalled_jobs(context: Any, timestamp: int) -> None:
        for stalled in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=LEASE):
            await app.job_manager.retry_job(stalled)

    return app


async def _set_up() -> None:
    async with app_of(place()["postgres"]).open_async() as app:
        await app.schema_manager.apply_schema_async()


def set_up() -> None:
    asyncio.run(_set_up())
    own_table.make(place()["postgres"])


async def _enqueue() -> None:
    async with app_of(place()["postgres"]).open_async() as app:
        await app.configure_task("job").defer_async()


def enqueue() -> None:
    asyncio.run(_enqueue())


async def _work() -> None:
    async with app_of(place()["postgres"]).open_async() as app:
        # Two at a time: the periodic task must run beside the job. SIGTERM is its own: it finishes and goes.
        await app.run_worker_async(
            concurrency=2, update_heartbeat_interval=LEASE / 3, stalled_worker_timeout=10 * LEASE,
            fetch_job_polling_interval=0.5,
        )  # fmt: skip


def work() -> None:
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(_work())


def records() -> dict[str, object]:
    with psycopg.connect(place()["postgres"]) as link:
        status, attempts = link.execute(
            "SELECT status::text, attempts FROM procrastinate_jobs WHERE task_name = 'job'"
        ).fetchone()
        events = link.execute(
            "SELECT e.type::text FROM procrastinate_events e JOIN procrastinate_jobs j ON j.id = e.job_id"
            " WHERE j.task_name = 'job' ORDER BY e.id"
        ).fetchall()
    return {
        "is_finished": status == "succeeded",
        "trace": "events: " + ", ".join(e for (e,) in events),
        "own_result": own_table.read(place()["postgres"]),
        "rows": [{"status": status, "attempts": attempts, "events": [e for (e,) in events]}],
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
