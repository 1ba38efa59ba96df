"""Commands that outlive the process that started them, each below its own supervisor.

The supervisor is in a new session and reads its order from a pipe. Its pid is known before the order is sent: the
caller records it, then orders. A caller that dies in between has started nothing, because a supervisor whose stdin ends
without an order ends too. So a record without a process means that nothing runs, and a process has a record.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from tenure.processes.supervisor import SCRIPT
from tenure.processes.supervisor_script import entry_of


class NotStarted(Exception):
    """Nothing was started, and nothing of it is left."""


class StartUnknown(Exception):
    """The supervisor did not report in time; its command may run."""


class ProcessId(NamedTuple):
    """A process of a machine; a reused pid is another one."""

    pid: int
    start: str  # its start time, with the boot that it counts from
    host: str

    @property
    def text(self) -> str:
        return f"{self.pid}:{self.start}:{self.host}"


def process_id(text: str) -> ProcessId | None:
    """The process that a text names; None where it names none."""
    pid, _, rest = text.partition(":")
    start, _, host = rest.partition(":")
    return ProcessId(int(pid), start, host) if pid.isdecimal() and start and host else None


def found(pid: int) -> ProcessId | None:
    """The running process with this pid; a zombie does not run."""
    start = _start(pid)
    return None if start is None else ProcessId(pid, start, os.uname().nodename)


def state_of(process: ProcessId) -> str:
    """`running`, `ended`, or `unknown` for a process of another host."""
    if process.host != os.uname().nodename:
        return "unknown"
    return "running" if _start(process.pid) == process.start else "ended"


def _start(pid: int) -> str | None:
    entry = entry_of(pid)
    if entry is not None:
        return f"{entry.start}@{_boot()}" if entry.lives else None
    if os.path.isdir("/proc/self"):  # noqa: PTH112 - this module starts with every spawner
        return None
    from tenure.core.child_environments import ChildKind, for_child

    fields = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False,
        env={**for_child(ChildKind.PROGRAM, os.environ), "LC_ALL": "C"},
    ).stdout.split()  # fmt: skip
    return None if not fields or fields[0].startswith("Z") else "-".join(fields[1:]).replace(":", ".")


def _boot() -> str:
    """Names this boot and this pid namespace: containers share a boot, and often a host name."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
        return f"{file.read(8)}-{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116


def start(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    grace: float,
    seconds: float,
    record: Callable[[ProcessId], None],
    stdin: int | None = None,
    output: int = subprocess.DEVNULL,
) -> ProcessId:
    """Start the command below a supervisor and return the supervisor's process.

    `record` gets that process before the command starts; where it raises, nothing is started. `stdin` is a descriptor
    of the command's input, `output` one that stdout and stderr go to. Raises NotStarted and StartUnknown.
    """
    status, theirs = os.pipe()
    try:
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", SCRIPT, str(theirs)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(theirs,) if stdin is None else (theirs, stdin),
            cwd="/",
            env={},
            start_new_session=True,
        )
    except OSError as error:
        os.close(status)
        raise NotStarted(f"a supervisor cannot be started: {error.strerror}") from error
    finally:
        os.close(theirs)
    threading.Thread(target=popen.wait, name=f"tenure-spawned-{popen.pid}", daemon=True).start()  # no zombie stays
    assert popen.stdin is not None
    with os.fdopen(status, "rb", buffering=0) as reports, popen.stdin:
        process = found(popen.pid)
        if process is None:
            raise NotStarted("the supervisor has ended at once")
        record(process)
        order = {
            "argv": list(argv), "cwd": cwd, "env": dict(env), "stdin": os.devnull if stdin is None else stdin,
            "memory": None, "grace": grace, "leftover_grace": 0.0, "is_detached": True,
        }  # fmt: skip
        with suppress(BrokenPipeError):  # it was killed: there is no report either
            popen.stdin.write(json.dumps(order).encode() + b"\n")
            popen.stdin.flush()
        report = _report(reports.fileno(), time.monotonic() + seconds)
    if report is None:
        raise StartUnknown(f"no report of the start within {seconds:g} s")
    if report == b"":
        raise NotStarted("the supervisor was killed before it started the command")
    message = json.loads(report)
    if "failed" in message:
        raise NotStarted(message["failed"])
    return process


def _report(handle: int, until: float) -> bytes | None:
    """The first line; empty where the supervisor has ended without one, None where it does not come in time."""
    line = b""
    while b"\n" not in line:
        ready, _, _ = select.select([handle], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        part = os.read(handle, 1 << 16)
        if not part:
            return b""
        line += part
    return line.partition(b"\n")[0]


def end(process: ProcessId, *, graceful: bool) -> None:
    """Ask the command to finish (SIGINT), or end it with everything below it within its grace (SIGTERM)."""
    if state_of(process) == "running":
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT if graceful else signal.SIGTERM)
