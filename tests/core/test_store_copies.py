"""When a store is copied, and which of its copies are kept."""

from __future__ import annotations

import pytest

from tenure.core import limits
from tenure.core.store_copies import Copy, beyond, is_due, surplus


def copy(sequence: int, made: float, epoch: str = "e1", size: int = 1) -> Copy:
    return Copy(f"{epoch}-{sequence}", epoch, sequence, made, size)


@pytest.mark.parametrize(
    ("copies", "last", "now", "least", "expected"),
    [
        ([], 0, 0.0, 600.0, True),
        ([copy(5, 0.0)], 5, 9999.0, 0.0, False),  # nothing was written since
        ([copy(5, 0.0)], 6, 599.0, 600.0, False),
        ([copy(5, 0.0)], 6, 600.0, 600.0, True),
        ([copy(5, 0.0)], 6, 0.0, 0.0, True),
        ([copy(5, 100.0)], 6, 50.0, 600.0, True),  # a clock that was ahead
        ([copy(5, 0.0, "e0")], 5, 1.0, 600.0, True),  # another epoch has no copy yet
        ([copy(4, 0.0), copy(5, 100.0)], 6, 650.0, 600.0, False),
    ],
)
def test_when_a_copy_is_due(copies: list[Copy], last: int, now: float, least: float, *, expected: bool) -> None:
    assert is_due(copies, "e1", last, now, least) is expected


def test_the_newest_copies_are_kept_and_the_last_of_earlier_epochs() -> None:
    present = [copy(n, float(n)) for n in range(100, 100 + limits.COPIES_OF_STORE + 2)]
    former = [copy(n, float(n), "e0") for n in (1, 2, 3)]
    older = [copy(1, float(-n), f"old{n}") for n in range(limits.COPIES_OF_EARLIER)]
    gone = surplus([*present, *former, *older], "e1")
    assert gone == [present[1], present[0], former[1], former[0], older[-1]]


def test_the_oldest_copies_of_all_stores_make_room() -> None:
    third = limits.COPIES_BYTES // 3
    copies = [copy(n, float(n), f"e{n}", third + 1) for n in range(4)]
    assert beyond(copies, copies[3]) == copies[:2]
    assert beyond(copies[:2], copies[1]) == []
    alone = copy(1, 0.0, size=limits.COPIES_BYTES + 1)
    assert beyond([alone], alone) == []
