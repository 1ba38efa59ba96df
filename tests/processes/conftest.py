"""Commands below a real supervisor, and a look at what is left of them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tenure.processes.supervisor import Ended, Supervisor
from tests.processes.marks import children, marked

T = TypeVar("T")


def until(look: Callable[[], T], what: str, seconds: float = 30.0) -> T:
    give_up = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < give_up, f"timed out waiting for {what}"
        os.sched_yield()
    return found


class Bench:
    """Starts commands and knows which of their processes still run."""

    def __init__(self) -> None:
        self.mark = f"TEST_MARK={uuid.uuid4().hex}"
        self.supervisors: list[Supervisor] = []
        self.output = b""

    def start(self, code: str, **options: Any) -> Supervisor:
        supervisor = Supervisor()
        self.supervisors.append(supervisor)
        name, _, value = self.mark.partition("=")
        options = {"grace": 0.0, "leftover_grace": 0.0, "stdin": "/dev/null"} | options
        supervisor.start([sys.executable, "-I", "-S", "-c", code], cwd="/", env={name: value}, **options)
        return supervisor

    def follow(self, supervisor: Supervisor) -> Ended:
        return self.follow_in_a_thread(supervisor)()

    def follow_in_a_thread(self, supervisor: Supervisor) -> Callable[[], Ended]:
        """A function that waits for the end; fails where it does not come."""
        ended: list[Ended] = []

        def received(_: str, chunk: bytes) -> None:
            self.output += chunk

        thread = threading.Thread(target=lambda: ended.append(supervisor.follow(received)), daemon=True)
        thread.start()

        def result() -> Ended:
            thread.join(30)
            assert ended, "the command did not end"
            return ended[0]

        return result

    def running(self, count: int) -> list[int]:
        """The command's processes, once there are so many."""
        return until(lambda: found if len(found := self.left()) >= count else [], f"{count} processes")

    def left(self) -> list[int]:
        return marked(self.mark)

    def nothing_left(self) -> bool:
        until(lambda: not self.left(), "every process to end")
        return True


def pair(supervisor: Supervisor) -> tuple[int, int]:
    """The process that watches, which the caller has started, and the one above the command."""
    [inner] = until(lambda: children(supervisor.pid), "the supervisor to fork")
    return supervisor.pid, inner


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    for supervisor in bench.supervisors:
        inner = children(supervisor.pid)
        supervisor.close(10)
        for pid in inner:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    left = bench.left()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.fixture(autouse=True)
def _on_linux() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("only Linux has subreapers and the process table that these tests read")
