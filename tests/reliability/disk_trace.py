"""Every change that a process makes to files, as the kernel saw it: recorded with strace, parsed into operations.

A traced run sees SQLite, `os` and the artifacts' folder alike, and the syncs of folders that SQLite does by itself,
without a line in the product that exists for a test. Writes to shared memory (`-shm`) are not seen: after a power cut
that file is built again.
"""

# ruff: noqa: PTH100, PTH118 - paths of a trace, which need not exist

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.servers.processes import found_or_installed

CALLS = (
    "openat,write,writev,pwrite64,pwritev,ftruncate,fallocate,fsync,fdatasync,"
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir"
)
_LINE = re.compile(r"^(\d+)\s+(.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FILE = re.compile(r"^(\d+)<((?:\\x[0-9a-f]{2}|[^>])*)>")
_AT = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2}|[^>])*)>, \"((?:\\x[0-9a-f]{2})*)\"")


class Write(NamedTuple):
    path: str
    offset: int | None  # None: where the file's position is
    data: bytes


class Truncate(NamedTuple):
    path: str
    size: int


class Create(NamedTuple):
    """A file was opened with O_CREAT; it may have been there."""

    path: str
    is_emptied: bool


class Sync(NamedTuple):
    path: str  # of a file or of a folder


class Rename(NamedTuple):
    old: str
    new: str


class Link(NamedTuple):
    old: str
    new: str


class Unlink(NamedTuple):
    path: str


class MakeFolder(NamedTuple):
    path: str


Operation = Write | Truncate | Create | Sync | Rename | Link | Unlink | MakeFolder


def recorded(command: Sequence[str], root: Path) -> list[Operation]:
    """What the command changed below `root`, in order. Raises where it fails or cannot be traced."""
    strace = found_or_installed("strace")
    with tempfile.TemporaryDirectory(prefix="tenure-trace-") as folder:
        log = Path(folder) / "log"
        traced = [str(strace), "-f", "-qq", "-y", "-xx", "-s", "16777216", "-e", f"trace={CALLS}", "-e", "signal=none"]
        done = subprocess.run([*traced, "-o", str(log), *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return list(parsed(log, str(root)))


def parsed(log: Path, root: str) -> Iterator[Operation]:
    halves: dict[str, str] = {}
    with log.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            match = _LINE.match(line.rstrip("\n"))
            if match is None:
                continue
            process, text = match.groups()
            if text.endswith("<unfinished ...>"):
                halves[process] = text.removesuffix("<unfinished ...>").rstrip()
                continue
            if text.startswith("<... "):
                text = halves.pop(process, "") + text.partition(" resumed>")[2]
            call = _CALL.match(text)
            if call is None or int(call.group(3)) < 0:
                continue
            yield from _operation(call.group(1), call.group(2), int(call.group(3)), root)


def _operation(call: str, arguments: str, result: int, root: str) -> Iterator[Operation]:
    if call in ("write", "pwrite64", "ftruncate", "fsync", "fdatasync", "fallocate", "writev", "pwritev"):
        file = _FILE.match(arguments)
        if file is None:
            return
        path = _plain(file.group(2)).removesuffix(" (deleted)")
        if not _inside(path, root):
            return
        if call in ("fsync", "fdatasync"):
            yield Sync(path)
        elif call == "ftruncate":
            yield Truncate(path, int(arguments.rpartition(", ")[2]))
        elif call in ("write", "pwrite64"):
            text = _TEXT.search(arguments)
            data = _bytes(text.group(1) if text else "")[:result]
            yield Write(path, int(arguments.rpartition(", ")[2]) if call == "pwrite64" else None, data)
        elif not path.endswith("-shm"):
            raise RuntimeError(f"{call} on {path}: this recorder does not know that call")
        return
    paths = [os.path.normpath(os.path.join(_plain(at), _plain(name))) for at, name in _AT.findall(arguments)]
    if not paths:  # calls without a folder's descriptor
        paths = [os.path.abspath(_plain(name)) for name in _TEXT.findall(arguments)]
    if not paths or not any(_inside(path, root) for path in paths):
        return
    if call == "openat":
        if "O_CREAT" in arguments or "O_TRUNC" in arguments:
            yield Create(paths[0], "O_TRUNC" in arguments)
    elif call.startswith("rename"):
        yield Rename(paths[0], paths[1])
    elif call.startswith("link"):
        yield Link(paths[0], paths[1])
    elif call.startswith("unlink") or call == "rmdir":
        yield Unlink(paths[0])
    elif call.startswith("mkdir"):
        yield MakeFolder(paths[0])


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _plain(text: str) -> str:
    return os.fsdecode(_bytes(text)) if text.startswith("\\x") else text
