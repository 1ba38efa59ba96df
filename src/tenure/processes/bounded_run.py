"""Runs one command to its end or its time limit, and keeps the beginning and the end of its output."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from tenure.processes.output import HeadAndTail
from tenure.processes.supervisor import Supervisor

HEAD, TAIL = 16 << 10, 48 << 10  # bytes of the output that are kept
GRACE = 2.0  # seconds from SIGTERM to SIGKILL at the time limit
ENDING = 30.0  # seconds that the supervisor has to end


class NotRun(Exception):
    """The command could not be started, or its end is not known. `may_pass`: another try may succeed."""

    def __init__(self, message: str, *, may_pass: bool = False, is_misconfigured: bool = False) -> None:
        super().__init__(message)
        self.message, self.may_pass, self.is_misconfigured = message, may_pass, is_misconfigured


def unnamed_file(content: bytes) -> IO[bytes]:
    """A file for a command's stdin: in memory where the system has such files, since it may be a secret."""
    handle = os.memfd_create("stdin") if hasattr(os, "memfd_create") else None
    file = tempfile.TemporaryFile() if handle is None else os.fdopen(handle, "w+b")  # noqa: SIM115 - the caller closes
    try:
        file.write(content)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


class CommandRun(NamedTuple):
    exit: int | None  # negative: the signal that ended it
    limit: str | None  # `time`, `unwanted`
    output: bytes  # the beginning and the end
    left_out: int  # bytes between them
    left_behind: int  # processes that outlived it and were killed
    seconds: float
    stderr: bytes = b""  # the beginning and the end, where it was kept apart


def run(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    keep_stderr: bool = True,
    splits_stderr: bool = False,
    is_wanted: Callable[[], bool] = lambda: True,
) -> CommandRun:
    """Raises NotRun where the command cannot be started or ended.

    `splits_stderr` keeps stderr apart from the output. `is_wanted` is asked every half second; False ends the command
    at once. When this returns, no process of the command is left.
    """
    began = time.monotonic()
    kept, errors = HeadAndTail(HEAD, TAIL), HeadAndTail(HEAD, TAIL)
    with ExitStack() as stack:
        try:
            given = stack.enter_context(unnamed_file(stdin))
            stderr = subprocess.STDOUT if keep_stderr else subprocess.DEVNULL
            if splits_stderr:
                stderr = subprocess.PIPE
            supervisor = Supervisor(stdin=given.fileno(), stderr=stderr)
        except OSError as error:  # the disk is full, or there are too many processes
            raise NotRun(f"{argv[0]} cannot be started now: {error.strerror}", may_pass=True) from error
        stack.callback(supervisor.close, ENDING)

        def tick() -> None:
            if not is_wanted():
                supervisor.abandon()

        supervisor.start(argv, cwd=str(cwd), env=env, stdin=given.fileno(), grace=0.0, leftover_grace=0.0)
        supervisor.end("time", GRACE, after=seconds)
        ended = supervisor.follow(
            lambda name, chunk: (errors if name == "stderr" else kept).add(chunk), tick, gives_up=True
        )
    if ended.is_lost:
        raise NotRun(f"{argv[0]}: its supervisor was killed", may_pass=True)
    if ended.failed is not None:
        raise NotRun(ended.failed, is_misconfigured=True)
    if ended.stuck:
        raise NotRun(f"{argv[0]}: {ended.stuck} of its processes cannot be killed")
    took = round(time.monotonic() - began, 3)
    return CommandRun(ended.code, ended.why, kept.text(), kept.left_out, ended.left_behind, took, errors.text())
