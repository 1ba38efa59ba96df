"""Compact sets of whole numbers: ordered ranges, from and to."""

from __future__ import annotations

Ranges = tuple[tuple[int, int], ...]


def with_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges with one number more, neighbours joined."""
    low = high = number
    others = []
    for first, last in ranges:
        if first - 1 <= high and low <= last + 1:
            low, high = min(low, first), max(high, last)
        else:
            others.append((first, last))
    return tuple(sorted([*others, (low, high)]))


def has_number(ranges: Ranges, number: int) -> bool:
    """Whether it is in one of them."""
    return any(first <= number <= last for first, last in ranges)
