"""The open loop: commands come at times that were fixed beforehand, whether or not the earlier ones are answered.

A latency counts from the moment at which the command was meant to come. Where the batcher refuses, as it does when too
many wait, the command is tried again, and its clock goes on. A run that falls behind for good is cut off: those that
were never sent count as late as the first of them was by then, which is less than they would have been.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from bench.ground import WrongAnswer
from bench.postgres.ground import Board, Ground, claim_next, submit
from bench.postgres.scale import Scale
from tenure.core import commands
from tenure.core.errors import Overloaded
from tenure.core.outcomes import Outcome
from tenure.engine.runtime.batcher import MOST_WAITING, Batcher

PATIENCE = 60.0  # seconds after the last arrival
TOO_LATE = 3.0  # seconds behind, and the run is cut off
PAUSE = 0.0005  # between two looks at the clock, and after a refusal


class Latencies(NamedTuple):
    """In seconds; `rate` is how many a second were answered from the first arrival to the last answer."""

    p50: float
    p99: float
    rate: float
    unsent: int  # since the run was cut off


class Answered(NamedTuple):
    latencies: Latencies
    outcomes: list[Outcome]


def measure(
    ground: Ground, scale: Scale, rate: float, seconds: float, *, with_submits: bool
) -> tuple[Latencies, Latencies | None]:
    """Claims in some projects, each by another agent, `rate` a second; and then their submits."""
    names = [f"project-{n}" for n in range(scale.projects)]
    board = ground.board(names)
    count = int(rate * seconds)
    board.fill(count // len(names) + 1 + scale.batch)
    crew, *_ = [board.register(name, count // len(names) + 1 + scale.batch) for name in names]
    _warm(board, names, crew[-scale.batch :])
    asked = [claim_next(names[n % len(names)], crew[n // len(names)]) for n in range(count)]
    chance = random.Random(20)
    submitted = None
    with Batcher(board.engine, most_waiting=MOST_WAITING) as batcher:
        claimed = _answered(batcher, asked, _times(chance, rate, count), "GRANTED")
        tasks = [o.task["id"] for o in claimed.outcomes if o.task is not None]
        board.granted += tasks
        if with_submits:
            handed = [submit(a.project, str(o.receipt)) for a, o in zip(asked, claimed.outcomes, strict=False)]
            submitted = _answered(batcher, handed, _times(chance, rate, len(handed)), "ACCEPTED")
            board.accepted += tasks[: len(submitted.outcomes)]
    board.verify()
    board.close()
    return claimed.latencies, submitted.latencies if submitted is not None else None


def _warm(board: Board, names: Sequence[str], crew: Sequence[str]) -> None:
    """Statements are prepared."""
    for project in names[:2]:
        board.submit(project, board.claim([claim_next(project, agent) for agent in crew]))


def _times(chance: random.Random, rate: float, count: int) -> list[float]:
    """Arrivals that know nothing of each other, in seconds from the beginning."""
    at, found = 0.0, []
    for _ in range(count):
        at += chance.expovariate(rate)
        found.append(at)
    return found


def _answered(batcher: Batcher, asked: Sequence[commands.Command], times: Sequence[float], wanted: str) -> Answered:
    """Send each at its time, each as a separate caller."""
    count = len(asked)
    ended = [0.0] * count
    outcomes: list[Outcome | None] = [None] * count
    errors: list[BaseException] = []

    def noting(number: int) -> Callable[[Future[Outcome]], None]:
        def done(future: Future[Outcome]) -> None:
            ended[number] = time.perf_counter()
            error = future.exception()
            if error is not None:
                errors.append(error)
            else:
                outcomes[number] = future.result()

        return done

    gc.collect()
    gc.freeze()
    began = time.perf_counter() + 0.05
    sent = 0
    due = 0.0
    while sent < count and not errors and due - times[sent] < TOO_LATE:
        due = time.perf_counter() - began
        while sent < count and times[sent] <= due:
            try:
                future = batcher.submit(asked[sent], caller=sent)
            except Overloaded:
                break
            future.add_done_callback(noting(sent))
            sent += 1
        time.sleep(PAUSE)
    until = time.monotonic() + PATIENCE
    while not errors and not all(ended[:sent]) and time.monotonic() < until:
        time.sleep(0.01)
    gc.unfreeze()
    wrong = [o for o in outcomes[:sent] if o is None or o.outcome != wanted]
    if errors or wrong:
        raise WrongAnswer(f"{wanted} was expected, not {(errors or wrong)[0]!r}") from (errors or [None])[0]
    latencies = [end - began - at for end, at in zip(ended[:sent], times, strict=False)]
    latencies += [due - times[sent]] * (count - sent) if sent < count else []
    latencies.sort()
    rate = sent / (max(ended) - began - times[0])
    good = [o for o in outcomes if o is not None]
    return Answered(Latencies(latencies[count // 2], latencies[int(count * 0.99)], rate, count - sent), good)
