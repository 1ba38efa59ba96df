"""The runner's end of a keeper: start an agent below it, read what it says, end it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tenure.agents import processes
from tenure.core import limits
from tenure.core.commands import Process

KEEPER = str(Path(__file__).with_name("keeper.py"))
LONGEST_LINE = limits.OUTPUT_LINE_BYTES
GLANCE = 0.5  # seconds between looks at the clock while the agent is silent
MARK = "TENURE_SESSION"  # each agent is started in a session of its own: what has it in its environment, is the agent's
DRAIN = 2.0  # seconds to read what is left in the pipes once everything has ended

Heard = Callable[[str, bytes], None]  # the stream's name, and a line without its end


class Ended(NamedTuple):
    """How an agent's process came to its end."""

    code: int | None  # its exit code; negative: the signal that ended it
    why: str | None = None  # set where the runner ended it: timeout, stopped, …
    failed: str | None = None  # it could not be started at all
    is_lost: bool = False  # its keeper was killed


class Keeper:
    """A process that keeps at most one agent; its own end proves that nothing of the agent is left."""

    def __init__(self) -> None:
        status, theirs = os.pipe()
        self.popen = subprocess.Popen(
            # -I -S: nothing of the user's environment or site packages is imported, and it starts in 15 ms
            [sys.executable, "-I", "-S", KEEPER, str(theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs,),
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the runner, and its group may be killed without us
        )
        os.close(theirs)
        self._status = os.fdopen(status, "rb", buffering=0)
        self._mutex = threading.Lock()
        self._why: str | None = None
        self._deadline: float | None = None
        self._late = ""  # why it will be ended at the deadline
        self._failed: str | None = None
        self._code: int | None = None
        self._is_gone = False
        self._is_lost = False
        self._mark = ""

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def process(self) -> Process | None:
        """What a claim names as its holder's process; None where the keeper has died already."""
        return described(self.popen.pid)

    def start(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: str, grace: float) -> None:
        """Start the agent; `stdin` is a file's path, `grace` the seconds that it has to end if this process dies.

        `watch` tells what became of it.
        """
        self._mark = f"{MARK}={env[MARK]}"
        order = {"argv": list(argv), "cwd": cwd, "env": dict(env), "stdin": stdin, "grace": grace}
        self._tell(json.dumps(order))

    def end(self, why: str, grace: float) -> None:
        """Ask the agent to end, from any thread; the first reason given is the one that counts."""
        with self._mutex:
            self._why = self._why or why
        self._tell(f"end {grace}")

    def end_within(self, seconds: float, why: str) -> None:
        """Let the agent come to its own end, but no longer than that."""
        with self._mutex:
            until = time.monotonic() + seconds
            if self._deadline is None or until < self._deadline:
                self._deadline, self._late = until, why

    def watch(self, heard: Heard, timeout: float, grace: float) -> Ended:
        """Pass on what the agent says until nothing of it is left."""
        self.end_within(timeout, "timeout")
        lines = {name: _Lines() for name in ("stdout", "stderr", "status")}
        streams = {"stdout": self.popen.stdout, "stderr": self.popen.stderr, "status": self._status}
        with selectors.DefaultSelector() as selector:
            for name, stream in streams.items():
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ, name)
            give_up: float | None = None
            while selector.get_map():
                for key, _ in selector.select(GLANCE):
                    part = os.read(key.fd, 1 << 16)
                    for line in lines[key.data].fed(part):
                        self._heard_status(line) if key.data == "status" else heard(key.data, line)
                    if not part:
                        selector.unregister(key.fileobj)
                        self._ended(key.data)
                self._end_if_late(grace)
                if self._is_gone:
                    # What escaped every hunt could hold the pipes open for ever.
                    give_up = give_up or time.monotonic() + DRAIN
                    open_ = {key.data for key in selector.get_map().values()}
                    if time.monotonic() > give_up or open_ <= {"status"}:
                        break
        for name in ("stdout", "stderr"):
            for line in lines[name].rest():
                heard(name, line)
        return Ended(self._code, self._why, self._failed, self._is_lost)

    def _ended(self, stream: str) -> None:
        if stream == "status" and not self._is_gone:
            self._is_gone = self._is_lost = True
            end_marked(self._mark)

    def _end_if_late(self, grace: float) -> None:
        with self._mutex:
            late = self._late if self._deadline is not None and time.monotonic() > self._deadline else None
            self._deadline = None if late else self._deadline
        if late and not self._is_gone:
            self.end(late, grace)

    def close(self) -> None:
        """The claim is over: let the keeper go, and wait until it has."""
        with self._mutex:
            for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr, self._status):
                if stream is not None and not stream.closed:
                    with suppress(BrokenPipeError):
                        stream.close()
        self.popen.wait()

    def _tell(self, line: str) -> None:
        with self._mutex:
            stdin = self.popen.stdin
            assert stdin is not None
            if stdin.closed:
                return
            with suppress(BrokenPipeError):  # it was killed; `watch` sees that
                stdin.write(line.encode() + b"\n")
                stdin.flush()

    def _heard_status(self, line: bytes) -> None:
        what = json.loads(line)
        if "exit" in what:
            self._code = what["exit"]
        elif "failed" in what:
            self._failed = f"{what['path']}: {what['failed']}" if what["path"] else what["failed"]
            self._is_gone = True
        elif "gone" in what:
            self._is_gone = True


class _Lines:
    """Lines out of pieces; one that is too long is cut, so that no output can fill the memory."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._size = 0

    def fed(self, part: bytes) -> list[bytes]:
        *whole, last = part.split(b"\n")
        lines = []
        for line in whole:
            self._add(line)
            lines.append(b"".join(self._kept))
            self._kept, self._size = [], 0
        self._add(last)
        return lines

    def rest(self) -> list[bytes]:
        return [b"".join(self._kept)] if self._kept else []

    def _add(self, part: bytes) -> None:
        part = part[: LONGEST_LINE - self._size]
        if part:
            self._kept.append(part)
            self._size += len(part)


def described(pid: int) -> Process | None:
    """A running process of this host as claims name it."""
    found = processes.look_up(pid)
    if found is None:
        return None
    return Process(host=processes.host(), boot=processes.boot_id(), pid=pid, start=found.start)


def end_marked(mark: str) -> None:
    """Kill whatever has the mark in its environment: what a killed keeper could not end."""
    for _ in range(5):  # one that forks may be missed by a single look
        found = marked(mark)
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> list[int]:
    """Processes that have the mark, `NAME=value`, in their environment, as far as this user may see it."""
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                content = Path(f"/proc/{entry}/environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in content.split(b"\0"):
                found.append(int(entry))
    return found
