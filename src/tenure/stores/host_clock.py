"""The clocks of a host: the time as it was set, and the machine's uptime.

A `Clock` is a callable that returns the time. With `uptime` and `boot` besides, a jump of the time can be recognised.
"""
# ruff: noqa: PTH116, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import time
from collections.abc import Callable

from tenure.core.clock import Reading

PROC = "/proc"


class HostClock:
    """Reads the uptime from the kernel once, and counts on from there with a monotonic clock.

    A program that fakes the clocks (faketime) shifts both clocks of this process, but not the kernel's uptime.
    """

    def __init__(self) -> None:
        self.boot = ""
        self._ahead = 0  # the monotonic clock minus the kernel's uptime

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
                # a container may have separate clocks since its start
                self.boot = f"{file.read().strip()}-{os.stat(f'{PROC}/self/ns/time').st_ino}"
        except (OSError, ValueError):
            self.boot = "unknown"
            self.read = self._wall_alone  # type: ignore[method-assign]  # for the rest of this process
            return
        self._ahead = _steady() - uptime

    def _wall_alone(self) -> Reading:
        return Reading(self())


def _steady() -> int:
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1000


def reader_of(clock: Callable[[], int] | None) -> Callable[[], Reading]:
    """A function that reads this clock, or the host's where none is given."""
    if clock is None:
        return HostClock().read
    uptime = getattr(clock, "uptime", None)
    if uptime is None:
        return lambda: Reading(clock())
    return lambda: Reading(clock(), uptime(), clock.boot)  # type: ignore[attr-defined]  # a clock with one has both
