"""The parent of a server's workers: starts them by a fork, starts one again that has died, and ends them together.

It has no thread and no store, so that a fork is safe at any time: SQLite's locks and PostgreSQL's connections do not
survive one. If it dies itself its workers end too, as after SIGTERM.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import Bug, TenureError
from tenure.server.store_wait import Report

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
PATIENCE = limits.WORKERS_PATIENCE
_READY = b"ready "


class Handles(NamedTuple):
    """What a worker has of its parent: `tell_ready` is called with its name once it serves."""

    number: int
    tell_ready: Callable[[str], None]
    life: int  # a file descriptor: readable, at its end, once the parent has died
    predecessor: str | None  # the name of the worker that had this place, and has died


class _Worker:
    """One place, and the process that has it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid: int | None = None
        self.start_at = 0.0
        self.pause = 0.0
        self.is_ready = False
        self.name: str | None = None  # of the last one that has served
        self.start_pipe: int | None = None  # read: that it is ready, or the error of its start


class Supervisor:
    def __init__(
        self,
        count: int,
        run: Callable[[Handles], int],
        warn: Report,
        *,
        ended: Callable[[int, int], None] = lambda number, pid: None,
        serving: Callable[[], object] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        """`run` is called in each worker and returns its exit code; `ended` gets each one that has ended.

        `serving` is called once, when the first worker serves; `stopping` once, before the workers get SIGTERM.
        """
        self._run, self._warn, self._ended, self._stopping = run, warn, ended, stopping
        self._serving: Callable[[], object] | None = serving
        self._workers = [_Worker(number) for number in range(count)]
        self._signals: list[int] = []
        self._life: tuple[int, int] = (-1, -1)
        self._wake: tuple[int, int] = (-1, -1)

    def serve(self) -> int:
        """Until SIGTERM or SIGINT; 0 where every worker has ended well. Raises the error of the first start."""
        self._life, self._wake = os.pipe(), os.pipe()
        for end in self._wake:
            os.set_blocking(end, False)
        before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        woken = signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        try:
            while not self._signals:
                self._start_due()
                self._wait(self._next_start())
                self._reap()
            return self._stop()
        finally:
            self._kill()
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            for end in (*self._life, *self._wake):
                os.close(end)

    def _note(self, number: int, _: object) -> None:
        self._signals.append(number)

    # --- starting ---

    def _start_due(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.pid is None and worker.start_at <= now:
                self._start(worker)

    def _next_start(self) -> float | None:
        """Seconds until a worker is to be started; None: none is."""
        due = [worker.start_at for worker in self._workers if worker.pid is None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _start(self, worker: _Worker) -> None:
        reads, writes = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        worker.is_ready = False
        pid = os.fork()
        if pid == 0:
            self._be(worker, reads, writes)
        os.close(writes)
        worker.pid, worker.start_pipe = pid, reads

    def _be(self, worker: _Worker, reads: int, writes: int) -> None:
        """The child: never returns."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # from the terminal: the parent sends SIGTERM
            signal.signal(signal.SIGTERM, _leave)  # before it serves; then uvicorn handles it
            os.close(self._life[1])
            for end in (reads, *self._wake, *(w.start_pipe for w in self._workers if w.start_pipe is not None)):
                os.close(end)
            code = self._run(
                Handles(
                    worker.number,
                    lambda name: _write_once(writes, _READY + name.encode()),
                    self._life[0],
                    worker.name,
                )
            )
        except TenureError as error:
            _write_once(writes, _pickled(error))
            self._warn("a worker has failed", worker=worker.number, why=error.message)
            code = 1
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException as error:  # noqa: BLE001 - the child must not return into its parent's code
            traceback.print_exc()
            _write_once(writes, _pickled(Bug(f"{type(error).__name__}: {error}", "please report this")))
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    # --- waiting ---

    def _wait(self, seconds: float | None) -> None:
        """Until a signal, a word of a worker, or so many seconds."""
        pipes = [worker.start_pipe for worker in self._workers if worker.start_pipe is not None]
        readable, _, _ = select.select([self._wake[0], *pipes], [], [], seconds)
        if self._wake[0] in readable:
            with suppress(BlockingIOError):
                os.read(self._wake[0], 4096)
        for worker in self._workers:
            if worker.start_pipe in readable:
                self._hear(worker)

    def _hear(self, worker: _Worker) -> None:
        assert worker.start_pipe is not None
        text = b"".join(iter(lambda: os.read(worker.start_pipe or -1, 65536), b"")) if not worker.is_ready else b""
        os.close(worker.start_pipe)
        worker.start_pipe = None
        if text.startswith(_READY):
            worker.is_ready, worker.name = True, text.removeprefix(_READY).decode()
            serving, self._serving = self._serving, None
            if serving is not None:
                serving()
        elif text and not any(one.is_ready for one in self._workers):
            raise pickle.loads(text)  # noqa: S301 - our own child's error, and nobody else has the pipe

    def _reap(self) -> None:
        for worker in self._workers:
            if worker.pid is None:
                continue
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                self._has_ended(worker, pid, status)

    def _has_ended(self, worker: _Worker, pid: int, status: int) -> None:
        worker.pid = None
        if worker.start_pipe is not None:
            self._hear(worker)
        self._ended(worker.number, pid)
        if self._signals:
            return
        # Connections wait at its socket: only one that never served is started after a pause.
        worker.pause = 0.0 if worker.is_ready else min(LONGEST_PAUSE, 2 * worker.pause or FIRST_PAUSE)
        worker.start_at = time.monotonic() + worker.pause
        self._warn(
            "a worker has ended; another one is started", worker=worker.number, pid=pid, how=_spelled(status),
            pause=round(worker.pause, 1),
        )  # fmt: skip

    # --- ending ---

    def _stop(self) -> int:
        self._stopping()
        self._signal(signal.SIGTERM)
        until, failed = time.monotonic() + PATIENCE, False
        while (running := [w for w in self._workers if w.pid is not None]) and self._signals.count(signal.SIGINT) < 2:
            left = until - time.monotonic()
            if left <= 0:
                self._warn("workers did not end in time and are killed", workers=[w.number for w in running])
                failed = True
                break
            for worker in running:
                assert worker.pid is not None
                pid, status = os.waitpid(worker.pid, os.WNOHANG)
                if pid:
                    failed = failed or status != 0
                    self._has_ended(worker, pid, status)
            if any(w.pid is not None for w in running):
                self._wait(left)
        return int(failed)

    def _signal(self, number: int) -> None:
        for worker in self._workers:
            if worker.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, number)

    def _kill(self) -> None:
        """Of those that still run none must outlive the parent."""
        self._signal(signal.SIGKILL)
        for worker in self._workers:
            if worker.pid is not None:
                os.waitpid(worker.pid, 0)
                worker.pid = None


def _leave(*_: object) -> None:
    raise SystemExit(0)


def _write_once(writes: int, text: bytes) -> None:
    with suppress(OSError):  # the parent is gone, or has read it
        os.write(writes, text)
        os.close(writes)


def _pickled(error: TenureError) -> bytes:
    try:
        text = pickle.dumps(error)
        pickle.loads(text)  # noqa: S301 - written just now
    except Exception:  # noqa: BLE001 - an error with other arguments
        text = pickle.dumps(TenureError(error.message, error.hint))
    return text


def _spelled(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
