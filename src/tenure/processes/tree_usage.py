"""Memory and CPU of a process and all its descendants, as the kernel reports them now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
MEGABYTE = 1 << 20


class Process(NamedTuple):
    parent: int
    memory: int  # resident bytes
    cpu: float  # seconds since its start


class TreeUsage(NamedTuple):
    memory_mb: int
    cpu_percent: int | None  # of one core, since the last measurement; None at the first


class TreeMeter:
    """Measures one tree again and again. A process that has ended takes its CPU time with it, so it counts no more."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, table: Callable[[], dict[int, Process]] | None = None
    ) -> None:
        self._clock, self._table = clock, table or processes
        self._before: tuple[float, dict[int, float]] | None = None

    def measure(self, root: int) -> TreeUsage | None:
        """None where the process has ended."""
        table = self._table()
        if root not in table:
            self._before = None
            return None
        tree = _below(root, table)
        now, cpu = self._clock(), {pid: table[pid].cpu for pid in tree}
        percent = None
        if self._before is not None and now > self._before[0]:
            then, earlier = self._before
            used = sum(max(0.0, seconds - earlier.get(pid, 0.0)) for pid, seconds in cpu.items())
            percent = round(100 * used / (now - then))
        self._before = (now, cpu)
        return TreeUsage(sum(table[pid].memory for pid in tree) // MEGABYTE, percent)


def _below(root: int, table: dict[int, Process]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    found = [root]
    for pid in found:
        found += [child for child in children.get(pid, ()) if child not in found]
    return found


def processes() -> dict[int, Process]:
    """All processes that this user may see, by pid."""
    if not PROC.is_dir():
        return _from_ps()
    found = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            process = _from_proc(folder)
            if process is not None:
                found[int(folder.name)] = process
    return found


def _from_proc(folder: Path) -> Process | None:
    try:
        stat = folder.joinpath("stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Process(int(fields[1]), int(fields[21]) * PAGE, (int(fields[11]) + int(fields[12])) / TICKS)


def _from_ps() -> dict[int, Process]:
    import subprocess  # not at the top: on Linux nobody pays for it

    output = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,rss=,time="], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    ).stdout
    found = {}
    for line in output.splitlines():
        pid, parent, memory, cpu = line.split(None, 3)
        found[int(pid)] = Process(int(parent), int(memory) * 1024, _seconds(cpu))
    return found


def _seconds(text: str) -> float:
    """`[[days-]hours:]minutes:seconds` of ps."""
    days, _, rest = text.strip().rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds + int(days or 0) * 86400
