"""Tasks created a thousand at a time, beside one statement that inserts a thousand rows into a narrow table."""

from __future__ import annotations

from typing import Any, NamedTuple

from psycopg import sql

from bench.ground import TITLE, WrongAnswer, check
from bench.peers.tools import raw_limit
from bench.postgres.costs import Cost, Meter
from bench.postgres.ground import Ground
from tenure.core import commands
from tenure.core.commands import NewTask
from tenure.core.records import Task

EACH = 1000
_ADD = "INSERT INTO job (id, payload) SELECT * FROM unnest(%s::bigint[], %s::text[])"


class Creations(NamedTuple):
    """What a task costs, one entry a turn."""

    ours: list[Cost]
    raw: list[Cost]


def measure(ground: Ground, turns: int) -> Creations:
    board = ground.board()
    schema = ground.schema()
    with ground.connect() as link, ground.connect() as bare:
        bare.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        bare.execute("SELECT set_config('search_path', %s, false)", (schema,))
        bare.execute(raw_limit.TABLE)
        ours, raw = Meter(link), Meter(link)
        for turn in range(-1, turns):  # the first prepares statements
            with ours.measuring(EACH):
                check(board.engine.run([_batch(turn)]), "CREATED")
            with raw.measuring(EACH):
                _insert(bare, turn + 1)
        bare.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
    with board.engine.store.begin("local", write=False) as tx:
        ready = tx.count(Task, {"project": "bench"}, "state")
    if ready != {"ready": (turns + 1) * EACH}:
        raise WrongAnswer(f"{(turns + 1) * EACH} tasks were created, but the store has {ready}")
    board.close()
    return Creations(ours.costs[1:], raw.costs[1:])


def _batch(turn: int) -> commands.AddMany:
    tasks = tuple(NewTask(title=f"{TITLE} {turn}-{n}", description=f"Part {n}") for n in range(EACH))
    return commands.AddMany(project="bench", tasks=tasks)


def _insert(link: Any, turn: int) -> None:
    numbers = range(turn * EACH, (turn + 1) * EACH)
    link.execute(_ADD, (list(numbers), [f'{{"id": {n}}}' for n in numbers]), prepare=True)
