"""A pooler in transaction mode before the PostgreSQL server: each transaction may get another session."""

from __future__ import annotations

import tempfile
from pathlib import Path

import psycopg

from tests.servers import processes
from tests.servers.postgres import PostgresServer

BEHIND = "TENURE_TEST_PGBOUNCER"  # its URL, for processes that a test starts
SESSIONS = 5  # fewer than the suites have transactions at once, so that they are passed around

_SETTINGS = """
[databases]
postgres = host=127.0.0.1 port={server} user=tenure
restricted = host=127.0.0.1 port={server} dbname=postgres user=tenure_app

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
"""


class PgbouncerServer(processes.Server):
    def __init__(self, server: PostgresServer) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-pgb-", dir="/tmp"))
        self.log = self.folder / "log"
        self.port = processes.free_port()
        self.url = f"postgresql://tenure@127.0.0.1:{self.port}/postgres"
        self.direct = f"127.0.0.1:{server.port}"
        self._server = server.port

    def start(self) -> None:
        pgbouncer = processes.found_or_installed("pgbouncer")
        settings = self.folder / "pgbouncer.ini"
        settings.write_text(
            _SETTINGS.format(server=self._server, port=self.port, folder=self.folder, sessions=SESSIONS)
        )
        (self.folder / "users").write_text('"tenure" ""\n')
        self.log.touch()
        user = processes.servant()
        for path in (self.folder, settings, self.folder / "users"):
            processes.give(path, user)
        self.process = processes.start([pgbouncer, settings], user, self.log)
        processes.wait_until(self._answers, self.process, self.log)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True
