"""What a seeded bug is: one small edit of the source, and who must notice it."""

from __future__ import annotations

from typing import NamedTuple

ENGINE = ("tests/engine/test_on_memory.py", "tests/engine/test_on_sqlite.py")  # every store must notice


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    noticed_by: tuple[str, ...] = ENGINE
    first: tuple[str, ...] = ()  # tests that catch it soonest: they are run before the rest of their file


def on_each(test: str) -> tuple[str, ...]:
    """A test of the engine's suite on each store, for `first`."""
    stores = {"memory": "TestOnMemory", "sqlite": "TestOnSqlite", "postgres": "TestOnPostgres"}
    return tuple(f"tests/engine/test_on_{store}.py::{name}::{test}" for store, name in stores.items())
