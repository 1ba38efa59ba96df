"""DBOS: the second process starts with the same executor id and recovers pending work, as its guide describes."""

from __future__ import annotations

import logging

import psycopg
from dbos import DBOS, DBOSClient, DBOSConfig

from bench.zombies.stage import Ending, act, place, run

QUEUE = "zombies"
JOB = "the-job"


@DBOS.step(name="step")
def step() -> str:
    return act()


@DBOS.workflow(name="job")
def job() -> str:
    return step()


def launch() -> None:
    config: DBOSConfig = {
        "name": "zombies", "system_database_url": place()["postgres"], "application_version": "1", "log_level": "INFO",
    }  # fmt: skip
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=0.2)


def set_up() -> None:
    launch()
    DBOS.destroy()


def enqueue() -> None:
    DBOSClient(system_database_url=place()["postgres"]).enqueue(
        {"queue_name": QUEUE, "workflow_name": "job", "workflow_id": JOB}
    )


def work() -> None:
    logging.basicConfig(level=logging.INFO)
    ending = Ending()
    launch()
    ending.wait()
    DBOS.destroy(workflow_completion_timeout_sec=10)


def records() -> dict[str, object]:
    with psycopg.connect(place()["postgres"]) as link:
        row = link.execute(
            "SELECT status, executor_id, recovery_attempts FROM dbos.workflow_status WHERE workflow_uuid = %s", (JOB,)
        ).fetchone()
        steps = link.execute(
            "SELECT function_id, function_name FROM dbos.operation_outputs WHERE workflow_uuid = %s ORDER BY 1", (JOB,)
        ).fetchall()
    status, executor, attempts = row
    result = None
    if status == "SUCCESS":
        result = DBOSClient(system_database_url=place()["postgres"]).retrieve_workflow(JOB).get_result()
    return {
        "is_finished": status == "SUCCESS",
        "result": result,
        "trace": f"a count: recovery_attempts {attempts}",
        "rows": [{"status": status, "executor_id": executor, "recovery_attempts": attempts, "steps": len(steps)}],
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
