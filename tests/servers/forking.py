"""Starts `tenure` by a fork of a process that has imported everything; imports take most of a start.

The new process has its own environment, folder, files and signals, as if it was started from a shell. Not for tests of
the start itself.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from tests.servers.processes import PATIENCE, end_with_us

is_possible = hasattr(os, "pidfd_open")  # Linux


class Forked:
    """One process, with what tests use of `subprocess.Popen`."""

    def __init__(self, forker: Forker, pid: int, args: list[str]) -> None:
        self._forker, self.pid, self.args = forker, pid, args
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._forker.code_of(self.pid, 0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = 1.0 if until is None else until - time.monotonic()
            self.returncode = self._forker.code_of(self.pid, max(0.0, min(left, 1.0)))
            if self.returncode is None and left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)


class Forker:
    """The process that forks; one for each process of the tests."""

    def __init__(self) -> None:
        self._line, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(__file__).with_name("forked.py")
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(script), str(other.fileno())], pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL, preexec_fn=end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
            )  # fmt: skip
        self._mutex = threading.Lock()
        self._codes: dict[int, int] = {}

    def start(self, words: Sequence[str], environ: Mapping[str, str], folder: Path, *files: IO[bytes]) -> Forked:
        """`files`: standard input, output and error of the new process."""
        request = json.dumps({"words": words, "environ": dict(environ), "folder": str(folder)}).encode()
        with self._mutex:
            socket.send_fds(self._line, [request], [file.fileno() for file in files])
            while True:
                told = self._read()
                if "started" in told:
                    return Forked(self, told["started"], ["tenure", *words])

    def code_of(self, pid: int, patience: float) -> int | None:
        """The exit code once the process has ended; None where it still runs after `patience` seconds."""
        with self._mutex:
            while pid not in self._codes and select.select([self._line], [], [], patience)[0]:
                self._read()
            return self._codes.pop(pid, None)

    def close(self) -> None:
        self._line.close()
        self._process.wait(PATIENCE)

    def _read(self) -> dict[str, int]:
        message = self._line.recv(1 << 10)
        assert message, "the process that forks has ended"
        told: dict[str, int] = json.loads(message)
        if "ended" in told:
            self._codes[told["ended"]] = told["code"]
        return told


@cache
def forker() -> Forker:
    started = Forker()
    atexit.register(started.close)
    return started
