"""A slice of `./x reliability landing`, which has more of it."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.running import prove


def test_the_branch_has_what_was_accepted_though_runners_are_killed(tmp_path: Path, git: Path) -> None:
    ran = prove(tmp_path, "landing", "--kills", "6", "--seed", "1")
    assert ran.code == 0, ran.said
    assert (ran.numbers["kills"], ran.numbers["wrong"]) == (6, 0)
    assert ran.numbers["landed"] > 0, "nothing was landed, so it has proved nothing"
