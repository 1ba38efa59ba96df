"""How long and how much a run does."""

from __future__ import annotations

from typing import NamedTuple


class Scale(NamedTuple):
    """A figure is the median of the rounds, or of the turns where ours and its baseline go by turns."""

    rounds: int = 3
    seconds: float = 1.5  # of each phase; of the open loop at 10,000 a second it is half
    fast_seconds: float = 0.5  # of the open loop at 50,000 a second
    threads: int = 2
    batch: int = 500  # commands and tasks of one transaction: the engine's own bound
    projects: int = 20
    jobs: int = 40_000  # of PgQueuer
    looks: int = 80  # of an idle worker, a round
    many: int = 1_000_000  # tasks that a single claim is among
    turns: int = 15
    each: int = 40  # of single claims, a turn
    tasks: int = 100_000  # that lists are made of
    generations: int = 1000
    idle: float = 20.0  # seconds that a reader stays in its transaction
    policy_batches: int = 6  # claimed and submitted under policies and without, a turn


FULL = Scale()
QUICK = Scale(
    rounds=1, seconds=0.3, fast_seconds=0.1, projects=4, jobs=10_000, looks=25, many=10_000, turns=3, each=15,
    tasks=5_000, generations=200, idle=2.0, policy_batches=2,
)  # fmt: skip
