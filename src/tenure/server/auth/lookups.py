"""A read of the store or of an issuer's keys that authentication needs first, in a thread."""

from __future__ import annotations

from collections.abc import Callable


class NeedsLookup(Exception):
    """`run` reads and caches the missing value; then try again. Lookups of the same name run once."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        super().__init__(name)
        self.name = name
        self.run = run
