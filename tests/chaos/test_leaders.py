"""A short run of coordinators that are killed and stopped, by the command that runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove


@pytest.mark.sampled
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_duty_runs_twice_and_no_deposed_leader_writes(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if store == "postgres":
        request.getfixturevalue("postgres")  # it starts one of its own; here it shows that there is one to be had
    ran = prove(tmp_path, "leaders", "--store", store, "--kills", "4", "--rate", "2", "--seed", "2")
    assert ran.code == 0, ran.said
    assert ran.numbers["wrong"] == 0
    assert ran.numbers["terms"] > 1, "nobody was followed by another, so this has proved nothing"
