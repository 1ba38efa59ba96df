"""A few seconds of each load on PostgreSQL, by the commands that run it for minutes; and how their check judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove
from tests.reliability.churn import Window, growth, trend
from tests.servers.postgres import PostgresServer


def test_all_verbs_together_from_two_processes_reach_no_caller_with_a_conflict(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    ran = prove(tmp_path, "mixed", "--seconds", "2", "--seed", "1")
    assert ran.code == 0, ran.said
    assert ran.numbers["wrong"] == ran.numbers["deadlocks_in_server"] == 0, ran.said
    for verb in ("claims", "renewals", "submits", "plans", "bad_items"):
        assert ran.numbers[verb] > 0, ran.said


def test_tasks_go_round_without_an_error(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = prove(tmp_path, "churn", "--minutes", "0.03", "--window", "2")
    assert ran.code == 0, ran.said
    assert ran.numbers["tasks"] > 0
    assert ran.numbers["wrong"] == 0


@pytest.mark.parametrize(
    ("paces", "expected"),
    [
        ([900, 900, 900, 900, 900, 900, 900], 1.0),
        ([10, 900, 900, 900, 900, 900, 900], 1.0),  # the first does not count
        ([900, 1000, 1000, 900, 800, 500, 500], 0.5),
        ([900, 500, 500, 500, 500, 1000, 1000], 2.0),
        ([700], 1.0),
    ],
)
def test_the_trend_is_the_last_third_beside_the_first(paces: list[float], expected: float) -> None:
    assert trend([Window(pace, 0.001, 0, {}) for pace in paces]) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"), [([1, 50, 100, 100, 100, 100], 1.0), ([10, 20, 30, 30, 60, 60], 2.0), ([70], 1.0)]
)
def test_the_growth_is_that_of_all_tables_but_the_archive(sizes: list[int], expected: float) -> None:
    windows = [Window(900, 0.001, 0, {"task": (size, 0), "archived": (10**9 * n, 0)}) for n, size in enumerate(sizes)]
    assert growth(windows) == expected
