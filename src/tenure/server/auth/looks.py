"""What cannot be told at once: a look at the store or at an issuer's keys, to be had in a thread."""

from __future__ import annotations

from collections.abc import Callable


class MustLook(Exception):
    """`run` finds out, and keeps it; then ask again. Looks of the same name need be run once."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        super().__init__(name)
        self.name = name
        self.run = run
