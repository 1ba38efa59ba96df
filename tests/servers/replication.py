"""Two PostgreSQL servers, one a streaming replica of the other, and what happens to such pairs.

Each has its own port for good; which of them is the primary changes with every failover. What was the primary comes
back as a fresh replica of what was promoted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg

from tests.servers import processes
from tests.servers.postgres import PostgresServer, program

# What a replica has not got yet is kept for it. One whose primary is gone would now and then sleep for five seconds
# before it notices that it was promoted.
_SETTINGS = {"wal_keep_size": "512MB", "wal_receiver_status_interval": "1s", "wal_retrieve_retry_interval": "100ms"}
# And not the backup that it was made from, which is listed a moment longer.
_FOLLOWER = "FROM pg_stat_replication WHERE application_name = 'walreceiver' AND state = 'streaming'"


class Pair(processes.Server):
    """`primary` answers writes, `standby` follows it. Synchronous only after `be_synchronous`."""

    notices_promotion = False  # a new epoch must be begun by hand

    def __init__(self) -> None:
        self.primary, self.standby = PostgresServer(settings=_SETTINGS), PostgresServer(settings=_SETTINGS)
        ports = ",".join(f"127.0.0.1:{server.port}" for server in (self.primary, self.standby))
        self.url = f"postgresql://tenure@{ports}/postgres"  # finds whichever of the two takes writes

    def place(self, name: str) -> str:
        return f"{self.url}?schema={name}"

    def start(self) -> None:
        self.primary.start()
        self.follow()

    def stop(self) -> None:
        for server in (self.primary, self.standby):
            if server.process is not None:
                _continue_all(server.process.pid)
            server.stop()

    def follow(self) -> None:
        """Make the standby anew from what the primary has."""
        shutil.rmtree(self.standby.data, ignore_errors=True)
        processes.give(self.standby.folder, self.standby.user)
        subprocess.run(
            [
                program().parent / "pg_basebackup", "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "tenure",
                "-D", self.standby.data, "-R", "-X", "stream", "-c", "fast",
            ],
            user=self.standby.user, cwd="/", check=True, capture_output=True,
        )  # fmt: skip
        self.standby.run()
        wait_until(lambda: self.primary.ask(f"SELECT count(*) {_FOLLOWER}") == "1", "no standby came")

    def be_synchronous(self) -> None:
        """From here on a commit is answered once the standby has it on disk too."""
        self.primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.ask("SELECT pg_reload_conf()")
        is_in_step = f"SELECT count(*) {_FOLLOWER} AND sync_state = 'sync'"
        wait_until(lambda: self.primary.ask(is_in_step) == "1", "the standby did not become synchronous")

    def be_in_step(self) -> None:
        """Wait until the standby has all that the primary has by now."""
        here = self.primary.ask("SELECT pg_current_wal_insert_lsn()")
        wait_until(
            lambda: self.primary.ask(f"SELECT count(*) {_FOLLOWER} AND flush_lsn >= '{here}'") == "1",
            "the standby stays behind",
        )

    def hold_back(self) -> None:
        """From here on the standby gets nothing more: whoever sends it the log stands still."""
        sender = int(self.primary.ask(f"SELECT pid {_FOLLOWER}"))
        os.kill(sender, signal.SIGSTOP)
        wait_until(lambda: _state(sender) == "T", "the sender of the log goes on")

    def kill_primary(self) -> None:
        """kill -9 of the server and all its processes, none of which outlives it."""
        server = self.primary.process
        assert server is not None
        os.kill(server.pid, signal.SIGSTOP)  # so that it starts no more of them
        for pid in [*children(server.pid), server.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.wait(processes.PATIENCE)

    def promote(self) -> None:
        """The standby becomes the primary; the other waits to be made anew by `follow`."""
        assert self.standby.ask("SELECT pg_promote(true, 30)") == "True"
        self.primary, self.standby = self.standby, self.primary
        wait_until(lambda: self.primary.ask("SELECT pg_is_in_recovery()") == "False", "it was not promoted")


def wait_until(is_so: Callable[[], bool], or_else: str) -> None:
    until = time.monotonic() + processes.PATIENCE
    while True:
        try:
            if is_so():
                return
        except psycopg.OperationalError:
            pass  # not up yet
        if time.monotonic() > until:
            raise processes.Unavailable(or_else)
        time.sleep(0.02)


def children(parent: int) -> list[int]:
    """The processes that this one has started, and that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after_name[1]) == parent:
            found.append(int(path.parent.name))
    return found


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _continue_all(parent: int) -> None:
    """A process that stands still would not end."""
    for pid in children(parent):
        with suppress(ProcessLookupError):  # it was ending just now
            os.kill(pid, signal.SIGCONT)
