"""Processes that hold claims: identified by host, boot, pid and start time, so that a reused pid is another process.

Only a reader of the same host's process table can prove one gone; nobody can from another host or boot.
"""

from __future__ import annotations

from tenure.core import limits
from tenure.core.commands import Process
from tenure.core.errors import InvalidInput

LARGEST_PID = limits.PID


def check_process(process: Process) -> Process:
    for what, text in (("host", process.host), ("boot", process.boot)):
        if not 1 <= len(text) <= 255 or "|" in text or not text.isprintable():
            raise InvalidInput(f"process: {what} {text[:60]!r} must be 1 to 255 printable characters without '|'")
    if not 1 <= process.pid <= LARGEST_PID:
        raise InvalidInput(f"process: pid must be from 1 to {LARGEST_PID} (got {process.pid})")
    if process.start < 0:
        raise InvalidInput(f"process: start must be at least 0 (got {process.start})")
    return process


def text_of(process: Process) -> str:
    """One text per process: claims are found by it."""
    return f"{process.host}|{process.boot}|{process.pid}|{process.start}"


def process_of(text: str) -> Process:
    host, boot, pid, start = text.split("|")
    return Process(host=host, boot=boot, pid=int(pid), start=int(start))
