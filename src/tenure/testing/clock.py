"""A clock that moves only when it is told to."""

from __future__ import annotations

START = 1_700_000_000_000_000  # a Tuesday in November 2023


class FakeClock:
    """Called, it gives the time in microseconds UTC, as every clock that is handed in."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, microseconds: int = 0, *, seconds: float = 0) -> int:
        """Move on, or back with a negative number; the new time."""
        self.now += microseconds + round(seconds * 1_000_000)
        return self.now
