"""Processes as the kernel reports them: pid, start time, boot. A pid alone is not enough, since pids are reused."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import cached_property

import msgspec

from tenure.core import commands

PROC = "/proc"


class Process(msgspec.Struct, frozen=True):
    pid: int
    parent: int
    start: int  # ticks since boot on Linux, epoch seconds elsewhere; compared for equality only
    programs: tuple[str, ...]  # its own name, and that of the script it runs
    has_terminal: bool = False


def look_up(pid: int) -> Process | None:
    """The running process with that pid; a zombie does not run."""
    if os.path.isdir(PROC):
        return _from_proc(pid)
    return _from_ps(pid)


def _from_proc(pid: int) -> Process | None:
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            stat = file.read()
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    # The name is in parentheses and may contain any character: fields count from the last one.
    name = stat[stat.index(b"(") + 1 : stat.rindex(b")")]
    fields = stat[stat.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    programs = _programs(name.decode(errors="replace"), words)
    return Process(pid, int(fields[1]), int(fields[19]), programs, has_terminal=fields[4] != b"0")


def _programs(name: str, words: Collection[bytes]) -> tuple[str, ...]:
    # `node --flag /usr/bin/gemini.js` is gemini: the program, and the script it runs
    first = [word for word in words if word and not word.startswith(b"-")][:2]
    named = [os.path.splitext(os.path.basename(os.fsdecode(word)))[0] for word in first]
    return tuple(dict.fromkeys((name, *named)))


def _from_ps(pid: int) -> Process | None:
    import subprocess  # not at the top: on Linux no command pays for it

    from tenure.core.child_environments import ChildKind, for_child

    fields = subprocess.run(
        ["ps", "-o", "ppid=,stat=,lstart=,tty=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**for_child(ChildKind.PROGRAM, os.environ), "LC_ALL": "C"},
    ).stdout.split()
    if len(fields) < 9 or fields[1].startswith("Z"):
        return None
    import time

    start = int(time.mktime(time.strptime(" ".join(fields[2:7]), "%a %b %d %H:%M:%S %Y")))
    programs = _programs(os.path.basename(fields[8]), [word.encode() for word in fields[8:]])
    return Process(pid, int(fields[0]), start, programs, has_terminal=fields[7].strip("?") != "")


def _upward(pid: int | None) -> Iterator[Process]:
    process = look_up(os.getppid() if pid is None else pid)
    while process is not None:
        yield process
        process = look_up(process.parent) if process.parent else None


def lineage(pid: int | None = None) -> list[Process]:
    """The ancestors of this process, its parent first (or from `pid` on, itself included)."""
    return list(_upward(pid))


def nearest(programs: Collection[str], pid: int | None = None) -> Process | None:
    """The nearest ancestor (of this process, or from `pid` on) with one of these names."""
    return next((process for process in _upward(pid) if any(name in programs for name in process.programs)), None)


def is_copy(process: Process, above: Process) -> bool:
    """Is it a fork of the program above, as shells make for a part of a script?"""
    try:
        with open(f"{PROC}/{process.pid}/cmdline", "rb") as mine, open(f"{PROC}/{above.pid}/cmdline", "rb") as theirs:
            return mine.read() == theirs.read()
    except OSError:
        return False


def is_read_by(process: Process, above: Process) -> bool:
    """Does the process above read the output, as a shell does for `$(…)`?"""
    try:
        output = os.readlink(f"{PROC}/{process.pid}/fd/1")
        ours = os.listdir(f"{PROC}/{above.pid}/fd")
    except OSError:
        return False
    return output.startswith("pipe:") and any(_link(f"{PROC}/{above.pid}/fd/{number}") == output for number in ours)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def is_in_foreground() -> bool:
    """Is this process in the foreground job of its terminal?"""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def is_nohup() -> bool:
    """Is SIGHUP ignored?"""
    import signal  # only claims at a prompt ask

    return signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def is_sandboxed(programs: Collection[str]) -> bool:
    """Has process 1 one of these names? Then this is a sandbox that ends with its command."""
    first = look_up(1)
    return first is not None and any(name in programs for name in first.programs)


def has_ended(pid: int, start: int) -> bool:
    """Is it certain that the process with this pid and start time has ended? Only valid for this process table."""
    process = look_up(pid)
    if process is not None:
        return process.start != start
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # it runs, and may be hidden from this user
    return True  # a zombie


def boot_id() -> str:
    """Identifies a process table of the host: different after each boot, and in each pid namespace.

    Containers of one machine share its boot and often its name; a pid of one container, looked up in another, would
    prove that a running process has ended.
    """
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}-{os.stat(f'{PROC}/self/ns/pid').st_ino}"
    except OSError:
        import subprocess

        words = ["sysctl", "-n", "kern.boottime"]
        return subprocess.run(words, capture_output=True, text=True, check=False, env={}).stdout.strip()


def host() -> str:
    return os.uname().nodename


class _Called:
    what = "python"  # a program that uses the SDK


def call(what: str) -> None:
    """Say what runs in this process: a verb of the command line, or a worker."""
    _Called.what = what


def called() -> str:
    """What an operator of a database server sees of this process: what runs here, and on which host.

    One word of ASCII, of at most 63 characters: PostgreSQL cuts longer ones, and Valkey refuses a space.
    """
    return re.sub(r"[^\w.@-]", "-", f"tenure-{_Called.what}@{host()}", flags=re.ASCII)[:63]


def as_claimed(process: Process) -> commands.Process:
    """A process of this host as claims name it."""
    return commands.Process(host=host(), boot=boot_id(), pid=process.pid, start=process.start)


def described(pid: int) -> commands.Process | None:
    """A running process of this host as claims name it; None where it has ended."""
    found = look_up(pid)
    return as_claimed(found) if found else None


class HostTable:
    """The processes of this host since its boot, for those who have a process in the form in which claims name it."""

    @cached_property
    def place(self) -> str:
        """What the texts of its processes begin with."""
        return f"{host()}|{boot_id()}|"

    def has_ended(self, process: commands.Process) -> bool:
        """Is it certain? Of a process elsewhere it never is."""
        return f"{process.host}|{process.boot}|" == self.place and has_ended(process.pid, process.start)
