"""The loop that most people write: FOR UPDATE SKIP LOCKED, a time until which the job is taken, completion by id."""

from __future__ import annotations

import time

import psycopg

from bench.zombies.stage import LEASE, Ending, act, me, place, run, say

_CLAIM = f"""
    UPDATE job SET state = 'running', worker = %s, attempts = attempts + 1,
                   locked_until = now() + interval '{LEASE} seconds'
     WHERE id = (
        SELECT id FROM job
         WHERE state = 'ready' OR (state = 'running' AND locked_until < now())
         ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
     )
 RETURNING id
"""


def link() -> psycopg.Connection:
    return psycopg.connect(place()["postgres"], autocommit=True)


def set_up() -> None:
    with link() as own:
        own.execute(
            "CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', worker text, result text,"
            " attempts int NOT NULL DEFAULT 0, locked_until timestamptz)"
        )


def enqueue() -> None:
    with link() as own:
        own.execute("INSERT INTO job (id) VALUES (1)")


def work() -> None:
    ending = Ending()
    with link() as own:
        while not ending.is_asked:
            row = own.execute(_CLAIM, (me(),)).fetchone()
            if row is None:
                time.sleep(0.1)
                continue
            result = act()
            changed = own.execute("UPDATE job SET state = 'done', result = %s WHERE id = %s", (result, row[0])).rowcount
            say(f"completed {changed} row")


def records() -> dict[str, object]:
    with link() as own:
        state, result, attempts = own.execute("SELECT state, result, attempts FROM job").fetchone()
    return {
        "is_finished": state == "done",
        "result": result,
        "rows": [{"state": state, "attempts": attempts}],
        "trace": f"a count: attempts {attempts}",
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
