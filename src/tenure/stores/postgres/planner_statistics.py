"""Statistics for tables that are still empty.

Without statistics PostgreSQL considers every index that begins with (tenant, project) as good as any other, and finds
one task by reading all of them: 656 µs instead of 78 at 3,000 tasks, and more with every task. So a new store fills its
tables with made-up rows, runs ANALYZE and empties them again. The statistics stay until autovacuum collects those of
real rows. An upgrade does so for tables that its steps have created, and analyses those that they have filled.
"""
# ruff: noqa: S608 - our own names

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from tenure.core.priority import TIERS
from tenure.stores.postgres.event_blocks import ITEMS
from tenure.stores.postgres.tables import parts_of
from tenure.stores.sql.codec import Column, tables

ROWS = 500
_PROJECTS = 5
_BANDS = len(TIERS)  # of a project whose order has not changed
_UNIQUE = 1 << 40

# (number of distinct values, n: every n-th row has one). A column that is not listed is unique if it is an `id`, has
# ten distinct values if it is NOT NULL, and is NULL otherwise.
_SPREAD: dict[str, dict[str, tuple[int, int]]] = {
    "task": {
        "ref": (_UNIQUE, 1), "key": (_UNIQUE, 1), "created_at": (_UNIQUE, 1), "dag": (300, 1), "state": (8, 1),
        "lane": (20, 3), "band": (_BANDS, 1), "rank": (_UNIQUE, 1), "sequence": (_UNIQUE, 1), "due_at": (_UNIQUE, 5),
        "idempotency_key": (_UNIQUE, 2), "parent": (60, 5), "parent_run": (2, 1), "local_name": (_UNIQUE, 5),
        "agent": (50, 10), "session": (70, 10), "offer_to": (20, 50), "set_aside_for": (20, 50),
        "price": (20, 50),
    },
    "edge": {"task": (500, 1), "needs": (500, 1)},
    "claim": {
        "task": (700, 1), "generation": (_UNIQUE, 1), "session": (70, 1), "request_id": (_UNIQUE, 2),
        "process": (50, 20),
    },
    "usage": {"task": (500, 1), "generation": (5, 1)},
    "landing": {"task": (1000, 1), "generation": (5, 1)},
    "artifact": {"task": (500, 1), "generation": (5, 1)},
    "content": {"idle_at": (_UNIQUE, 20)},
    "result": {"task": (1000, 1), "run": (3, 1), "request_id": (_UNIQUE, 2)},
    "validation": {"task": (1000, 1), "state": (400, 1), "created_at": (_UNIQUE, 1)},
    "session": {"agent": (50, 1), "ended_at": (_UNIQUE, 2)},
    "message": {"recipient": (50, 1), "read_at": (_UNIQUE, 2)},
    "reservation": {"task": (300, 2), "pattern": (_UNIQUE, 1)},
    "archived": {
        "key": (_UNIQUE, 1), "ref": (_UNIQUE, 1), "created_at": (_UNIQUE, 1), "idempotency_key": (_UNIQUE, 2),
        "dag": (60, 5), "root": (100, 5),
    },
    "event": {
        "task": (300, 1), "version": (_UNIQUE, 1), "session": (70, 2), "causation_id": (700, 1), "time": (_UNIQUE, 1),
        "kind": (30, 1),
    },
}  # fmt: skip


def statements(only: Collection[str] | None = None) -> Iterator[str]:
    """For the transaction that creates the tables, which sets the search path. `only`: these of them, all empty."""
    filling = {part: text for kind in tables() for part, text in _parts(*kind, ROWS, _PROJECTS)}
    filling |= _places(ROWS, _PROJECTS)
    names = [name for name in filling if only is None or name in only]
    for name in names:
        yield filling[name]
        yield f"ANALYZE {name}"
    if names:  # in a subtransaction, so that the tables count as never vacuumed: of ten pages, not of one row
        yield "SAVEPOINT filled"
        yield f"TRUNCATE {', '.join(names)} RESTART IDENTITY"
        yield "RELEASE SAVEPOINT filled"


# Tables that belong to no kind alone.
PLACES = ("space", "event_block", "queue", "lane_start", "held", "standing", "due_block", "granted", "done")


def made_up_places(rows: int, projects: int) -> Iterator[str]:
    """Statements that fill the tables of `PLACES`, a block with one item each."""
    yield from _places(rows, projects).values()


def _places(rows: int, projects: int) -> dict[str, str]:
    counted = ("version", "generation", "numbers")
    items = ", ".join(f"""ARRAY[{"n" if name in counted else "n::text"}]""" for name in ITEMS)
    names = ", ".join(f'"{name}"' for name in ITEMS)
    of = f"SELECT n % {projects} + 1, 'local'"
    every = f"FROM generate_series(1, {rows}) AS n"
    return {
        "space": (
            "INSERT INTO space (tenant, project)"
            f" SELECT 'local', (n - 1)::text FROM generate_series(1, {projects}) AS n"
        ),
        "event_block": f"""
            INSERT INTO event_block (first, last, tenant, project, time, kind, new_state, {names})
            SELECT n, n, 'local', (n % {projects})::text, n, 'task.claimed', 'claimed', {items} {every}
        """,
        "queue": f"INSERT INTO queue {of}, (n % 20)::text, n % {_BANDS}, n, n, n::text, n, true {every}",
        "lane_start": f"INSERT INTO lane_start {of}, (n % 20)::text, 0, 0, 0 {every} ON CONFLICT DO NOTHING",
        "held": f"INSERT INTO held {of}, (n % 70)::text, n, (n % 50)::text, NULL {every}",
        "standing": f"INSERT INTO standing {of}, (n % 8)::text, n::text, n {every}",
        "due_block": f"INSERT INTO due_block {of}, n, ARRAY[n] {every}",
        "granted": (
            f"INSERT INTO granted {of}, (n % 70)::text, n, (n % 50)::text, n, n, 'e', ARRAY[n], NULL, n::text, NULL,"
            f" NULL {every}"
        ),
        "done": (
            f"INSERT INTO done {of}, n, (n % 70)::text, n, n, n, 1, 1, 1, 0, n, 1, '',"
            f" n::text, '', '', '', NULL, NULL {every}"
        ),
    }


def made_up(table: str, struct: type[msgspec.Struct], rows: int, projects: int) -> Iterator[str]:
    """Statements that fill the tables of a kind."""
    return (text for _, text in _parts(table, struct, rows, projects))


def _parts(table: str, struct: type[msgspec.Struct], rows: int, projects: int) -> Iterator[tuple[str, str]]:
    spread = {"project": (projects, 1), "id": (_UNIQUE, 1), **_SPREAD.get(table, {})}
    space = f"n % {projects} + 1"
    for part, all_columns in parts_of(table, struct).items():
        columns = [c for c in all_columns if c.name != "sequence" or table != "event"]
        names = ", ".join(
            [f'"{column.name}"' for column in columns]
            + ["number", "space"] * (part == "task_hot")
            + ["space"] * (part == "task_base")
        )
        values = ", ".join(
            [_value(column, spread) for column in columns]
            + ["n", space] * (part == "task_hot")
            + [space] * (part == "task_base")
        )
        text = f"INSERT INTO {part} (tenant, {names}) SELECT 'local', {values} FROM generate_series(1, {rows}) AS n"
        yield part, text


def _value(column: Column, spread: dict[str, tuple[int, int]]) -> str:
    if column.name in spread:
        distinct, every = spread[column.name]
    elif column.nullable:
        return "NULL"
    else:
        distinct, every = 10, 1
    number = f"n::bigint / {every} % {distinct}"
    made = {
        "str": f"({number})::text",
        "int": number,
        "bool": "false",
        "float": "0",
        "bytes": "''",
        "json": "CASE WHEN n % 5 = 0 THEN '[\"x\"]' ELSE '[]' END",
    }[column.type]
    return made if every == 1 else f"CASE WHEN n % {every} = 0 THEN {made} END"
