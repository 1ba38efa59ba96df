"""What `./x test` leaves to `./x nightly`: tests marked `nightly`, parameters of tests marked `sampled`, examples."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pytest
from hypothesis import settings

EXAMPLES = 50  # of a property test; 200 with `--all`


def for_the_night(items: Iterable[pytest.Item]) -> set[str]:
    """The ids of all tests marked `nightly`, and all parameter sets but one of each test marked `sampled`.

    The checksum of the id selects that one: the same in every run, a different one for each test and store.
    """
    left_out = set()
    cases: dict[str, list[str]] = {}
    for item in items:
        if item.get_closest_marker("nightly"):
            left_out.add(item.nodeid)
        elif item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
    for ids in cases.values():
        chosen = min(ids, key=lambda name: zlib.crc32(name.encode()))
        left_out.update(id for id in ids if id != chosen)
    return left_out


def few(examples: int) -> int:
    """That many examples of an expensive property test, and as many as the profile has with `--all`."""
    full = settings().max_examples
    return full if full > EXAMPLES else examples
