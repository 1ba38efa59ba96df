"""A short run of agents against a budget, by the command that runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove


@pytest.mark.sampled
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_exactly_the_budget_is_reserved_and_settled(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if store == "postgres":
        request.getfixturevalue("postgres")  # it starts one of its own; here it shows that there is one to be had
    arguments = ("--store", store, "--agents", "10", "--budget", "4", "--seconds", "1.5", "--seed", "5")
    ran = prove(tmp_path, "budgets", *arguments)
    assert ran.code == 0, ran.said
    assert ran.numbers["wrong"] == 0
    assert ran.numbers["granted_in_the_rush"] == 4
    assert ran.numbers["zombies"] == 3
