"""Claims beside a reader that stays in its transaction: what it may still see, the server cannot remove."""

from __future__ import annotations

import time
from typing import NamedTuple

from psycopg import sql

from bench.postgres.costs import Cost, Meter
from bench.postgres.ground import Board, Ground, claim_next
from bench.postgres.scale import Scale

ROUNDS = 5  # of claims and results, that one measurement is the median of
FILLED = 40  # rounds that tasks are made for at once


class Idleness(NamedTuple):
    """What a claim costs: at first, at the end of the reader's time, and without it in the same full tables."""

    first: Cost
    beside: Cost
    without: Cost
    cycles: int  # while it was idle


def measure(ground: Ground, scale: Scale) -> Idleness:
    board = ground.board()
    crew = board.register("bench", scale.batch)
    with ground.connect() as link, ground.connect() as reader:
        _round(board, crew, None)
        first = _claims(board, crew, link)
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(board.schema, "queue")))
        until, cycles = time.monotonic() + scale.idle, 0
        while time.monotonic() < until:
            _round(board, crew, None)
            cycles += len(crew)
        beside = _claims(board, crew, link)
        reader.execute("ROLLBACK")
        for table in ("queue", "held", "session", "agent", "task_hot", "lane_start", "due_block"):
            reader.execute(sql.SQL("VACUUM {}").format(sql.Identifier(board.schema, table)))
        without = _claims(board, crew, link)
    board.verify()
    board.close()
    return Idleness(first, beside, without, cycles)


def _claims(board: Board, crew: list[str], link: object) -> Cost:
    meter = Meter(link)
    for _ in range(ROUNDS):
        _round(board, crew, meter)
    return meter.median()


def _round(board: Board, crew: list[str], meter: Meter | None) -> None:
    """Every agent claims a task and submits it; the claims are measured."""
    if len(board.granted) % (FILLED * len(crew)) == 0:
        board.fill(FILLED * len(crew))
    asked = [claim_next("bench", agent) for agent in crew]
    if meter is None:
        grants = board.claim(asked)
    else:
        with meter.measuring(len(asked)):
            grants = board.claim(asked)
    board.submit("bench", grants)
