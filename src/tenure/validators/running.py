"""Runs a command to its end or its limit, whichever is first, and keeps the beginning and end of what it says."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tenure.validators.port import Undecided

KEEPER = Path(__file__).with_name("keeper.py")
HEAD, TAIL = 16 << 10, 48 << 10  # bytes that are kept of what it says
ENDING = 30.0  # seconds that the keeper has beyond the command's limit
LOOK = 0.5  # seconds between two looks at whether it is still wanted


class Ran(NamedTuple):
    exit: int | None  # None where it had to be ended; below 0: the signal that ended it
    limit: str | None  # `time`, `unwanted`
    output: bytes  # the beginning and the end
    left_out: int  # bytes between them
    left_behind: int  # processes that lived on when it ended, and were ended
    seconds: float


def run(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    errors_apart: bool = False,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Ran:
    """Raises Undecided where it cannot be started. With `errors_apart` what it says on stderr is not kept.

    When this returns nothing of it is left; `is_wanted` is asked every half second, and False ends it at once.
    """
    began, kept = time.monotonic(), _Kept()
    with ExitStack() as stack:
        try:
            given = stack.enter_context(tempfile.TemporaryFile())
            given.write(stdin)
            given.seek(0)
            keeper, status = _started(stack, given.fileno(), errors_apart)
        except OSError as error:  # no room, no process
            raise Undecided(f"{argv[0]} cannot be started now: {error.strerror}", again=True) from error
        order = {
            "argv": list(argv), "cwd": str(cwd), "env": dict(env), "seconds": seconds, "stdin": given.fileno(),
        }  # fmt: skip
        said = _follow(keeper, msgspec.json.encode(order), status, kept, began + seconds + ENDING, is_wanted)
    if said is None:
        raise Undecided(f"{argv[0]}: the process that kept it was ended", again=True)
    if "failed" in said:
        raise Undecided(f"{said['failed']}", "Mend the command in the configuration.")
    if said["stuck"]:
        raise Undecided(f"{argv[0]}: {said['stuck']} of its processes cannot be ended")
    return Ran(
        said["exit"], said["limit"], kept.text(), kept.left_out, said["left_behind"], round(time.monotonic() - began, 3)
    )


def _started(stack: ExitStack, given: int, errors_apart: bool) -> tuple[subprocess.Popen[bytes], int]:
    """A keeper that waits for its order, and where it will tell how it went."""
    status, its_end = os.pipe()
    stack.callback(os.close, status)
    try:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(KEEPER), str(its_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors_apart else subprocess.STDOUT,
            pass_fds=(its_end, given),
            process_group=0,  # Ctrl-C is not for it
            env={},  # what it starts could read its environment
        )
    finally:
        os.close(its_end)
    stack.callback(_end, keeper)
    return keeper, status


class _Kept:
    """The first bytes and the last."""

    def __init__(self) -> None:
        self._head, self._tail, self.left_out = bytearray(), bytearray(), 0

    def add(self, part: bytes) -> None:
        room = HEAD - len(self._head)
        self._head += part[:room]
        self._tail += part[room:] if room > 0 else part
        if len(self._tail) > 2 * TAIL:
            self._cut()

    def _cut(self) -> None:
        more = max(0, len(self._tail) - TAIL)
        self.left_out += more
        del self._tail[:more]

    def text(self) -> bytes:
        self._cut()
        gap = f"\n… {self.left_out:,} bytes left out …\n".encode() if self.left_out else b""
        return bytes(self._head) + gap + bytes(self._tail)


def _follow(
    keeper: subprocess.Popen[bytes],
    order: bytes,
    status: int,
    kept: _Kept,
    until: float,
    is_wanted: Callable[[], bool],
) -> dict[str, Any] | None:
    """Give the order and read along; what the keeper tells at the end, or None where it cannot any more."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    with suppress(BrokenPipeError):
        keeper.stdin.write(order + b"\n")
        keeper.stdin.flush()
    output = keeper.stdout.fileno()
    os.set_blocking(output, False)
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(status, select.POLLIN)
    told, is_told = b"", False
    while not is_told and time.monotonic() < until:
        for handle, _ in poll.poll(LOOK * 1000):
            part = _read(handle)
            if handle == output and part:
                kept.add(part)
            elif handle == output:
                poll.unregister(output)
            elif part:
                told += part
            else:
                is_told = True
        if not keeper.stdin.closed and not is_wanted():
            keeper.stdin.close()
    while part := _read(output):  # what was said before the end
        kept.add(part)
    return msgspec.json.decode(told) if told.endswith(b"\n") else None


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1 << 16)
    except BlockingIOError:
        return b""


def _end(keeper: subprocess.Popen[bytes]) -> None:
    for pipe in (keeper.stdin, keeper.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    try:
        keeper.wait(ENDING)  # the end of its stdin ends it, and everything with it
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()
