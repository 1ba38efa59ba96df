"""A MariaDB server of our own, durable as shipped: databases in it for tests and measurements."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

import pymysql
from pymysql.constants import CLIENT

from tenure.stores.mariadb import Mariadb
from tenure.stores.port import Clock
from tests.servers import processes

WHERE = "TENURE_TEST_MARIADB"  # the server's URL without a database, for processes that a test starts
ROOM = 1 << 30  # bytes
DATABASES = 3  # used in turn: a test may open a second folder while the first is in use
# Durable as shipped; small, since tests have little data.
_SETTINGS = {
    "bind-address": "127.0.0.1", "max-connections": "300", "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "32M", "skip-name-resolve": "ON", "performance-schema": "OFF",
}  # fmt: skip
_MEASURED = {"innodb-buffer-pool-size": "256M", "innodb-log-file-size": "1G"}


class MariadbServer(processes.StoreHost):
    """`url` leads to it through TCP; a database's name goes behind it."""

    def __init__(self, place: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        """`place`: where its folder goes. `settings`: of the server, beyond those that tests want."""
        self.settings = {**_SETTINGS, **(settings or {})}
        self.user: str | None = None
        # In memory commits sync as shipped, and cost nothing.
        place = place or processes.fast_folder(ROOM)
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-my-", dir=place))  # a socket's path must be short
        self.data, self.log, self.socket = self.folder / "data", self.folder / "log", self.folder / "socket"
        self.port = processes.free_port()
        self.root = self.url = f"mariadb://root@127.0.0.1:{self.port}/"

    def start(self) -> None:
        server = program()
        if processes.is_root():
            names = {user.pw_name for user in pwd.getpwall()}
            self.user = "mysql" if "mysql" in names else "nobody"
        processes.give(self.folder, self.user)
        subprocess.run(
            [processes.found("mariadb-install-db") or "mariadb-install-db", "--no-defaults", f"--datadir={self.data}",
             "--auth-root-authentication-method=normal", "--skip-test-db", f"--basedir={server.parent.parent}"],
            user=self.user, cwd="/", check=True, capture_output=True,
        )  # fmt: skip
        self.run()

    def run(self) -> None:
        """Start on the data that is there."""
        self.log.touch()
        settings = {
            **self.settings, "datadir": self.data, "port": self.port, "socket": self.socket,
            "pid-file": self.folder / "pid",
        }  # fmt: skip
        options = [f"--{name}={value}" for name, value in settings.items()]
        self.process = processes.start([program(), "--no-defaults", *options], self.user, self.log)
        processes.wait_until(self._answers, self.process, self.log)

    @classmethod
    def measured(cls, place: Path | None = None, settings: Mapping[str, str] | None = None) -> Self:
        """For measurements: on a real disk, every commit synced."""
        return cls(place or Path("/tmp"), {**_MEASURED, **(settings or {})})

    def place(self, name: str) -> str:
        return f"{self.url}{name}"

    def drop(self, name: str) -> None:
        self.ask(f"DROP DATABASE IF EXISTS `{name}`")

    def ask(self, *statements: str, database: str | None = None) -> tuple[tuple[Any, ...], ...]:
        """The rows that the last statement answers."""
        with _connected(self.url, database) as link, link.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())

    def _answers(self) -> bool:
        try:
            self.ask("SELECT 1")
        except pymysql.err.OperationalError:
            return False
        return True


def program() -> Path:
    """The server's binary, installed where it can be. Raises processes.Unavailable."""
    return processes.found_or_installed("mariadbd")


def url_of(folder: Path) -> str:
    """The URL of the folder's own database: clean when it is first asked for, later the same again."""
    note = folder / "mariadb-database"
    if not note.exists():
        note.write_text(_clean_database())
    return f"{os.environ[WHERE]}{note.read_text()}?pool=40"


def open_store(folder: Path, clock: Clock | None) -> Mariadb:
    return Mariadb(url_of(folder), clock=clock)


_given = 0


def _clean_database() -> str:
    """Emptied, not made: forty tables would cost each test a quarter of a second."""
    global _given  # noqa: PLW0603 - one count for the session
    _given += 1
    name = f"test_{os.getpid()}_{_given % DATABASES}"
    link = _idle(os.environ[WHERE])
    with link.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
            " AND table_name NOT IN ('meta', 'migration', 'log_end')",
            (name,),
        )
        tables = [table for (table,) in cursor.fetchall()]
        if tables:
            texts = [f"DELETE FROM `{name}`.`{table}`" for table in tables]
            cursor.execute(";".join([*texts, f"UPDATE `{name}`.log_end SET last = 0"]))
            while cursor.nextset():
                pass
    return name


@contextmanager
def placed(name: str) -> Iterator[str]:
    """The URL of a database that is dropped at the end."""
    try:
        yield f"{os.environ[WHERE]}{name}"
    finally:
        with _connected(os.environ[WHERE]) as link, link.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{name}`")


@cache
def _idle(url: str) -> Any:
    return _connected(url)


def _connected(url: str, database: str | None = None) -> Any:
    port = int(url.rstrip("/").rpartition(":")[2])
    return pymysql.connect(
        host="127.0.0.1", port=port, user="root", database=database, autocommit=True, charset="utf8mb4",
        client_flag=CLIENT.MULTI_STATEMENTS, connect_timeout=5,
    )  # fmt: skip
