"""Claims, renewals, submits and whole cycles in batches, by a few threads of one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.gathering import together
from bench.ground import TITLE
from bench.postgres.ground import Board, Ground, claim_next
from bench.postgres.scale import Scale
from tenure.core import commands
from tenure.core.commands import NewTask

MOST_AT_ONCE = 100  # tasks that one command may claim
BATCHES = 1  # of a thread in one project, a slice
SPARE = 1.6  # times the tasks that the first batches make us expect
MOST = 60_000  # tasks of one store

# Eight sets of what agents can do; what a task requires is one of them too, or nothing.
SKILLS = ((), ("python",), ("web",), ("python", "sql"), ("web", "design"), ("ops",), ("ops", "sql"), ("gpu",))
TRACKS = "ABC"
LANES = 20

Slice = list[list[commands.ClaimNext]]  # the batches of one thread


class Rates(NamedTuple):
    """Tasks a second, of one store in one round."""

    claims: float
    starts: float  # first renewals, which make a claimed task a running one
    renewals: float
    submits: float
    held: int  # claims that were live at once, each of another agent, every one of them renewed


def cycle(ground: Ground, scale: Scale, n: int) -> float:
    """Tasks claimed and submitted per second, in one project: a batch per transaction, `n` per command."""
    board, threads, batch = ground.board(), scale.threads, scale.batch

    def drain(thread: int, until: float, most: float) -> int:
        done = 0
        while time.perf_counter() < until and done + batch <= most:
            grants = board.claim([claim_next("bench", f"agent-{thread}-{k}", n) for k in range(batch // n)])
            board.submit("bench", grants)
            done += len(grants)
        return done

    board.fill(batch * (threads + 1))
    for thread in range(threads):  # agents become known, statements are prepared
        drain(thread, time.perf_counter() + 60, batch)
    _, warm = together(1, lambda _: drain(0, time.perf_counter() + 60, batch))
    each = _expected(batch / warm, scale) // threads
    board.fill(each * threads)
    until = time.perf_counter() + scale.seconds
    done, took = together(threads, lambda thread: drain(thread, until, each))
    board.verify()
    board.close()
    return sum(done) / took


def many_projects(ground: Ground, scale: Scale) -> Rates:
    """Each batch is of one project; no two threads have the same one."""
    names = [f"project-{n}" for n in range(max(scale.projects, scale.threads))]
    board = ground.board(names)
    board.begin_with(NewTask(title=TITLE))
    crew, *_ = [board.register(name, scale.batch) for name in names]

    def slice_of(thread: int) -> list[list[commands.ClaimNext]]:
        mine = names[thread :: scale.threads]
        return [[claim_next(project, agent) for agent in crew[: scale.batch]] for project in mine]

    return _slices(board, slice_of, scale, each=scale.batch)


def one_project(ground: Ground, scale: Scale) -> Rates:
    """Twenty lanes, and agents with eight sets of capabilities; every thread in the same project."""
    board = ground.board()
    board.begin_with(*lanes())
    crew = board.register("bench", BATCHES * scale.batch * scale.threads, SKILLS)

    def slice_of(thread: int) -> list[list[commands.ClaimNext]]:
        mine = crew[thread :: scale.threads]
        return [
            [claim_next("bench", agent) for agent in mine[n * scale.batch : (n + 1) * scale.batch]]
            for n in range(BATCHES)
        ]

    # Twice as many as are claimed: some agents can take few of the lanes, and must not find them empty.
    return _slices(board, slice_of, scale, each=2 * BATCHES * scale.batch * scale.threads // LANES + 1)


def lanes(sets: Sequence[tuple[str, ...]] = SKILLS) -> list[NewTask]:
    """Each set of capabilities on two tracks or three: twenty lanes."""
    kinds = [(track, skills) for track in TRACKS for skills in sets][:LANES]
    return [
        NewTask(title=TITLE, track=track, constraints={"required_capabilities": list(skills)})
        for track, skills in kinds
    ]


def _slices(board: Board, slice_of: Callable[[int], Slice], scale: Scale, each: int) -> Rates:
    """Every agent claims one task, every claim is renewed twice, everything is submitted; repeated until it is enough.

    `each` is how many tasks of each sort one slice needs.
    """
    threads = scale.threads

    def play(most: int | None = None) -> tuple[int, list[float]]:
        asked = [slice_of(thread)[:most] for thread in range(threads)]
        held, claiming = together(threads, lambda thread: [(a[0].project, board.claim(a)) for a in asked[thread]])
        receipts = [[(project, [str(g.receipt) for g in some]) for project, some in own] for own in held]
        _, starting = together(threads, lambda thread: [board.renew(*one) for one in receipts[thread]])
        _, renewing = together(threads, lambda thread: [board.renew(*one) for one in receipts[thread]])
        _, submitting = together(threads, lambda thread: [board.submit(*one) for one in held[thread]])
        return sum(len(some) for own in held for _, some in own), [claiming, starting, renewing, submitting]

    board.fill(2 * each)
    play(1)  # statements are prepared
    count, spent = play(1)  # what to expect
    whole = sum(len(batch) for thread in range(threads) for batch in slice_of(thread))
    slices = max(1, min(MOST // whole, round(scale.seconds / (spent[0] * whole / count))))
    board.fill(slices * each)
    played = [play() for _ in range(slices)]
    board.verify()
    board.close()
    total = sum(count for count, _ in played)
    return Rates(*(total / sum(spent) for spent in zip(*(spent for _, spent in played), strict=True)), whole)


def _expected(rate: float, scale: Scale) -> int:
    """Tasks, in whole batches for every thread: enough for a little more than the time that is given."""
    whole = scale.batch * scale.threads
    return min(MOST // whole * whole, (int(rate * scale.seconds * SPARE) // whole + 1) * whole)
