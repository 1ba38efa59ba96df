"""A short kill -9 storm on each store, by the command that runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove

KILLS = 15


@pytest.mark.sampled
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_nothing_is_lost_or_doubled_when_workers_are_killed(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if store == "postgres":
        request.getfixturevalue("postgres")  # it starts one of its own; here it shows that there is one to be had
    ran = prove(tmp_path, "storm", "--store", store, "--kills", str(KILLS), "--rate", "8", "--seed", "1")
    assert ran.code == 0, ran.said
    assert {name: ran.numbers[name] for name in ("kills", "lost", "double", "limbo", "other")} == {
        "kills": KILLS, "lost": 0, "double": 0, "limbo": 0, "other": 0,
    }  # fmt: skip
    assert ran.numbers["accepted"] > 0, "nothing was done in this storm, so it has proved nothing"
