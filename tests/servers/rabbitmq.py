"""RabbitMQ servers of our own: Debian's program as plain processes in a folder; one node, or a cluster of three.

Every instance has its own cookie, node names and epmd (the name server of Erlang), which ends with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.servers import processes

ROOM = 1 << 30  # bytes
PATIENCE = 120.0  # a node takes five seconds to start on a quiet machine
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one of the PATH changes the user and the folder
_AMQP = b"AMQP\x00\x00\x09\x01"
# One scheduler that does not spin: several nodes share the cores with the tests.
_ERLANG = "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"
_CONFIG = """
listeners.tcp.1 = 127.0.0.1:{port}
loopback_users = none
vm_memory_high_watermark.absolute = 256MB
disk_free_limit.absolute = 50MB
log.file.level = warning
cluster_formation.peer_discovery_backend = classic_config
"""


class RabbitNode(processes.Server):
    """`kill` and `start` again keep its data."""

    def __init__(self, folder: Path, number: int, size: int, epmd: int) -> None:
        self.folder, self.number = folder / str(number), number
        self.data, self.log = self.folder / "mnesia", self.folder / "log"
        self.port = processes.free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self.folder.mkdir()
        peers = [f"cluster_formation.classic_config.nodes.{n + 1} = t{n}@localhost\n" for n in range(size)]
        (self.folder / "rabbitmq.conf").write_text(_CONFIG.format(port=self.port) + "".join(peers))
        (self.folder / "plugins").write_text("[].")
        self.environment = {
            **os.environ, "HOME": str(folder / "home"), "LANG": "C.UTF-8", "detached": "true",  # it becomes Erlang
            "ERL_EPMD_PORT": str(epmd), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"t{number}@localhost", "RABBITMQ_MNESIA_BASE": str(self.data),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"), "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_DIST_PORT": str(processes.free_port()), "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERLANG,
        }  # fmt: skip

    def start(self) -> None:
        self.launch()
        self.wait()

    def launch(self) -> None:
        processes.found_or_installed("rabbitmq-server")
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [_PROGRAM], env=self.environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/",
                preexec_fn=processes.end_with_us(),  # noqa: PLW1509 - it calls the kernel and nothing of Python's
            )  # fmt: skip

    def wait(self) -> None:
        assert self.process is not None
        processes.wait_until(self._answers, self.process, self.log, PATIENCE)

    def kill(self) -> None:
        if self.process is not None:
            processes.end(self.process, signal.SIGKILL)

    def stop(self) -> None:
        self.kill()
        super().stop()

    def _answers(self) -> bool:
        """Whether it greets: it listens before it can serve, and then closes the connection."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as line:
                line.settimeout(2)
                line.sendall(_AMQP)
                return line.recv(8)[:1] == b"\x01"
        except OSError:
            return False


class RabbitServer(processes.Server):
    """`size` nodes that form one cluster. Killed and started again it has its data, wiped it has none."""

    def __init__(self, size: int = 1, place: Path | None = None) -> None:
        """`place`: where its folder goes; memory, where there is room."""
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-rabbitmq-", dir=place or processes.fast_folder(ROOM)))
        self._epmd_port = processes.free_port()
        self._epmd: subprocess.Popen[bytes] | None = None
        home = self.folder / "home"
        home.mkdir()
        cookie = home / ".erlang.cookie"
        cookie.write_text("tenuretests" * 2)
        cookie.chmod(0o400)
        self.nodes = [RabbitNode(self.folder, number, size, self._epmd_port) for number in range(size)]
        self.url = self.nodes[0].url

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    def start(self) -> None:
        processes.found_or_installed("rabbitmq-server")
        if self._epmd is None:
            self._epmd = subprocess.Popen(
                ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=processes.end_with_us(),  # noqa: PLW1509 - as above
            )  # fmt: skip
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def wipe(self) -> None:
        self.kill()
        for node in self.nodes:
            shutil.rmtree(node.data, ignore_errors=True)
        self.start()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
        if self._epmd is not None:
            processes.end(self._epmd, signal.SIGKILL)
        super().stop()
