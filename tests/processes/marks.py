"""Processes of a test, found by a mark in their environment or by their parent."""

from __future__ import annotations

import os
from pathlib import Path

from tenure import process_table


def marked(mark: str) -> list[int]:
    """Running processes that have the mark, `NAME=value`, in their environment."""
    found = []
    for pid in pids():
        try:
            content = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if pid != os.getpid() and mark.encode() in content.split(b"\0"):
            found.append(pid)
    return found


def children(parent: int) -> list[int]:
    """The running children of a process."""
    return [pid for pid in pids() if (found := process_table.look_up(pid)) and found.parent == parent]


def pids() -> list[int]:
    table = Path("/proc")
    return [int(entry.name) for entry in table.iterdir() if entry.name.isdigit()] if table.is_dir() else []
