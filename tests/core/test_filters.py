"""What `find` can be asked, as the engine asks it of rows that are not saved yet."""

import pytest

from tenure.core.filters import Contains, Prefix, Present, Range, matches
from tenure.core.records import Task, replace
from tenure.testing.samples import row_of

TASK = replace(row_of(Task), key="B-003-x", state="ready", deadline=None, priority=50, tags=("a", "b"))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, True),
        ({"state": "ready"}, True),
        ({"state": "paused"}, False),
        ({"state": ("paused", "ready")}, True),
        ({"state": ()}, False),
        ({"state": "ready", "priority": 51}, False),
        ({"priority": Range()}, True),
        ({"priority": Range(low=50)}, True),
        ({"priority": Range(low=51)}, False),
        ({"priority": Range(high=50)}, False),
        ({"priority": Range(high=51)}, True),
        ({"priority": Range(low=50, high=51)}, True),
        ({"deadline": Range()}, False),
        ({"deadline": Range(high=9)}, False),
        ({"deadline": None}, True),
        ({"key": Prefix("B-00")}, True),
        ({"key": Prefix("b-00")}, False),
        ({"deadline": Prefix("N")}, False),
        ({"tags": Contains("a")}, True),
        ({"tags": Contains("ab")}, False),
        ({"deadline": Present()}, False),
        ({"deadline": Present(yes=False)}, True),
        ({"priority": Present()}, True),
    ],
)
def test_a_row_matches_or_not(where: dict[str, object], expected: bool) -> None:
    assert matches(TASK, where) is expected
