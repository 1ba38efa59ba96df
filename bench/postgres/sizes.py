"""What a single claim costs among few and among very many: ready ones, finished ones, and none that fits."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.gathering import together
from bench.ground import TITLE, check, sync_cost
from bench.postgres.drains import LANES, SKILLS, lanes
from bench.postgres.ground import Board, Ground, claim_next
from tenure.core.commands import NewTask

EVERY_SKILL = tuple(sorted({skill for skills in SKILLS for skill in skills}))
AGENTS = 20
ENOUGH = 0.3  # seconds of one turn: where a claim is slow, fewer will do
FEW = 1000
APART = "Z"  # a separate track, and so separate sequences, for finished tasks


class Costs(NamedTuple):
    """Seconds of a claim, one entry a turn, in which all went one after another; `syncs` of the disk before it."""

    few: list[float]
    many: list[float]
    among_finished: list[float]
    nothing: list[float]
    syncs: list[float]


def measure(ground: Ground, folder: Path, many: int, turns: int, each: int, say: Callable[[str], None]) -> Costs:
    """Three stores of twenty lanes: a thousand ready, `many` ready, and a thousand ready beside `many` finished."""
    boards = [_board(ground) for _ in range(3)]
    few, crowded, old = boards
    for board in boards:
        board.begin_with(*lanes(SKILLS[1:]))
    copier = old.copier_of(NewTask(title=TITLE, track=APART), finished=True)
    fills = (lambda: crowded.fill(many // LANES), lambda: copier.copy(many))
    _, took = together(2, lambda thread: fills[thread]())
    copier.close()
    say(f"{many:,} ready tasks and {many:,} finished ones in {took:.0f} s")
    for board in (few, old):
        board.fill(max(FEW, 2 * (turns + 1) * each) // LANES)
    costs = Costs([], [], [], [], [])
    for board in boards:
        _claims(board, max(each, AGENTS))
    _nothing(crowded, each)
    gc.collect()
    for turn in range(turns):
        costs.syncs.append(sync_cost(folder))
        order = [(few, costs.few), (crowded, costs.many), (old, costs.among_finished)]
        for board, kept in order if turn % 2 == 0 else reversed(order):
            kept.append(_claims(board, each))
        costs.nothing.append(_nothing(crowded, each))
    for board in boards:
        board.verify(own_only=board is old)
        board.close()
    return costs


def _board(ground: Ground) -> Board:
    board = ground.board()
    board.register("bench", AGENTS, [EVERY_SKILL])
    return board


def _claims(board: Board, count: int) -> float:
    """Seconds of a claim in the median; each is submitted before the next, so that agents hold nothing."""
    spent = []
    for n in range(count):
        asked = claim_next("bench", f"crew0-{n % AGENTS + 1}")
        began = time.perf_counter()
        grants = board.claim([asked])
        spent.append(time.perf_counter() - began)
        board.submit("bench", grants)
        if sum(spent) > ENOUGH:
            break
    return statistics.median(spent)


def _nothing(board: Board, count: int) -> float:
    """The same of an agent that fits none of the lanes."""
    spent = []
    for n in range(count):
        asked = claim_next("bench", f"stranger-{n % AGENTS}")
        began = time.perf_counter()
        answers = board.engine.run([asked])
        spent.append(time.perf_counter() - began)
        check(answers, "NO_TASK")
        if sum(spent) > ENOUGH:
            break
    return statistics.median(spent)
