"""Another machine, as far as one kernel can be two: its own network, processes, mounts, user and home.

The two reach each other by the ends of a cable, at addresses that nobody else has. When the power of the other one is
cut, the kernel ends all its processes at once. Needs root, and a kernel that lets it make namespaces.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tenure.testing.suites.spawner import until
from tests.servers import boot, processes
from tests.servers.gateway import GatewayServer
from tests.sinks.receivers import authority

USER = 65534  # nobody
NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


class Machine:
    """From `with` on. Raises Unavailable where there can be none."""

    def __init__(self) -> None:
        self.name = f"tenure{os.getpid()}{random.randrange(1000)}"
        net = f"10.{random.randrange(192, 255)}.{random.randrange(256)}"
        block = 4 * random.randrange(64)
        self.here, self.there = f"{net}.{block + 1}", f"{net}.{block + 2}"

    def __enter__(self) -> Machine:
        if not processes.is_root():
            raise processes.Unavailable("only root can make the namespaces of another machine")
        self._ip = str(processes.found_or_installed("ip"))
        try:
            self._lay_cable()
            self._run([*self.within, sys.executable, "-c", ""])
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            said = getattr(error, "stderr", None) or str(error)
            raise processes.Unavailable(f"this kernel makes no other machine: {said}") from None
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([self._ip, "netns", "delete", self.name], capture_output=True, check=False)  # the cable too

    def _lay_cable(self) -> None:
        name = self.name[-14:]
        self._run([self._ip, "netns", "add", self.name])
        ends = [self._ip, "link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", self.name]
        self._run(ends)
        self._run([self._ip, "address", "add", f"{self.here}/30", "dev", f"{name}a"])
        self._run([self._ip, "link", "set", f"{name}a", "up"])
        there = [self._ip, "-n", self.name]
        self._run([*there, "address", "add", f"{self.there}/30", "dev", f"{name}b"])
        self._run([*there, "link", "set", f"{name}b", "up"])
        self._run([*there, "link", "set", "lo", "up"])

    def vanish(self) -> None:
        """Packets to it go nowhere, and nothing says so, as after a power cut."""
        device = f"{self.name[-14:]}a"
        nobody = ["lladdr", "02:00:00:00:00:99", "nud", "permanent"]
        self._run([self._ip, "neighbour", "replace", self.there, "dev", device, *nobody])

    def _run(self, words: Sequence[str]) -> None:
        subprocess.run(list(words), capture_output=True, text=True, check=True)

    @property
    def within(self) -> list[str]:
        """Words before a command that runs there, as root."""
        return ["nsenter", f"--net=/run/netns/{self.name}", "unshare", *NAMESPACES]

    def starts(self, *words: str) -> list[str]:
        """A command that turns the machine on and runs these words there, as its user. The machine ends with it."""
        shown = [sys.prefix, sys.base_prefix, *(path for path in sys.path if Path(path).is_dir())]
        paths = os.pathsep.join(str(Path(path).resolve()) for path in shown)
        return [*self.within, sys.executable, "-I", str(boot.__file__), str(USER), paths, *words]


class MachineGateway(GatewayServer):
    """`tenure gateway` on another machine, over TLS: `kill_with_children` cuts its power."""

    is_forked = False

    def __init__(self, machine: Machine) -> None:
        self.machine, self.host = machine, machine.there
        super().__init__({})
        self.authorities, _ = authority(self.folder, machine.here, machine.there)
        self.certificate = self.folder / "server.pem"
        with self.config.open("a") as file:
            file.write(f'tls_cert = "{self.certificate}"\ntls_key = "{self.certificate}"\n')
        self.more["SSL_CERT_FILE"] = self.authorities

    def start(self) -> None:
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, USER, USER)
        super().start()

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    def words(self, *words: str) -> list[str]:
        return self.machine.starts(*super().words(*words))

    def kill_with_children(self) -> int:
        running = self.running()
        self.kill()  # what the machine lives by
        until(lambda: not self.running(), "the machine to be off")
        return len(running)

    def stop(self) -> None:
        if self.process is not None:
            self.kill()
        super().stop()
