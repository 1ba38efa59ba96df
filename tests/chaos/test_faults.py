"""Some of the points at which a system call can fail, by the command that tries all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove

WRONG = ("lost", "half", "untrue", "broken", "stuck", "crash", "unproven")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("acts", "share"), [(("claim", "submit"), "0.02"), (("init", "backup", "artifact", "outbox"), "0.02")]
)
def test_a_failed_call_is_an_error_and_nothing_changed_or_it_is_done(
    acts: tuple[str, ...], share: str, tmp_path: Path
) -> None:
    ran = prove(tmp_path, "faults", "--acts", *acts, "--share", share, "--seed", "3")
    assert ran.code == 0, ran.said
    assert {name: ran.numbers[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert ran.numbers["points"] > 15
