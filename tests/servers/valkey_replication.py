"""Two Valkey servers, one a replica of the other. Replication is asynchronous: what the replica lacks is lost."""

from __future__ import annotations

from typing import Any

import redis

from tests.servers import processes
from tests.servers.replication import wait_until
from tests.servers.valkey import durable


class ValkeyPair(processes.Server):
    """The first of them is the primary until it is killed."""

    notices_promotion = True  # the store begins a new epoch by itself

    def __init__(self) -> None:
        self.primary, self.standby = durable(), durable()
        self.url = f"redis://127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}/0"

    def place(self, name: str) -> str:
        return f"{self.url}?space={name}"

    def start(self) -> None:
        self.primary.start()
        self.standby.settings |= {"replicaof": f"127.0.0.1 {self.primary.port}"}
        self.standby.start()
        wait_until(lambda: self._told(self.standby.port)["master_link_status"] == "up", "no replica came")

    def stop(self) -> None:
        self.primary.stop()
        self.standby.stop()

    def be_in_step(self) -> None:
        """Wait until the replica has all that the primary has by now."""
        here = self._told(self.primary.port)["master_repl_offset"]
        wait_until(lambda: self._told(self.standby.port)["slave_repl_offset"] >= here, "the replica stays behind")

    def hold_back(self) -> None:
        """From here on the replica gets nothing more. Clients find the primary first as long as it answers."""
        self._ask(self.standby.port, "REPLICAOF", "NO", "ONE")

    def kill_primary(self) -> None:
        self.primary.kill()

    def promote(self) -> None:
        """It was promoted when it was held back; from here on clients find it."""
        wait_until(lambda: self._told(self.standby.port)["role"] == "master", "it was not promoted")

    def _ask(self, port: int, *words: str) -> Any:
        with redis.Redis(port=port) as link:
            return link.execute_command(*words)

    def _told(self, port: int) -> Any:
        with redis.Redis(port=port) as link:
            return link.info("replication")
