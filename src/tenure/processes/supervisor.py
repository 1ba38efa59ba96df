"""The caller's end of a supervisor: start one command, read its output, end it."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tenure.core.errors import close_all

SCRIPT = str(Path(__file__).with_name("supervisor_script.py"))
TICK = 0.5  # seconds between two calls of `tick`

Received = Callable[[str, bytes], None]  # the stream's name, and a chunk of it


class Ended(NamedTuple):
    """How a command ended."""

    code: int | None  # its exit code; negative: the signal that ended it
    why: str | None = None  # set where the supervisor ended it: the reason that was given, or `unwanted`
    failed: str | None = None  # why it could not be started
    is_lost: bool = False  # its supervisor was killed
    left_behind: int = 0  # processes that outlived it and had to be killed
    stuck: int = 0  # processes that cannot be killed


class Supervisor:
    """A process that runs at most one command; its end proves that nothing of the command is left."""

    def __init__(self, *, stdin: int | None = None, stderr: int = subprocess.PIPE) -> None:
        """`stdin`: a descriptor that `start` will name."""
        status, theirs = os.pipe()
        self._status = os.fdopen(status, "rb", buffering=0)
        try:
            self.popen = subprocess.Popen(
                # -I -S: nothing of the user's environment or site packages is imported, and it starts in 15 ms
                [sys.executable, "-I", "-S", SCRIPT, str(theirs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                pass_fds=(theirs,) if stdin is None else (theirs, stdin),
                cwd="/",
                env={},  # a command could read the environment of its parent
                start_new_session=True,  # Ctrl-C is for the caller, whose group may be killed without this process
            )
        except BaseException:
            self._status.close()
            raise
        finally:
            os.close(theirs)
        self._mutex = threading.Lock()
        self._heard = b""

    @property
    def pid(self) -> int:
        return self.popen.pid

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: str | int,
        grace: float,
        leftover_grace: float,
        memory: int | None = None,
    ) -> None:
        """Start the command; `follow` returns what became of it.

        `stdin` is a path or the descriptor that the supervisor was made with. `grace`: seconds from SIGTERM to SIGKILL
        where the caller dies or closes this; `leftover_grace`: the same for what outlives the command. `memory`: bytes
        of address space of each of its processes.
        """
        order = {"argv": list(argv), "cwd": cwd, "env": dict(env), "stdin": stdin, "memory": memory}
        self._write(order | {"grace": grace, "leftover_grace": leftover_grace})

    def end(self, why: str, grace: float, *, after: float = 0.0) -> None:
        """End the command `after` so many seconds, from any thread; the earliest end counts. No `grace`: no SIGTERM."""
        self._write({"end": why, "after": after, "grace": grace})

    def follow(self, received: Received, tick: Callable[[], None] | None = None, *, gives_up: bool = False) -> Ended:
        """Pass on the output until nothing of the command is left; with `gives_up` not for what cannot be killed."""
        streams = {"stdout": self.popen.stdout, "stderr": self.popen.stderr, "status": self._status}
        ended: Ended | None = None
        with selectors.DefaultSelector() as selector:
            for name, stream in streams.items():
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
                    selector.register(stream, selectors.EVENT_READ, name)
            while ended is None:
                for key, _ in selector.select(TICK if tick is not None else None):
                    chunk = _read(key.fd)
                    if key.data == "status":
                        ended = ended or self._ended(chunk, gives_up)
                    elif chunk:
                        received(key.data, chunk)
                    elif chunk is not None:
                        selector.unregister(key.fileobj)
                if tick is not None:
                    tick()
            # Nobody is left who could write more: the pipes hold the rest.
            for key in list(selector.get_map().values()):
                while key.data != "status" and (chunk := _read(key.fd)):
                    received(key.data, chunk)
        return ended

    def _ended(self, chunk: bytes | None, gives_up: bool) -> Ended | None:
        if chunk == b"":
            return Ended(None, is_lost=True)
        *lines, self._heard = (self._heard + (chunk or b"")).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "failed" in message:
                return Ended(None, failed=message["failed"])
            if "exit" in message:
                return Ended(message["exit"], message["why"], left_behind=message["left_behind"])
            if gives_up:
                return Ended(None, stuck=message["stuck"])
        return None

    def abandon(self) -> None:
        """The command is not needed any more: it is ended with the grace that `start` named."""
        with self._mutex, suppress(OSError):
            if self.popen.stdin is not None:
                self.popen.stdin.close()

    def close(self, patience: float | None = None) -> None:
        """End the supervisor with everything below it, and wait; after `patience` seconds kill it."""
        self.abandon()
        streams = (self.popen.stdout, self.popen.stderr, self._status)
        close_all(*(stream.close for stream in streams if stream is not None), partial(self._end, patience))

    def _end(self, patience: float | None) -> None:
        try:
            self.popen.wait(patience)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def _write(self, line: Mapping[str, object]) -> None:
        with self._mutex, suppress(BrokenPipeError):  # killed: `follow` reports it
            if self.popen.stdin is not None and not self.popen.stdin.closed:
                self.popen.stdin.write(json.dumps(line).encode() + b"\n")
                self.popen.stdin.flush()


def _read(handle: int) -> bytes | None:
    """None where there is nothing to read yet."""
    try:
        return os.read(handle, 1 << 16)
    except BlockingIOError:
        return None
