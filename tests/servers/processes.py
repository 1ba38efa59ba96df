"""Finds, installs and starts the programs of servers, and stops them when this process ends."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

PATIENCE = 30.0
_PR_SET_PDEATHSIG = 1
# Every program that tests start and that a bare Debian lacks, with its package. `tests/test_programs.py` checks that
# tests start no other program.
PACKAGES = {
    "bash": "bash",
    "bwrap": "bubblewrap",
    "chromium": "chromium",  # where there is no shell of it
    "chromium-headless-shell": "chromium-headless-shell",
    "curl": "curl",
    "debootstrap": "debootstrap",
    "epmd": "erlang-base",
    "faketime": "faketime",
    "fish": "fish",
    "gcc": "gcc",
    "git": "git",
    "ip": "iproute2",
    "mariadbd": "mariadb-server",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
    "postgres": "postgresql",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "ps": "procps",
    "rabbitmq-server": "rabbitmq-server",
    "redis-server": "redis-server",
    "rsync": "rsync",
    "ssh-keygen": "openssh-client",
    "strace": "strace",
    "systemd-analyze": "systemd",
    "xxd": "xxd",
    "zsh": "zsh",
}
_FOLDERS = ("/usr/sbin", "/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin")  # beside those of the PATH
_INSTALLING = Path(tempfile.gettempdir()) / "tenure-tests-install.lock"


class Unavailable(Exception):
    """A server cannot be started here. The text names it and says how to install it."""


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    pid: int
    args: Any

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


class Server:
    """Runs from `start` to `stop`, or inside a `with` statement. Its files are removed at the end."""

    folder: Path
    process: Process | None = None

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def freeze(self) -> None:
        """Stop it from running; connections stay open. Returns when it has stopped."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class StoreHost(Server):
    """A server with stores on it. `root` is its URL."""

    root: str
    goes_on = False  # when it is killed: others go on in its place

    def place(self, name: str) -> str:
        """The URL of the store of that name."""
        raise NotImplementedError

    def run(self) -> None:
        """Start on the data that is there."""
        raise NotImplementedError

    def kill(self) -> None:
        assert self.process is not None
        end(self.process, signal.SIGKILL)


def is_root() -> bool:
    return os.geteuid() == 0


def found(program: str) -> Path | None:
    """The program on the PATH, or the newest one in the folders of servers."""
    on_path = shutil.which(program)
    if on_path:
        real = Path(on_path).resolve()  # related programs are in the folder of the real file
        named = real.with_name(program)  # one file may be several programs, by the name that it is called by
        return named if named.exists() else real
    candidates = [path for folder in _FOLDERS for path in Path("/").glob(f"{folder.lstrip('/')}/{program}")]
    return max(candidates, key=lambda path: [int(n) if n.isdigit() else 0 for n in path.parts], default=None)


def install(*packages: str) -> str:
    """An error message, empty on success. RUNLEVEL=1 keeps Debian from starting the services it installs."""
    names = " ".join(packages)
    if not is_root():
        return f"{names} is not installed, and only root can install it (apt-get install {names})"
    if not shutil.which("apt-get"):
        return f"{names} is not installed, and there is no apt-get to install it with"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    # Another program may be installing something: its turn is waited for.
    asked = ["apt-get", "-o", "DPkg::Lock::Timeout=600", "install", "-y", "--no-install-recommends", *packages]
    done = subprocess.run(asked, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        subprocess.run(["apt-get", "update"], env=env, capture_output=True, check=False)
        done = subprocess.run(asked, env=env, capture_output=True, text=True, check=False)
    return f"apt-get install {names}: {done.stderr.strip()[-300:]}" if done.returncode else ""


def found_or_installed(program: str) -> Path:
    """The path of the program, installed if it was missing. Raises Unavailable."""
    package = PACKAGES[program]
    here = found(program)
    if here is not None:
        return here
    with installing():
        trouble = "" if found(program) else install(package)
    here = found(program)
    if here is None:
        raise Unavailable(trouble or f"apt-get installed {package}, but there is no program `{program}`")
    return here


@contextmanager
def installing() -> Iterator[None]:
    """apt runs once at a time; tests run in several processes."""
    with _INSTALLING.open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def fast_folder(room: int) -> Path:
    """A folder in memory if it has that many bytes free, so that tests do not depend on the speed of a disk."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > room else Path("/tmp")


def servant() -> str | None:
    """The user for a server that refuses to run as root; None if we are not root."""
    if not is_root():
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def give(path: Path, user: str | None) -> None:
    if user is not None:
        shutil.chown(path, user)


def end_with_us(how: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """For `preexec_fn`: the kernel ends the process when this one ends, also by SIGKILL. Linux only."""
    libc = ctypes.CDLL(None)

    def with_us() -> None:
        if hasattr(libc, "prctl"):
            libc.prctl(_PR_SET_PDEATHSIG, how)

    return with_us


def start(command: Sequence[str | Path], user: str | None, log: Path) -> subprocess.Popen[bytes]:
    """Run in the background. The kernel ends it when this process ends, also by SIGKILL."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [str(part) for part in command], user=user, group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else [], stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/",
            preexec_fn=end_with_us(signal.SIGQUIT),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
        )  # fmt: skip


def wait_until(ready: Callable[[], bool], process: Process, log: Path, patience: float = PATIENCE) -> None:
    until = time.monotonic() + patience
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            raise Unavailable(f"{process.args!r} did not come up:\n{log.read_text(errors='replace')[-2000:]}")
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


def end(process: Process, how: signal.Signals = signal.SIGQUIT) -> None:
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
