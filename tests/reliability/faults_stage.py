"""The process under strace: for each point it forks a child that acts, and one call of that child fails.

strace counts the calls of each process by itself and fails the same number in all of them. So a child first makes
as many calls to nowhere as move its point to that number. It talks with `readv` and `writev`, which are never made to
fail. A point costs some 30 ms in this way instead of half a second for a new interpreter.
"""

# ruff: noqa: PTH102, PTH104, PTH108 - the very calls that are to be counted

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from tenure.core.errors import TenureError
from tests.reliability.faults_acts import ACTS, Act

NOWHERE = "/nonexistent/nowhere"


def _calls(handle: int) -> dict[str, Callable[[], object]]:
    """For each call one that reaches the kernel and changes nothing."""
    return {
        "pwrite64": lambda: os.pwrite(handle, b"", 0),
        "pread64": lambda: os.pread(handle, 1, 0),
        "write": lambda: os.write(handle, b""),
        "ftruncate": lambda: os.ftruncate(handle, 0),
        "fsync": lambda: os.fsync(handle),
        "fdatasync": lambda: os.fdatasync(handle),
        "openat": lambda: os.open(NOWHERE, os.O_RDONLY),
        "rename": lambda: os.rename(NOWHERE, NOWHERE),
        "link": lambda: os.link(NOWHERE, NOWHERE),
        "linkat": lambda: os.link(NOWHERE, NOWHERE),
        "unlink": lambda: os.unlink(NOWHERE),
        "mkdir": lambda: os.mkdir("/"),
    }


def say(handle: int, said: Any) -> None:
    os.writev(handle, [msgspec.json.encode(said) + b"\n"])


def heard(handle: int) -> Any:
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = bytearray(1)
        if os.readv(handle, [piece]) == 0:
            raise SystemExit(0)
        line += piece
    return msgspec.json.decode(bytes(line))


def tried(act: Act, folder: Path, held: list[Any]) -> dict[str, Any]:
    """How it went, as its caller is told."""
    try:
        return {"done": act.act(folder, held)}
    except TenureError as error:
        return {"error": error.code, "definite": error.definite, "text": str(error)}
    except OSError as error:
        return {"error": "OSError", "definite": True, "text": str(error)}
    except BaseException as error:  # noqa: BLE001  # what a user would see as a traceback is a finding
        return {"crash": f"{type(error).__name__}: {error}"}


def child(act: Act, asked: dict[str, Any]) -> NoReturn:
    folder = Path(asked["folder"])
    if asked.get("largest"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["largest"], resource.RLIM_INFINITY))
    elif asked["call"]:
        handle = os.open("/dev/null", os.O_RDWR)
        call = _calls(handle)[asked["call"]]
        for _ in range(asked["skip"]):
            with suppress(OSError):
                call()
    held: list[Any] = []
    say(1, tried(act, folder, held))
    if heard(0) == "again":
        if asked.get("largest"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        say(1, tried(act, folder, held))
    os._exit(0)


def main(argv: list[str]) -> None:
    act = ACTS[argv[0]]
    warm_up(act, Path(argv[1]))
    say(1, "ready")
    while True:
        asked = heard(0)
        pid = os.fork()
        if pid == 0:
            child(act, asked)
        _, status = os.waitpid(pid, 0)
        say(1, {"ended": os.waitstatus_to_exitcode(status)})


def warm_up(act: Act, folder: Path) -> None:
    """Once, so that a child imports nothing. In a process of its own, whose modules this one reads again."""
    before = set(sys.modules)
    inside, outside = os.pipe()
    pid = os.fork()
    if pid == 0:
        held: list[Any] = []
        tried(act, folder, held)
        tried(act, folder, held)
        os.writev(outside, [msgspec.json.encode(sorted(set(sys.modules) - before))])
        os._exit(0)
    os.close(outside)
    with os.fdopen(inside, "rb") as names:
        text = names.read()
    os.waitpid(pid, 0)
    for name in msgspec.json.decode(text):
        with suppress(ImportError):
            __import__(name)


if __name__ == "__main__":
    main(sys.argv[1:])
