"""Absurd: a claim with a timeout; each attempt is a separate run, and completing names the run."""

from __future__ import annotations

from typing import Any

import psycopg
from absurd_sdk import Absurd
from absurdctl import BUNDLED_SCHEMA_SQL

from bench.zombies.stage import LEASE, Ending, act, me, place, run

QUEUE = "zombies"


def client() -> Absurd:
    return Absurd(place()["postgres"], queue_name=QUEUE)


def set_up() -> None:
    with psycopg.connect(place()["postgres"], autocommit=True) as link:
        link.execute(BUNDLED_SCHEMA_SQL)
    client().create_queue()


def enqueue() -> None:
    client().spawn("job", {}, queue=QUEUE)


def work() -> None:
    ending = Ending()
    app = client()

    @app.register_task(name="job")
    def job(params: Any, ctx: Any) -> str:
        return act()

    # What start_worker does in a loop, so that SIGTERM can end it between two jobs.
    while not ending.is_asked:
        app.work_batch(worker_id=me(), claim_timeout=LEASE, batch_size=1)


def records() -> dict[str, object]:
    with psycopg.connect(place()["postgres"]) as link:
        state, payload = link.execute(f"SELECT state, completed_payload FROM absurd.t_{QUEUE}").fetchone()
        runs = link.execute(
            "SELECT attempt, state, claimed_by, result, failure_reason ->> 'name'"
            f" FROM absurd.r_{QUEUE} ORDER BY attempt"
        ).fetchall()
    return {
        "is_finished": state == "completed",
        "result": payload,
        "trace": "; ".join(f"run {r[0]}: {r[2]}, {r[1]}" + (f" ({r[4]})" if r[4] else "") for r in runs),
        "rows": [dict(zip(("attempt", "state", "claimed_by", "result", "failure"), row, strict=True)) for row in runs],
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
