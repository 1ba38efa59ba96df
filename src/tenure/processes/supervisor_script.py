"""The process above one command: starts it, ends it in time, and kills everything that the command has started.

`supervisor.py` runs this file as a script, with the standard library alone. Stdin brings lines of JSON: one order
(`argv`, …) and any number of limits (`end`, `after`, `grace`); its end means that the caller needs no more. Stdout and
stderr are the command's. The descriptor named by the first argument gets one line of JSON when nothing of the command
is left. After that line this process stays until stdin ends: a claim may name it as its holder's process.

An order with `is_detached` is for a command that outlives its caller (`detached.py`): a line reports that it has
started, the end of stdin changes nothing, SIGINT is passed on to the command, and SIGTERM ends the tree: the command
alone is asked first, everything that is left after `grace` seconds is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

IS_LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LEFTOVERS = 2.0  # seconds for the rest of the tree, at most, once a command that was asked to end has ended
SLICE = 0.2  # seconds of stopping, after which stopped processes are killed
STUCK = 10.0  # seconds of killing after which the caller learns that something cannot be killed
SHORTEST, LONGEST = 0.001, 0.02  # seconds between two rounds that found nothing new
LIBC = ctypes.CDLL(None) if IS_LINUX else None


class Entry(NamedTuple):
    """A line of the process table."""

    name: str
    lives: bool
    parent: int
    group: int
    start: int


def environment_at(folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that starts in `folder`: every child gets its environment here.

    A caller's PWD names the folder of the caller's shell, and some programs believe it more than the kernel.
    """
    return {name: value for name, value in environ.items() if name != "OLDPWD"} | {"PWD": os.path.abspath(folder)}  # noqa: PTH100


def entry_of(pid: int) -> Entry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 pathlib would be most of the start
            stat = file.read()
    except OSError:
        return None
    name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Entry(name, fields[0] not in (b"Z", b"X"), int(fields[1]), int(fields[2]), int(fields[19]))


def descendants(older: set[int]) -> Iterator[tuple[int, Entry]]:
    """What lives below this process, newest first, each as soon as it is known to be below.

    Newest first, because what forks and exits in a loop is always the newest. `older` collects processes that began
    before this one, so that the next scan need not read them.
    """
    me = os.getpid()
    own = entry_of(me)
    tree, unplaced = {me}, {}
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):  # noqa: PTH208
        entry = None if pid in older or pid == me else entry_of(pid)
        if entry is None:
            continue
        if own is not None and entry.start < own.start:
            older.add(pid)
        elif entry.parent in tree:
            tree.add(pid)
            if entry.lives:
                yield pid, entry
        else:
            unplaced[pid] = entry
    while found := [pid for pid, entry in unplaced.items() if entry.parent in tree]:
        for pid in found:
            tree.add(pid)
            entry = unplaced.pop(pid)
            if entry.lives:
                yield pid, entry


def send(pid: int, number: int) -> bool:
    """Signal a process, or with a negative number its group; False where there is none to signal."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class Tree:
    """The command and everything that it has started."""

    def __init__(self) -> None:
        self.main: subprocess.Popen[bytes] | None = None
        self.code: int | None = None
        self.killed: set[int] = set()
        self.is_gone = False

    def start(self, order: dict[str, Any]) -> None:
        parent, memory = os.getpid(), order["memory"]

        def prepare() -> None:
            if memory is not None:
                with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
                    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if LIBC is not None:
                LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != parent:
                    os._exit(1)

        with open(order["stdin"], "rb", buffering=0) as stdin:  # noqa: PTH123 a path or a descriptor
            self.main = subprocess.Popen(
                order["argv"],
                cwd=order["cwd"],
                env=environment_at(order["cwd"], order["env"]),
                stdin=stdin,
                start_new_session=True,
                preexec_fn=prepare,  # noqa: PLW1509 this process has one thread
            )

    def reap(self) -> None:
        """Collect what has ended. No child left means, for a subreaper, that no descendant is."""
        while not self.is_gone:
            try:
                pid, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_gone = IS_LINUX or self.main is None or not send(-self.main.pid, 0)
                return
            if pid == 0:
                return
            if self.main is not None and pid == self.main.pid:
                self.code = self.main.returncode = os.waitstatus_to_exitcode(how)

    def living(self, older: set[int]) -> Iterator[tuple[int, Entry]]:
        if IS_LINUX:
            yield from descendants(older)
        elif self.main is not None and send(-self.main.pid, 0):
            yield -self.main.pid, Entry("", True, os.getpid(), self.main.pid, 0)

    def ask_to_end(self) -> None:
        for pid, entry in self.living(set()):
            if entry.name != "bwrap":  # bwrap would kill its whole namespace at once, without a grace
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)  # a stopped process does not handle SIGTERM

    def strike(self) -> bool:
        """Stop every process until a scan finds no new one, then kill them; was any new?"""
        own, older = os.getpgid(0), set[int]()
        stopped: dict[int, int] = {}
        until = time.monotonic() + SLICE
        while time.monotonic() < until:
            before = len(stopped)
            self.reap()
            for pid, entry in self.living(older):
                if pid not in stopped:
                    stopped[pid] = entry.group
                    send(pid if entry.group == own else -entry.group, signal.SIGSTOP)
            if len(stopped) == before:
                break
        for group in set(stopped.values()) - {own}:
            send(-group, signal.SIGKILL)
        for pid in stopped:
            send(pid, signal.SIGKILL)
        was_new = not stopped.keys() <= self.killed
        self.killed |= stopped.keys()
        return was_new

    def kill(self) -> Iterator[int]:
        """Kill until nothing is left. Yields once, after a while, how many processes do not end."""
        until: float | None = time.monotonic() + STUCK
        wait = SHORTEST
        while not self.is_gone:
            if not self.strike():
                time.sleep(wait)
                wait = min(2 * wait, LONGEST)
            self.reap()
            if until is not None and time.monotonic() > until:
                until = None
                yield max(1, len(list(self.living(set()))))


class SupervisorProcess:
    def __init__(self, status: int, wake: int, guard: int, order: dict[str, Any]) -> None:
        """`guard` is a pipe that ends with the process that watches over this one."""
        self.status, self.wake, self.guard = status, wake, guard
        self.order = order
        self.is_detached = bool(order.get("is_detached"))
        self.tree = Tree()
        self.is_wanted = True
        self.limit: tuple[float, str, float] | None = None  # when to end the command, why, and its grace
        self.why: str | None = None
        self.kill_at: float | None = None  # set once the tree is being ended

    def report(self, **what: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.status, json.dumps(what).encode() + b"\n")

    def give_up(self) -> None:
        """The caller is gone, or needs no more."""
        self.is_wanted = False
        self.end("unwanted", 0.0, self.order["grace"])

    def pass_on(self) -> None:
        """Give SIGINT to the command."""
        if self.tree.main is not None and self.tree.code is None:
            send(self.tree.main.pid, signal.SIGINT)

    def end(self, why: str, after: float, grace: float) -> None:
        at = time.monotonic() + after
        if self.limit is None or at < self.limit[0]:
            self.limit = (at, why, grace)
        if self.kill_at is not None:
            self.kill_at = min(self.kill_at, at + grace)

    def begin_end(self, why: str | None, grace: float) -> None:
        self.why = why
        if grace > 0 and self.is_detached and self.tree.main is not None:
            send(self.tree.main.pid, signal.SIGTERM)
            send(self.tree.main.pid, signal.SIGCONT)
        elif grace > 0:
            self.tree.ask_to_end()
        self.kill_at = time.monotonic() + grace

    def step(self) -> float | None:
        """Do due work; returns the seconds until the next work is due, or None."""
        had_ended = self.tree.code is not None
        self.tree.reap()
        if self.tree.is_gone:
            return None
        now = time.monotonic()
        if self.kill_at is None and self.tree.code is not None:
            self.begin_end(None, self.order["leftover_grace"])
        elif self.kill_at is None and self.limit is not None and self.limit[0] <= now:
            self.begin_end(*self.limit[1:])
        elif self.kill_at is not None and self.tree.code is not None and not had_ended:
            self.kill_at = min(self.kill_at, now + LEFTOVERS)
        if self.kill_at is None:
            return None if self.limit is None else max(0.0, self.limit[0] - now)
        left = self.kill_at - time.monotonic()
        if left > 0:
            return left if IS_LINUX else min(left, LONGEST)  # no signal comes where the orphans are not ours
        for stuck in self.tree.kill():
            self.report(stuck=stuck)
        return None

    def supervise(self, control: Control) -> None:
        try:
            self.tree.start(self.order)
        except OSError as error:
            self.tree.is_gone = True
            self.report(failed=f"{error.filename or self.order['argv'][0]}: {error.strerror or error}")
        except ValueError as error:  # the character NUL ends a word or a variable for the kernel
            self.tree.is_gone = True
            self.report(failed=f"{str(self.order['argv'][0])[:60]!r} cannot be started with these words: {error}")
        mute()
        is_reported = self.tree.is_gone
        if self.is_detached and self.tree.main is not None:
            self.report(started=self.tree.main.pid)
        while self.is_wanted or not self.tree.is_gone:
            for limit in control.limits():
                self.end(limit["end"], limit["after"], limit["grace"])
            wait = None if self.tree.is_gone else self.step()
            if self.tree.is_gone and not is_reported:
                is_reported = True
                left_behind = len(self.tree.killed) if self.why is None else 0
                self.report(exit=self.tree.code, why=self.why, left_behind=left_behind)
                continue
            ready, _, _ = select.select([self.wake, self.guard, *control.handles()], [], [], wait)
            if self.wake in ready:
                os.read(self.wake, 4096)
            if self.guard in ready:  # killed: nothing may be left, and there is nothing to report
                list(self.tree.kill())
                os._exit(1)
            if 0 in ready and not control.read():
                if self.is_detached:
                    self.is_wanted = False  # nobody waits; the command runs on
                else:
                    self.give_up()


class Control:
    """What the caller writes, line by line."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.rest = b""
        self.is_open = True

    def handles(self) -> list[int]:
        return [0] if self.is_open else []

    def read(self) -> bool:
        """False at the end."""
        part = os.read(0, 1 << 16)
        self.is_open = bool(part)
        *lines, self.rest = (self.rest + part).split(b"\n")
        self.lines += [json.loads(line) for line in lines]
        return self.is_open

    def order(self) -> dict[str, Any] | None:
        """Waits for the order; None where there will be none. Limits may come before it."""
        while self.read():
            for line in self.lines:
                if "argv" in line:
                    self.lines.remove(line)
                    return line
        return None

    def limits(self) -> list[dict[str, Any]]:
        lines, self.lines = self.lines, []
        return lines


def mute() -> None:
    """Only the command's copies of its pipes stay open: their end is the end of its output."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def watch(child: int) -> int:
    """Wait for the supervisor proper; where it was killed, kill the tree, which is this process's now."""
    signal.set_wakeup_fd(-1)

    def pass_on(number: int, _: object) -> None:
        send(child, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    while True:
        pid, how = os.waitpid(-1, 0)
        if pid == child:
            break
    if how != 0:
        list(Tree().kill())
    return how


def main(status: int) -> None:
    os.set_inheritable(status, False)
    if LIBC is not None:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Handlers, not SIG_IGN, which the command would inherit. Ctrl-C and a closed terminal are the caller's to handle.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    control = Control()
    order = control.order()
    if order is None:
        return
    guard, alive = os.pipe()
    child = os.fork()
    if child:
        os.close(0)
        os.close(guard)
        if isinstance(order["stdin"], int):
            os.close(order["stdin"])
        mute()
        os._exit(1 if watch(child) else 0)  # nothing is to be cleaned up, which takes longer than all the rest
    os.close(alive)
    if order.get("is_detached"):
        os.setsid()  # a kill of the group must leave one of the two, which then kills the tree
    if LIBC is not None:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # a fork does not inherit it
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    supervisor = SupervisorProcess(status, wake, guard, order)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.give_up())
    if supervisor.is_detached:
        signal.signal(signal.SIGINT, lambda *_: supervisor.pass_on())
    supervisor.supervise(control)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
