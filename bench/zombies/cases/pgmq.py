"""pgmq: read with a visibility timeout, work, archive. It keeps no results, so the handler writes its own."""

from __future__ import annotations

import psycopg
from pgmq import PGMQueue
from pgmq.install import install_pgmq_from_sql

from bench.zombies import own_table
from bench.zombies.stage import LEASE, Ending, act, place, run, say

QUEUE = "zombies"


def queue() -> PGMQueue:
    return PGMQueue(conn_string=place()["postgres"], init_extension=False)


def set_up() -> None:
    install_pgmq_from_sql(dsn=place()["postgres"])
    queue().create_queue(QUEUE)
    own_table.make(place()["postgres"])


def enqueue() -> None:
    queue().send(QUEUE, {"job": 1})


def work() -> None:
    ending = Ending()
    own = queue()
    while not ending.is_asked:
        for message in own.read_with_poll(QUEUE, vt=LEASE, qty=1, max_poll_seconds=1, poll_interval_ms=100) or ():
            own_table.write(place()["postgres"], act())
            say(f"archive answered {own.archive(QUEUE, message.msg_id)}")


def records() -> dict[str, object]:
    with psycopg.connect(place()["postgres"]) as link:
        queued = link.execute(f"SELECT msg_id, read_ct FROM pgmq.q_{QUEUE}").fetchall()
        archived = link.execute(f"SELECT msg_id, read_ct FROM pgmq.a_{QUEUE}").fetchall()
    reads = [n for _, n in (*queued, *archived)]
    return {
        "is_finished": not queued,
        "trace": f"a count: read_ct {reads[0]}" if reads else "none",
        "own_result": own_table.read(place()["postgres"]),
        "rows": [{"in": "queue", "read_ct": n} for _, n in queued]
        + [{"in": "archive", "read_ct": n} for _, n in archived],
    }


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
