"""Keeps one agent: starts it in a process group of its own, and sees to it that nothing of it is left.

The runner starts this file as a script, with the standard library alone. Stdin is the runner's: one line of JSON says
what to start, the line `end SECONDS` asks to end it, and the end of the file means that the runner is done or dead.
Stdout and stderr are the agent's; the descriptor named by the first argument tells the runner what happened.

A claim names the keeper as its holder's process. So it stays until its stdin ends, and goes only when everything that
the agent has started is gone: whoever finds the keeper gone knows that nobody works on the task any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

IS_LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LEFTOVERS = 2.0  # seconds that processes have which the agent left behind
AGAIN = 0.02  # seconds between looks at what does not want to die
LIBC = ctypes.CDLL(None) if IS_LINUX else None


class Keeper:
    def __init__(self, status: int) -> None:
        self.status = status
        self.agent: subprocess.Popen[bytes] | None = None
        self.is_reaped = False
        self.is_gone = True  # nothing is there yet
        self.is_wanted = True  # the runner is there
        self.input = b""
        self.grace = LEFTOVERS  # seconds from asking the agent to end to killing it, where nobody says how many
        self.grace_ends: float | None = None  # set once the agent is being ended

    # --- what the runner says ---

    def read(self) -> None:
        part = os.read(0, 1 << 16)
        if not part:
            self.is_wanted = False
            self.end(self.grace)
            return
        self.input += part
        *lines, self.input = self.input.split(b"\n")
        for line in lines:
            if line.startswith(b"end "):
                self.end(float(line[4:]))
            elif self.agent is None:
                self.start(json.loads(line))

    def start(self, order: dict[str, Any]) -> None:
        parent = os.getpid()
        self.grace = order["grace"]
        try:
            with open(order["stdin"], "rb") as stdin:
                self.agent = subprocess.Popen(
                    order["argv"],
                    cwd=order["cwd"],
                    env=order["env"],
                    stdin=stdin,
                    process_group=0,
                    preexec_fn=lambda: die_with(parent),  # noqa: PLW1509 this process has one thread
                )
            self.is_gone = False
            self.say(started=self.agent.pid)
        except OSError as error:
            self.say(failed=f"{error.strerror or error}", path=str(error.filename or ""))
        # Only the agent's copies count: the runner reads to the end of the file.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)

    def say(self, **what: object) -> None:
        try:
            os.write(self.status, json.dumps(what).encode() + b"\n")
        except BrokenPipeError:
            self.is_wanted = False

    # --- ending ---

    def end(self, grace: float) -> None:
        """Ask everything to end; what is still there after `grace` seconds is killed."""
        until = time.monotonic() + grace
        if self.grace_ends is None and not self.is_gone:
            self.signal_all(signal.SIGTERM)
        self.grace_ends = until if self.grace_ends is None else min(self.grace_ends, until)

    def signal_all(self, number: int) -> None:
        """Signal everything that descends from the agent."""
        if self.agent is not None and not IS_LINUX:
            kill_group(self.agent.pid, number)
        for pid, name in descendants(os.getpid()):
            # bwrap takes its whole namespace with it at once: its turn is when the grace is over.
            if name == "bwrap" and number == signal.SIGTERM:
                continue
            kill(pid, number)
            if number == signal.SIGTERM:
                kill(pid, signal.SIGCONT)  # a stopped one would not hear of it

    def reap(self) -> None:
        """Collect what has ended. No child left means, for a subreaper, that no descendant is."""
        while not self.is_gone:
            try:
                pid, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_gone = IS_LINUX or not is_group(self.agent.pid if self.agent else 0)
                if self.is_gone:
                    self.say(gone=True)
                return
            if pid == 0:
                return
            if self.agent is not None and pid == self.agent.pid and not self.is_reaped:
                self.is_reaped = True
                self.agent.returncode = os.waitstatus_to_exitcode(how)
                self.say(exit=self.agent.returncode)
                self.end(LEFTOVERS)

    def step(self) -> float | None:
        """Do what is due; seconds until something will be."""
        self.reap()
        if self.is_gone or self.grace_ends is None:
            return None
        left = self.grace_ends - time.monotonic()
        if left > 0:
            return left if IS_LINUX else min(left, AGAIN)
        self.signal_all(signal.SIGKILL)
        return AGAIN


def die_with(parent: int) -> None:
    """In the agent before it begins: where the keeper is killed, the kernel kills the agent."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def descendants(root: int) -> list[tuple[int, str]]:
    """Pids and names of everything below `root`, from the process table."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in os.listdir("/proc") if IS_LINUX else ():
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    stat = file.read()
            except OSError:
                continue
            name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
            state, parent = stat[stat.rindex(b")") + 2 :].split()[:2]
            if state != b"Z":
                children.setdefault(int(parent), []).append((int(entry), name))
    found: list[tuple[int, str]] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += [pid for pid, _ in below]
    return found


def kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def is_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def main(status: int) -> None:
    if LIBC is not None:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # Handlers, not SIG_IGN, which the agent would inherit. Ctrl-C and a closed terminal are the runner's to judge.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    keeper = Keeper(status)

    def stop(*_: object) -> None:
        keeper.is_wanted = False
        keeper.end(keeper.grace)

    signal.signal(signal.SIGTERM, stop)
    while keeper.is_wanted or not keeper.is_gone:
        wait = keeper.step()
        if keeper.is_gone and not keeper.is_wanted:
            break
        ready, _, _ = select.select([reader, 0] if keeper.is_wanted else [reader], [], [], wait)
        if reader in ready:
            os.read(reader, 4096)
        if 0 in ready:
            keeper.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
