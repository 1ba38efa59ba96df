"""A pool of processes that run `checker.py`: started on first use, kept, and replaced when one had to be killed.

A thread waits for a free worker and then at most `seconds` for its answer; it blocks no other thread. Only a process
can be killed in the middle of a computation; a thread cannot.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.errors import close_all
from tenure.processes.supervisor import Supervisor
from tenure.validators.port import Undecided

CHECKER = Path(__file__).with_name("checker.py")
STARTING = 30.0  # seconds for a start, far more than needed on a busy machine
ITS_OWN = 1.0  # seconds after its limit until a worker ends itself
PART = 1 << 16


class Reply(NamedTuple):
    """The last answer. `limit`: why it is incomplete: `time`, or `memory` for any other crash."""

    answer: dict[str, Any] | None
    limit: str | None = None


class Workers:
    def __init__(self, most: int = 2, seconds: float = 1.0, memory: int = 1 << 30) -> None:
        self.seconds = seconds
        self._most = most
        self._memory = memory
        self._idle: list[_Worker] = []
        self._busy = 0
        self._changed = threading.Condition()

    def ask(self, do: str, *given: bytes) -> Reply:
        """A worker's answer to this order; raises Undecided where no worker is available."""
        for _ in range(2):
            worker = self._take()
            try:
                reply = worker.ask(do, given, self.seconds)
            finally:
                self._give_back(worker)
            if reply is not None:
                return reply
        raise Undecided("the process that checks outputs was killed twice from outside", again=True)

    def pids(self) -> list[int]:
        """The supervisors of idle workers."""
        with self._changed:
            return [worker.supervisor.pid for worker in self._idle]

    def close(self) -> None:
        """End idle workers; a busy one ends after its order."""
        with self._changed:
            idle, self._idle, self._most = self._idle, [], 0
            self._changed.notify_all()
        close_all(*(worker.end for worker in idle))

    def _take(self) -> _Worker:
        until = time.monotonic() + limits.CHECK_WAIT
        with self._changed:
            while not self._idle and self._busy >= self._most:
                left = until - time.monotonic()
                if left <= 0 or self._most == 0:
                    raise Undecided(f"no process to check outputs was free for {limits.CHECK_WAIT:.0f} s", again=True)
                self._changed.wait(left)
            self._busy += 1
            if self._idle:
                return self._idle.pop()
        try:  # outside of the lock: it takes a tenth of a second
            return _Worker(self._memory)
        except BaseException:
            with self._changed:
                self._busy -= 1
                self._changed.notify()
            raise

    def _give_back(self, worker: _Worker) -> None:
        is_kept = worker.is_ready and self._most > 0
        if not is_kept:
            worker.end()
        with self._changed:
            self._busy -= 1
            if is_kept:
                self._idle.append(worker)
            self._changed.notify()


class _Worker:
    def __init__(self, memory: int) -> None:
        theirs, self._stdin = os.pipe()
        try:
            self.supervisor = Supervisor(stdin=theirs, stderr=subprocess.DEVNULL)
        except BaseException:
            os.close(self._stdin)
            raise
        finally:
            os.close(theirs)
        # Of the environment only where packages are found: it may hold keys.
        folders = [folder for folder in sys.path if os.path.isabs(folder)]  # noqa: PTH117 they are texts
        self.supervisor.start(
            [sys.executable, "-P", "-s", str(CHECKER)],
            cwd="/",
            env={"PYTHONPATH": os.pathsep.join(folders)},
            stdin=theirs,
            grace=0.0,
            leftover_grace=0.0,
            memory=memory,
        )
        assert self.supervisor.popen.stdout is not None
        self._stdout = self.supervisor.popen.stdout.fileno()
        self._has_ended = False
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._heard = b""
        if not self._talk((), STARTING).get("ready"):
            self.end()
            raise Undecided("the process that checks outputs does not start", again=True)
        self.is_ready = True  # False while it handles an order

    def ask(self, do: str, given: Sequence[bytes], seconds: float) -> Reply | None:
        """None where it was killed from outside."""
        self.is_ready = False
        head = {"do": do, "sizes": [len(part) for part in given], "seconds": seconds + ITS_OWN}
        answer = self._talk((msgspec.json.encode(head) + b"\n", *given), seconds)
        if answer.get("done"):
            self.is_ready = True
            return Reply(answer)
        if not self._has_ended:
            return Reply(answer or None, "time")
        ended = self.supervisor.follow(lambda *_: None)
        if (ended.is_lost or ended.code == -signal.SIGKILL) and not answer:
            return None
        return Reply(answer or None, "time" if ended.code == -signal.SIGALRM else "memory")

    def _talk(self, parts: Sequence[bytes], seconds: float) -> dict[str, Any]:
        """Send the parts; returns the merged answers up to `done`, `ready`, the end of output or the limit."""
        until = time.monotonic() + seconds
        rest = [memoryview(part) for part in parts if part]
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if rest:
            poll.register(self._stdin, select.POLLOUT)
        answer: dict[str, Any] = {}
        self._heard = b""
        while (left := until - time.monotonic()) > 0:
            for handle, _ in poll.poll(left * 1000):
                if handle == self._stdin and not self._sent(rest):
                    poll.unregister(self._stdin)
                if handle == self._stdout:
                    lines = self._lines()
                    if lines is None:
                        self._has_ended = True
                        return answer
                    for line in lines:
                        answer = {**answer, **{k: v for k, v in line.items() if v or k != "reasons"}}
                    if answer.get("done") or answer.get("ready"):
                        return answer
        return answer

    def _sent(self, rest: list[memoryview]) -> bool:
        """Send a chunk; is there more to send?"""
        try:
            with suppress(BlockingIOError):
                rest[0] = rest[0][os.write(self._stdin, rest[0][:PART]) :]
        except BrokenPipeError:  # it has ended; its output ends too
            rest.clear()
        if rest and not rest[0]:
            del rest[0]
        return bool(rest)

    def _lines(self) -> list[dict[str, Any]] | None:
        """The next lines of its output; None at its end."""
        try:
            part = os.read(self._stdout, PART)
        except BlockingIOError:
            return []
        self._heard += part
        if not part or len(self._heard) > limits.CHECK_REPLY_BYTES:
            return None
        *lines, self._heard = self._heard.split(b"\n")
        return [msgspec.json.decode(line) for line in lines]

    def end(self) -> None:
        self.is_ready = False
        close_all(partial(os.close, self._stdin), self.supervisor.close)


_shared: Workers | None = None
_making = threading.Lock()


def shared() -> Workers:
    """The pool of this process."""
    global _shared  # noqa: PLW0603 one pool per process
    with _making:
        if _shared is None:
            _shared = Workers()
            atexit.register(_shared.close)
        return _shared


def _forget() -> None:
    global _shared, _making
    _shared, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)  # the workers belong to the parent
