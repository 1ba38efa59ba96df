"""A clock that moves only when a test advances it."""

from __future__ import annotations

START = 1_700_000_000_000_000  # a Tuesday in November 2023


class FakeClock:
    """Called, it gives the time in microseconds UTC, as every clock that is handed in."""

    def __init__(self, now: int = START, boot: str = "boot") -> None:
        self.now = now
        self.boot = boot
        self._jumped = 0

    def __call__(self) -> int:
        return self.now

    def uptime(self) -> int:
        return self.now - self._jumped

    def advance(self, microseconds: int = 0, *, seconds: float = 0) -> int:
        """Move on, or back with a negative number; the new time."""
        self.now += microseconds + round(seconds * 1_000_000)
        return self.now

    def jump(self, seconds: float) -> int:
        """Be set to another time, back with a negative number; no time has passed. The new time."""
        self._jumped += round(seconds * 1_000_000)
        return self.advance(seconds=seconds)
