"""A short run of schedules under coordinators that are killed and stopped, by the command that runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove


@pytest.mark.sampled
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_every_tick_and_every_event_makes_one_task(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if store == "postgres":
        request.getfixturevalue("postgres")  # it starts one of its own; here it shows that there is one to be had
    ran = prove(tmp_path, "schedules", "--store", store, "--ticks", "30", "--rate", "1.5", "--seed", "5")
    assert ran.code == 0, ran.said
    assert ran.numbers["wrong"] == 0
    assert ran.numbers["ticks"] >= 30
    assert ran.numbers["terms"] > 1, "nobody was followed by another, so this has proved nothing"
