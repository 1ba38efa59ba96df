"""What is counted for metrics is counted by index: a scrape reads no table from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.core.filters import Present, Range
from tenure.core.records import Task
from tenure.stores.sql.statements import table_of
from tenure.stores.sqlite import Sqlite
from tenure.stores.sqlite.transaction import DIALECT

TASK = table_of(Task, DIALECT)
ONE, SOME = {"project": ("p",)}, {"project": ("p", "q", "r")}
DUE = {"due_at": Range(high=5)}
ASKED: dict[str, tuple[Any, str]] = {
    "states": (TASK.counting("local", ONE, "state"), "COVERING INDEX task_state ("),
    "states of several projects": (TASK.counting("local", SOME, "state"), "COVERING INDEX task_state ("),
    "overdue": (TASK.tallying("local", {**ONE, **DUE}, 10), "INDEX task_due (tenant=? AND project=? AND due_at<?)"),
    "overdue retries": (
        TASK.tallying("local", {**ONE, **DUE, "state": "retrying"}, 10),
        "INDEX task_",  # those that are due, or those that are retried
    ),
    "a few of a state": (TASK.finding("local", {**ONE, "state": "ready"}, "id", None, 500), "INDEX task_state ("),
    "holders": (
        TASK.counting("local", {"project": "p", "agent": Present()}, "agent"),
        "COVERING INDEX task_agent (",
    ),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Sqlite:
    return Sqlite(str(Path(tmp_path_factory.mktemp("plans")) / "store.db"))


@pytest.mark.parametrize("what", ASKED)
def test_a_count_goes_by_its_index(store: Sqlite, what: str) -> None:
    (text, values), index = ASKED[what]
    link = store.connections.take()
    try:
        steps = [str(row[3]) for row in link.all(f"EXPLAIN QUERY PLAN {text}", values)]
    finally:
        store.connections.give(link)
    assert any(index in step for step in steps), steps
    assert not any(step.startswith("SCAN task") for step in steps), steps
