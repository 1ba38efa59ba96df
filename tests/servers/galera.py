"""Three MariaDB servers on this machine that are one Galera cluster."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.servers import processes
from tests.servers.mariadb import MariadbServer, program

NODES = 3
_POSITION = re.compile(r"WSREP: Recovered position:?\s*(\S+:-?\d+)")


class Node(MariadbServer):
    """It joins the cluster of its peers; the first begins it."""

    def __init__(self) -> None:
        super().__init__(Path("/tmp"))
        self.group, self.transfer = processes.free_port(), processes.free_port()

    def follow(self, peers: list[Node]) -> None:
        names = ",".join(f"127.0.0.1:{peer.group}" for peer in peers)
        provider = f"gmcast.listen_addr=tcp://127.0.0.1:{self.group};ist.recv_addr=127.0.0.1:{self.transfer}"
        self.settings |= {
            "wsrep-on": "ON", "wsrep-provider": "/usr/lib/galera/libgalera_smm.so", "binlog-format": "ROW",
            "innodb-autoinc-lock-mode": "2", "wsrep-cluster-address": f"gcomm://{names}",
            "wsrep-node-address": f"127.0.0.1:{self.group}", "wsrep-provider-options": provider,
            "wsrep-sst-method": "rsync", "wsrep-sst-receive-address": f"127.0.0.1:{processes.free_port()}",
        }  # fmt: skip

    def join(self) -> None:
        """For the first time, with nothing: another node sends it everything."""
        processes.found_or_installed("rsync")
        processes.give(self.folder, self.user)
        self.data.mkdir()
        processes.give(self.data, self.user)
        super().run()

    def is_joined(self) -> bool:
        return self.ask("SHOW STATUS LIKE 'wsrep_local_state_comment'")[0][1] == "Synced"

    def run(self) -> None:
        """As Debian's service does: the position that the killed server had is found first."""
        if "wsrep-on" in self.settings and "wsrep-new-cluster" not in self.settings:
            self.settings["wsrep-start-position"] = self._position()
        super().run()

    def _position(self) -> str:
        options = [f"--{name}={value}" for name, value in self.settings.items() if name != "wsrep-start-position"]
        command = [program(), "--no-defaults", *options, f"--datadir={self.data}", f"--socket={self.socket}",
                   "--wsrep-recover"]  # fmt: skip
        done = subprocess.run([str(part) for part in command], user=self.user, cwd="/", check=True, capture_output=True)
        return str(_POSITION.findall(done.stderr.decode(errors="replace"))[-1])


class Galera(processes.StoreHost):
    """`kill` kills the node that all use, which is the first or the second in turn: the others go on without it."""

    goes_on = True

    def __init__(self) -> None:
        self._used = 0
        self.nodes = [Node() for _ in range(NODES)]
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        self.root = f"mariadb://root@{hosts}/"

    def place(self, name: str) -> str:
        return f"{self.root}{name}"

    def start(self) -> None:
        first, *others = self.nodes
        for node in self.nodes:
            node.follow(self.nodes)
        first.settings["wsrep-new-cluster"] = "ON"
        first.start()
        del first.settings["wsrep-new-cluster"]
        for node in others:
            node.user = first.user
            node.join()
        self.wait_for_all()

    def kill(self) -> None:
        self.nodes[self._used].kill()

    def run(self) -> None:
        """The node that was killed comes back; everybody has gone over to the other one."""
        self.nodes[self._used].run()
        self.wait_for_all()
        self._used = 1 - self._used

    def wait_for_all(self) -> None:
        for node in self.nodes:
            assert node.process is not None
            processes.wait_until(node.is_joined, node.process, node.log, patience=120)

    def stop(self) -> None:
        for node in reversed(self.nodes):
            node.stop()
        for node in self.nodes:
            shutil.rmtree(node.folder, ignore_errors=True)
