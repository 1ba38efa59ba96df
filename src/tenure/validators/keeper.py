"""Keeps one command: starts it in a session of its own, ends it in time, and leaves nothing of it behind.

Started as a script, with the standard library alone. Stdin brings one line of JSON that says what to start; its end
means that whoever started us is gone or wants no more. Stdout and stderr are the command's. The descriptor named by the
first argument gets one line of JSON when all is over.

As a subreaper it becomes the parent of whatever the command leaves behind, so that a daemon, a double fork or a session
of its own hides nothing: no child left means that no descendant is. Elsewhere than on Linux only the group is ended.
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
GRACE = 2.0  # seconds from asking to end to killing
STUCK = 10.0  # seconds of killing after which something is left that cannot be killed
AGAIN = 0.01  # seconds between two looks at what does not want to die
LIBC = ctypes.CDLL(None) if IS_LINUX else None


def start(order: dict[str, Any]) -> subprocess.Popen[bytes]:
    keeper = os.getpid()

    def die_with_keeper() -> None:
        if LIBC is not None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != keeper:
                os._exit(1)

    return subprocess.Popen(
        order["argv"],
        cwd=order["cwd"],
        env=order["env"],
        stdin=order["stdin"],
        start_new_session=True,
        preexec_fn=die_with_keeper,  # noqa: PLW1509 this process has one thread
    )


def descendants(root: int) -> list[tuple[int, str, int]]:
    """Pid, name and process group of everything below `root` that lives, from the process table."""
    children: dict[int, list[tuple[int, str, int, bool]]] = {}
    for entry in os.listdir("/proc") if IS_LINUX else ():  # noqa: PTH208 pathlib would be most of the start
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                stat = file.read()
                name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
                state, parent, group = stat[stat.rindex(b")") + 2 :].split()[:3]
                children.setdefault(int(parent), []).append((int(entry), name, int(group), state not in (b"Z", b"X")))
    found: list[tuple[int, str, int]] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += [(pid, name, group) for pid, name, group, lives in below if lives]
        todo += [pid for pid, _, _, _ in below]
    return found


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class Keeper:
    def __init__(self) -> None:
        self.main: subprocess.Popen[bytes] | None = None
        self.exit: int | None = None
        self.is_gone = False
        self.killed: set[int] = set()

    def reap(self) -> None:
        """Collect what has ended."""
        while not self.is_gone:
            try:
                pid, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_gone = IS_LINUX or not self._is_group()
                return
            if pid == 0:
                return
            if self.main is not None and pid == self.main.pid:
                self.exit = self.main.returncode = os.waitstatus_to_exitcode(how)

    def ask_to_end(self) -> None:
        for pid, name, _ in self._all():
            if name != "bwrap":  # it would take its whole namespace with it at once, without a grace
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)  # a stopped one would not hear of it

    def kill(self) -> int:
        """End everything; how many could not be ended."""
        until = time.monotonic() + STUCK
        while not self.is_gone and time.monotonic() < until:
            self._kill_groups()
            # Stopped first, until no new one is found: what forks faster than it is killed would never end.
            stopped: set[int] = set()
            while new := {pid for pid, _, _ in self._all()} - stopped:
                for pid in new:
                    send(pid, signal.SIGSTOP)
                stopped |= new
            for pid in stopped:
                send(pid, signal.SIGKILL)
            self.killed |= stopped
            self.reap()
            if not self.is_gone:
                time.sleep(AGAIN)
                self.reap()
        return 0 if self.is_gone else max(1, len(self._all()))

    def _kill_groups(self) -> None:
        """End whole process groups at once: however fast they fork, nothing escapes it, as it may escape a scan."""
        found = self._all()
        self.killed |= {pid for pid, _, _ in found}
        for group in {group for _, _, group in found} - {os.getpgid(0)}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)

    def _all(self) -> list[tuple[int, str, int]]:
        if IS_LINUX:
            return descendants(os.getpid())
        return [(-self.main.pid, "", self.main.pid)] if self.main is not None and self._is_group() else []

    def _is_group(self) -> bool:
        try:
            os.killpg(self.main.pid if self.main else 0, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def keep(order: dict[str, Any], wake: int) -> dict[str, Any]:
    """Run it; what to tell."""
    keeper = Keeper()
    try:
        keeper.main = start(order)
    except OSError as error:
        return {"failed": f"{error.filename or order['argv'][0]}: {error.strerror or error}"}
    until = time.monotonic() + order["seconds"]
    why = None
    while keeper.exit is None and (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([wake, 0], [], [], left)
        if wake in ready:
            os.read(wake, 4096)
        keeper.reap()
        if 0 in ready and not os.read(0, 4096):
            why = "unwanted"
            break
    else:
        why = "time" if keeper.exit is None else None
    if why == "time":
        keeper.ask_to_end()
        grace = time.monotonic() + GRACE
        while not keeper.is_gone and (left := grace - time.monotonic()) > 0:
            if select.select([wake], [], [], left)[0]:
                os.read(wake, 4096)
            keeper.reap()
    stuck = keeper.kill()
    left_behind = len(keeper.killed) if keeper.exit is not None and why is None else 0
    return {"exit": keeper.exit, "limit": why, "left_behind": left_behind, "stuck": stuck}


def main(status: int) -> None:
    os.set_inheritable(status, False)
    if LIBC is not None:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    # Handlers, not SIG_IGN, which the command would inherit. Who wants us to end closes stdin.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1 << 16)
        if not part:
            return
        line += part
    said = keep(json.loads(line), wake)
    with contextlib.suppress(BrokenPipeError):
        os.write(status, json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
