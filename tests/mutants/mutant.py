"""What a seeded bug is: one small edit of the source, and the tests that must catch it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HOT = "stores/postgres/migrations/0018_fewer_statements.sql"  # the functions of the fast path as they are now
SUITES = {  # the engine suite on each store
    "memory": "tests/engine/test_on_memory.py::TestOnMemory",
    "sqlite": "tests/engine/test_on_sqlite.py::TestOnSqlite",
    "postgres": "tests/engine/test_on_postgres.py::TestOnPostgres",
}


class Mutant(NamedTuple):
    name: str
    file: str  # in src/tenure
    old: str  # exactly once in the file
    new: str
    caught_by: str | tuple[str, ...] = ()
    """A bare name is a test of the engine suite, which must fail on every store; all else is a pytest node id."""

    @property
    def tests(self) -> tuple[str, ...]:
        return (self.caught_by,) if isinstance(self.caught_by, str) else self.caught_by


def on(store: str, *tests: str) -> tuple[str, ...]:
    """Tests of the engine suite on one store, for a bug that the other stores do not have."""
    return tuple(f"{SUITES[store]}::{test}" for test in tests)


def named_tests(mutant: Mutant, stores: Sequence[str]) -> dict[str, list[str]]:
    """Each test file that must catch the mutant, with the tests in it that are named. No names: the engine suite."""
    named: dict[str, list[str]] = {}
    for test in mutant.tests or ("",):
        for node in [test] if "/" in test else [f"{SUITES[store]}::{test}" for store in stores]:
            tests = named.setdefault(node.partition("::")[0], [])
            if test:
                tests.append(node)
    return named


def edited(mutant: Mutant) -> str:
    """The file with the bug in it. Raises SystemExit for a seed that does not fit the source any more."""
    path = ROOT / "src" / "tenure" / mutant.file
    if not path.exists():
        raise SystemExit(f"{mutant.name}: there is no file src/tenure/{mutant.file}; was it renamed? Correct the seed")
    text = path.read_text()
    found = text.count(mutant.old)
    if found != 1:
        raise SystemExit(f"{mutant.name}: `old` occurs {found} times in src/tenure/{mutant.file}; correct the seed")
    return text.replace(mutant.old, mutant.new)
