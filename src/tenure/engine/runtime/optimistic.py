"""When the fast path is tried first: it learns per project and kind of command, and backs off where it fails."""

from __future__ import annotations

from typing import Any

from tenure.core import limits


class Optimism:
    """How the fast path has fared, per kind of thing: in a project with graphs, say, every submit is unusual.

    Where one could not take it, the next of its kind often cannot either, and each attempt costs a round trip: after
    each failure in a row, twice as many are skipped.
    """

    MOST = limits.FAST_PATH_SKIPS

    def __init__(self) -> None:
        self._misses: dict[Any, int] = {}
        self._waits: dict[Any, int] = {}

    def tries(self, kind: Any) -> bool:
        left = self._waits.get(kind, 0)
        self._waits[kind] = left - 1
        return left <= 0

    def note(self, kind: Any, went: bool) -> None:
        self._misses[kind] = 0 if went else min(self.MOST, 2 * self._misses.get(kind, 0) or 1)
        self._waits[kind] = self._misses[kind]
