"""The clocks of a host: the time as it was set, and how long the machine has been running.

A clock that is handed in (`Clock`) is a callable that gives the time; one that also has `uptime` and `boot` can be told
from one that jumped.
"""
# ruff: noqa: PTH116, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import time
from collections.abc import Callable

from tenure.core.clock import Reading

PROC = "/proc"


class HostClock:
    """The uptime is read from the kernel once and counted on from there: what sets a program's clocks (faketime) moves
    both of those that it sees, and not this one."""

    def __init__(self) -> None:
        self.boot = ""
        self._ahead = 0  # of the kernel's uptime, by the clock that is counted on with

    def __call__(self) -> int:
        return time.time_ns() // 1000

    def uptime(self) -> int:
        return _steady() - self._ahead

    def read(self) -> Reading:
        if not self.boot:
            self._begin()
        return Reading(self(), self.uptime(), self.boot)

    def _begin(self) -> None:
        try:
            with open(f"{PROC}/uptime", encoding="ascii") as file:
                uptime = round(float(file.read().split()[0]) * 1e6)
            with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
                # containers may have clocks of their own since their start
                self.boot = f"{file.read().strip()}-{os.stat(f'{PROC}/self/ns/time').st_ino}"
        except (OSError, ValueError):
            self.boot = "unknown"
            self.read = self._wall_alone  # type: ignore[method-assign]  # once and for all
            return
        self._ahead = _steady() - uptime

    def _wall_alone(self) -> Reading:
        return Reading(self())


def _steady() -> int:
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1000


def reader_of(clock: Callable[[], int] | None) -> Callable[[], Reading]:
    """What reads this clock; the host's unless one is given."""
    if clock is None:
        return HostClock().read
    uptime = getattr(clock, "uptime", None)
    if uptime is None:
        return lambda: Reading(clock())
    return lambda: Reading(clock(), uptime(), clock.boot)  # type: ignore[attr-defined]  # who has the one has both
