"""Several processes on one file: how much they get done together, and how evenly it falls."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.ground import PROJECT, WrongAnswer, check, claim_next, fill, open_engine, submit
from tenure.core.records import Result


class Share(NamedTuple):
    """What one process did in its time."""

    tasks: list[str]
    claim_times: list[float]


class Together(NamedTuple):
    pairs: float  # a second, all together
    least: int
    most: int
    claim_median: float  # seconds
    claim_p99: float


def run(folder: Path, processes: int, seconds: float, ready: int) -> Together:
    """Each process claims and submits one task, repeatedly. Raises WrongAnswer on anything else."""
    path = folder / f"processes-{processes}.db"
    engine = open_engine(path)
    fill(engine, ready, "rows")
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes + 1)
    answers = context.Queue()
    workers = [
        context.Process(target=_work, args=(str(path), number, seconds, start, answers)) for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    start.wait()
    shares = [answers.get(timeout=seconds + 60) for _ in workers]
    for worker in workers:
        worker.join()
    broken = [share for share in shares if isinstance(share, str)]
    if broken:
        raise WrongAnswer(f"{len(broken)} of {processes} processes failed: {broken[0]}")
    done = [task for share in shares for task in share.tasks]
    with engine.store.begin("local", write=False) as tx:
        kept = {r.task for r in tx.find(Result, {"project": PROJECT, "accepted": True})}
    engine.store.close()
    if len(set(done)) != len(done) or kept != set(done):
        raise WrongAnswer(f"{len(done)} accepted, {len(set(done))} tasks, {len(kept)} results")
    times = sorted(t for share in shares for t in share.claim_times)
    counts = [len(share.tasks) for share in shares]
    return Together(
        len(done) / seconds, min(counts), max(counts), statistics.median(times), times[int(len(times) * 0.99)]
    )  # fmt: skip


def _work(path: str, number: int, seconds: float, start: Any, answers: Any) -> None:
    share: Share | str = Share([], [])
    try:
        engine = open_engine(Path(path))
        start.wait()
        share = _pairs(engine, number, seconds)
    except Exception as error:  # noqa: BLE001 - the parent raises it
        share = f"{type(error).__name__}: {error}"
    answers.put(share)


def _pairs(engine: Any, number: int, seconds: float) -> Share:
    share = Share([], [])
    until = time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        (grant,) = engine.run([claim_next(number)])
        share.claim_times.append(time.monotonic() - began)
        check([grant], "GRANTED")
        check(engine.run([submit(grant.receipt)]), "ACCEPTED")
        share.tasks.append(grant.task["id"])
    return share
