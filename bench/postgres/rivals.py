"""What ours is measured against: the raw limit, and PgQueuer in its own venv."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from psycopg import sql

from bench.gathering import together
from bench.ground import WrongAnswer
from bench.peers.talking import Talk
from bench.peers.tools import raw_limit
from bench.postgres.ground import Ground

_FILL = "INSERT INTO job (id, payload) SELECT n, format('{\"id\": %%s}', n) FROM generate_series(1, %s) AS n"
PGQUEUER_BATCH = 200  # ten unless set, which is a third of the speed


class RawRates(NamedTuple):
    """Jobs a second: claimed and completed; and each of the two statements by itself."""

    drain: float
    claims: float
    submits: float


def raw(ground: Ground, seconds: float) -> RawRates:
    """The best of one and of two connections: a limit is not helped by what slows it."""
    both = [_raw(ground, seconds / 2, threads) for threads in (1, 2)]
    return RawRates(*(max(rates) for rates in zip(*both, strict=True)))


def _raw(ground: Ground, seconds: float, threads: int) -> RawRates:
    schema = ground.schema()
    with ground.connect() as own:
        own.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        _enter(own, schema)
        own.execute(raw_limit.TABLE)
        jobs = int(400_000 * seconds) + 20 * raw_limit.BATCH
        own.execute(_FILL, (jobs,))
        own.execute("VACUUM (ANALYZE) job")
        links = [ground.connect() for _ in range(threads)]
        for link in links:
            _enter(link, schema)

        def claim(thread: int) -> list[int]:
            return [row[0] for row in links[thread].execute(raw_limit.CLAIM, (raw_limit.BATCH,), prepare=True)]

        def done(thread: int, claimed: list[int]) -> None:
            links[thread].execute(raw_limit.DONE, (claimed,), prepare=True)

        def drain(thread: int) -> list[list[int]]:
            return _while(seconds / 2, lambda: _both(claim, done, thread))

        drained, took = together(threads, drain)
        batches, claiming = together(threads, lambda thread: _while(seconds / 4, lambda: claim(thread)))
        _, submitting = together(threads, lambda thread: [done(thread, some) for some in batches[thread]])
        all_drained, all_claimed = _flat(drained), _flat(batches)
        _check(own, all_drained + all_claimed)
        for link in links:
            link.close()
        own.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
    return RawRates(len(all_drained) / took, len(all_claimed) / claiming, len(all_claimed) / submitting)


def _both(claim: Callable[[int], list[int]], done: Callable[[int, list[int]], None], thread: int) -> list[int]:
    claimed = claim(thread)
    done(thread, claimed)
    return claimed


def _while(seconds: float, action: Callable[[], list[int]]) -> list[list[int]]:
    """As long as there is time and something comes back."""
    until = time.perf_counter() + seconds
    made = []
    while time.perf_counter() < until and (some := action()):
        made.append(some)
    return made


def _flat(lists: list[list[list[int]]]) -> list[int]:
    return [job for batches in lists for batch in batches for job in batch]


def _check(link: Any, claimed: list[int]) -> None:
    done = [row[0] for row in link.execute("SELECT id FROM job WHERE state = 'done' ORDER BY id")]
    if sorted(claimed) != done:
        raise WrongAnswer(f"the raw limit claimed {len(claimed)} jobs and completed {len(done)}")


def _enter(link: Any, schema: str) -> None:
    link.execute("SELECT set_config('search_path', %s, false)", (schema,))


def pgqueuer(ground: Ground, python: Path, folder: Path, jobs: int) -> float:
    """Jobs a second that one worker drains; each was executed once. Raises PeerFailed with its reason."""
    name = ground.schema()
    place = {"folder": str(folder), "postgres": ground.server.create(name), "setting": str(PGQUEUER_BATCH)}
    try:
        log = folder / "pgqueuer.log"
        with Talk(python, "pgqueuer", place, log) as client, Talk(python, "pgqueuer", place, log) as worker:
            client.ask("set_up")
            client.ask("enqueue_many", jobs=list(range(jobs)))
            took = worker.ask("drain", count=jobs)["seconds"]
            executed = sorted(job for job, _ in worker.ask("finish", count=jobs)["executed"])
        if executed != list(range(jobs)):
            raise WrongAnswer(f"PgQueuer executed {len(executed)} of {jobs} jobs, {len(set(executed))} different ones")
    finally:
        ground.server.drop(name)
    return jobs / float(took)
