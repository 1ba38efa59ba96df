"""Some histories of each store, by the command that runs many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove

HISTORIES = 40


@pytest.mark.sampled
@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_races_for_one_task_are_linearizable(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if store == "postgres":
        request.getfixturevalue("postgres")  # the environment names it
    ran = prove(tmp_path, "linearizability", "--histories", str(HISTORIES), "--store", store)
    assert ran.code == 0, ran.said
    assert (ran.numbers["histories"], ran.numbers["violations"]) == (HISTORIES, 0)
    assert ran.numbers["overlapping"] > 0, "nothing ran at the same time, so nothing was proved"
