"""A slice of `./x mutants`: every seed still has its place, and a planted bug is noticed while the control is not."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import edited, noticed_by
from tests.mutants.mutant import Mutant
from tests.mutants.seeds import MUTANTS

FENCE = "tests/engine/test_on_memory.py::TestOnMemory::test_one_byte_of_the_nonce_is_enough_to_be_refused"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_seed_still_has_its_one_place(mutant: Mutant) -> None:
    assert edited(mutant)


def test_a_planted_bug_is_noticed_and_the_control_is_not() -> None:
    (no_nonce_check,) = [m for m in MUTANTS if m.name == "no nonce check"]
    assert noticed_by(None, FENCE) is None
    assert "test_one_byte_of_the_nonce" in (noticed_by(no_nonce_check, FENCE) or "")
