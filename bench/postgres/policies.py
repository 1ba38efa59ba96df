"""What row-level security costs: processor time of both sides, under policies and without, by turns.

Both stores are alike; one is opened by the owner of its tables, the other with a role that policies restrict. Time on a
processor says what a policy adds; the rate of a saturated machine would say as much about its neighbours.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

from bench.postgres.costs import Meter
from bench.postgres.ground import Board, Ground, claim_next
from tenure.core.outcomes import Outcome
from tenure.stores.postgres import row_security

ROLE = "bench_app"
SINGLES = 50  # one at a time, of each turn


def restricted(ground: Ground) -> Board:
    board = ground.board()
    row_security.run(board.store_url, "on", ROLE)
    board.open_as(ROLE)
    return board


def measure(ground: Ground, turns: int, batch: int, many: int) -> dict[str, list[float]]:
    """Microseconds of processor time a task, of each turn: `plain_claim`, `rls_claim`, `plain_single_claim`, …

    A turn claims and submits `many` batches, then single tasks.
    """
    boards = {"plain": ground.board(), "rls": restricted(ground)}
    found: dict[str, list[float]] = {}
    with ground.connect() as link:

        def timed(name: str, tasks: int, do: Callable[[], object]) -> None:
            meter = Meter(link)
            with meter.measuring(tasks):
                do()
            (cost,) = meter.costs
            found.setdefault(name, []).append(cost.client + cost.server)

        def play(side: str, board: Board, each: int) -> None:
            board.fill(each * batch + SINGLES)
            gc.collect()
            held: list[Sequence[Outcome]] = []
            crew = [f"agent-{k}" for k in range(batch)]
            timed(
                f"{side}_claim", each * batch,
                lambda: held.extend(board.claim([claim_next("bench", name) for name in crew]) for _ in range(each)),
            )  # fmt: skip
            timed(f"{side}_submit", each * batch, lambda: [board.submit("bench", grants) for grants in held])
            held.clear()
            timed(
                f"{side}_single_claim", SINGLES,
                lambda: held.extend(board.claim([claim_next("bench", name)]) for name in crew[:SINGLES]),
            )  # fmt: skip
            timed(f"{side}_single_submit", SINGLES, lambda: [board.submit("bench", grants) for grants in held])

        for side, board in boards.items():  # statements are prepared, and plans made
            play(side, board, 2)
        found.clear()
        for turn in range(turns):
            for side in boards if turn % 2 == 0 else reversed(boards):
                play(side, boards[side], many)
    for board in boards.values():
        board.verify()
        board.close()
    return found
