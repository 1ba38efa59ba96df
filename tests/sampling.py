"""What `./x test` leaves to `./x nightly`: tests marked `nightly`, parameters of tests marked `sampled`, examples."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

EXAMPLES = 50  # of a property test; 200 with `--all`


def for_the_night(items: Iterable[pytest.Item]) -> set[str]:
    """The ids of all tests marked `nightly`, and all parameter sets but one of each test marked `sampled`.

    Of tests marked `sampled(one_in=N)` only every Nth runs at all; with `sampled(of=NAMES)` only those parameters are
    sampled. The checksum of the id selects: the same tests and sets in every run, others for each store.
    """
    left_out = set()
    cases: dict[str, list[str]] = {}
    shares: dict[str, int] = {}
    for item in items:
        mark = item.get_closest_marker("sampled")
        if item.get_closest_marker("nightly"):
            left_out.add(item.nodeid)
        elif mark:
            name, _, sets = item.nodeid.partition("[")
            if "of" in mark.kwargs:
                name += "-".join(part for part in sets.rstrip("]").split("-") if part not in mark.kwargs["of"])
            cases.setdefault(name, []).append(item.nodeid)
            shares[name] = mark.kwargs.get("one_in", 1)
    for name, ids in cases.items():
        chosen = min(ids, key=_checksum) if _checksum(name) % shares[name] == 0 else None
        left_out.update(id for id in ids if id != chosen)
    return left_out


def places(*names: str) -> list[Any]:
    """Parameters of a fixture that opens stores, or ways to one: by day each test has one of them."""
    return [pytest.param(name, id=name, marks=pytest.mark.sampled(of=names)) for name in names]


def _checksum(name: str) -> int:
    return zlib.crc32(name.encode())


def few(examples: int) -> int:
    """That many examples of an expensive property test, and as many as the profile has with `--all`."""
    full = settings().max_examples
    return full if full > EXAMPLES else examples
