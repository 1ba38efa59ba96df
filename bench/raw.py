"""The bare driver doing the same writes: what a claim and a submit would cost with no rules around them.

The writes are not written down here a second time. One real claim and one real submit are run on a store whose
connection is traced, their INSERT and UPDATE statements are kept with their values, and the raw side runs the very same
texts with the names and times of other tasks put in. So it follows the schema by itself, and its bytes are ours.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

from tenure.core import commands
from tenure.engine import Engine
from tenure.stores.sqlite.connections import connect

DAY = 86_400_000_000
HEADS = """
SELECT id, ref, key FROM task WHERE tenant = 'local' AND project = ? AND lane = ?
ORDER BY band, rank, sequence, id LIMIT ?
"""
_MADE = re.compile(r"\b(evt|cmd|result)_[0-9A-Z]{26}\b")

Facts = dict[str, str]


class Traced(NamedTuple):
    """One transaction of ours: all its statements in order."""

    statements: list[tuple[str, tuple[Any, ...]]]

    @property
    def writes(self) -> list[tuple[str, tuple[Any, ...]]]:
        return [s for s in self.statements if s[0].lstrip().startswith(("INSERT", "UPDATE", "DELETE"))]


@contextmanager
def traced_connections() -> Iterator[list[tuple[str, tuple[Any, ...]]]]:
    """Every statement of every connection that is opened inside the block."""
    lines: list[tuple[str, tuple[Any, ...]]] = []

    def note(_: Any, text: str, values: Any) -> bool:
        lines.append((text, tuple(values or ())))
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    apsw.connection_hooks.append(hook)
    try:
        yield lines
    finally:
        apsw.connection_hooks.remove(hook)


class Script:
    """The writes of one traced transaction, with blanks where another task's names and times go."""

    def __init__(self, traced: Traced, facts: Facts) -> None:
        """`facts` are the names that the traced transaction used: id (without its prefix), ref, request."""
        self._moment = max((v for _, vs in traced.writes for v in vs if _is_time(v)), default=0)
        self.texts = [text for text, _ in traced.writes]
        self._fills = [[self._fill(value, facts) for value in values] for _, values in traced.writes]

    def _fill(self, value: Any, facts: Facts) -> Callable[[Facts, int], Any]:
        if _is_time(value):
            return lambda _, shift: value + shift
        if not isinstance(value, str):
            return lambda _, __: value
        text = _MADE.sub(r"\1_%(number)s", value.replace("%", "%%"))
        for name, given in facts.items():
            text = text.replace(given, f"%({name})s")
        if text == value:
            return lambda _, __: value
        return lambda these, _: text % these

    def shift(self) -> int:
        return time.time_ns() // 1000 - self._moment

    def values(self, at: int, facts: Facts, shift: int) -> list[Any]:
        return [fill(facts, shift) for fill in self._fills[at]]


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and abs(value - time.time_ns() // 1000) < DAY


class Raw:
    """One connection with the store's own settings, and the two scripts."""

    def __init__(self, path: str, project: str, lane: str, claim: Script, submit: Script) -> None:
        self._link = connect(path, 10.0)
        # The bare driver at its best: without this, SQLite prepares a statement again for each bound value.
        self._link.raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._project, self._lane = project, lane
        self._claim, self._submit = claim, submit
        self._count = 0

    def claim(self, count: int) -> list[Facts]:
        """Take the first `count` of the ready index in one transaction; what `submit` needs to know of them."""
        execute = self._link.execute
        execute("BEGIN IMMEDIATE")
        heads = execute(HEADS, (self._project, self._lane, count)).fetchall()
        taken = [self._facts(*head) for head in heads]
        self._write(self._claim, taken)
        execute("COMMIT")
        return taken

    def submit(self, held: Sequence[Facts]) -> None:
        for facts in held:
            facts["number"], facts["request"] = self._number(), os.urandom(16).hex()
        self._link.execute("BEGIN IMMEDIATE")
        self._write(self._submit, held)
        self._link.execute("COMMIT")

    def refill(self, path: str, after: str) -> None:
        """Copy the tasks of another file with an id above `after`."""
        execute = self._link.execute
        execute("ATTACH ? AS other", (path,))
        for table in ("task", "brief"):
            execute(
                f"INSERT INTO {table} SELECT * FROM other.{table} WHERE tenant = 'local' AND project = ? AND id > ?",
                (self._project, after),
            )
        execute("DETACH other")

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        return self._link.all(text)

    def close(self) -> None:
        self._link.close()

    def _facts(self, id: str, ref: str, key: str) -> Facts:
        return {
            "id": id.removeprefix("task_"), "ref": ref, "key": key, "number": self._number(),
            "request": os.urandom(16).hex(),
        }  # fmt: skip

    def _number(self) -> str:
        self._count += 1
        return f"{self._count:026d}"

    def _write(self, script: Script, tasks: Sequence[Facts]) -> None:
        shift = script.shift()
        if len(tasks) == 1:
            for n, text in enumerate(script.texts):
                self._link.execute(text, script.values(n, tasks[0], shift))
                assert self._link.raw.changes() == 1, text
            return
        before = self._link.raw.total_changes()
        for n, text in enumerate(script.texts):
            self._link.executemany(text, [script.values(n, facts, shift) for facts in tasks])
        assert self._link.raw.total_changes() - before == len(script.texts) * len(tasks)


def trace(engine: Engine, lines: list[tuple[str, tuple[Any, ...]]], command: commands.Command) -> tuple[Traced, Any]:
    """What one command does on a store that was opened among `traced_connections`, and its outcome."""
    lines.clear()
    outcome = engine.do(command)
    return Traced(list(lines)), outcome
