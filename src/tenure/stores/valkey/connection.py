"""Connections: many commands in one round trip, and a bounded pool of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tenure.core import limits
from tenure.core.errors import StoreUnavailable
from tenure.stores.sql.server_errors import Lost, lost
from tenure.stores.valkey.address import Address
from tenure.stores.valkey.errors import translated

Command = tuple[Any, ...]
CONNECT = 10.0  # seconds
ANSWER = limits.STATEMENT_TIMEOUT


class Connection:
    """One connection, to the first host that is a primary. After Lost it is closed."""

    def __init__(self, where: Address) -> None:
        self._where = where
        self._raw: Any = None
        self.is_open = False
        self.number = 0  # the server's, of this connection

    def open(self) -> None:
        reasons = []
        for host, port in self._where.hosts:
            self._raw = self._made(host, port)
            try:
                self._raw.connect()
                if len(self._where.hosts) == 1 or self._asked("ROLE")[0] == b"master":
                    self.number = int(self._asked("CLIENT", "ID"))
                    self.is_open = True
                    return
                reasons.append(f"{host}:{port} is a replica")
            except (redis.RedisError, OSError) as error:
                reasons.append(str(error))
            self.close()
        raise Lost("; ".join(reasons))

    def _made(self, host: str, port: int) -> Any:
        where = self._where
        options: dict[str, Any] = {}
        if where.is_encrypted:  # said outright: releases differ in what they check by themselves
            options = {"ssl_ca_certs": where.ca, "ssl_cert_reqs": "required", "ssl_check_hostname": True}
        kind = redis.SSLConnection if where.is_encrypted else redis.Connection
        return kind(
            host=host, port=port, db=where.database, username=where.user, password=where.password,
            socket_timeout=ANSWER, socket_connect_timeout=CONNECT, socket_keepalive=True, client_name="tenure",
            retry=Retry(NoBackoff(), 0), protocol=2, **options,
        )  # fmt: skip

    def _asked(self, *command: str) -> Any:
        self._raw.send_command(*command)
        return self._raw.read_response()

    def is_stale(self) -> bool:
        """Whether the server has closed it, or something is left to read."""
        try:
            return bool(self._raw.can_read(0))
        except (redis.RedisError, OSError):
            return True

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """The answers; an error of one command is its answer. Raises Lost."""
        answers: list[Any] = []
        try:
            self._raw.send_packed_command(self._raw.pack_commands(commands), check_health=False)
            for _ in commands:
                try:
                    answers.append(self._raw.read_response())
                except redis.ResponseError as error:
                    answers.append(error)
        except (redis.RedisError, OSError) as error:
            self.close()
            raise Lost(str(error) or type(error).__name__) from error
        except BaseException:  # interrupted between a command and its answer
            self.close()
            raise
        return answers

    def close(self) -> None:
        self.is_open = False
        with suppress(redis.RedisError, OSError):
            self._raw.disconnect()


class ConnectionPool:
    """At most `most` connections at a time; None: as many as are asked for."""

    def __init__(self, where: Address, most: int | None, patience: float) -> None:
        self._where, self._patience, self.most = where, patience, most
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(most) if most else None
        self._closed = False

    def take(self) -> Connection:
        """Raises StoreUnavailable."""
        if self._places is not None and not self._places.acquire(timeout=self._patience):
            raise StoreUnavailable(
                f"{self._where.shown}: all {self.most} connections of this process were busy for {self._patience:.0f} s"
            )
        try:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is not None and found.is_stale():
                found.close()
                found = None
            if found is None:
                found = Connection(self._where)
                found.open()
        except BaseException as error:
            if self._places is not None:
                self._places.release()
            if isinstance(error, Lost):
                raise StoreUnavailable(f"{self._where.shown}: {error}") from error
            raise
        return found

    def give(self, connection: Connection) -> None:
        with self._lock:
            keeps = connection.is_open and not self._closed
            if keeps:
                self._idle.append(connection)
        if not keeps:
            connection.close()
        if self._places is not None:
            self._places.release()

    @contextmanager
    def taken(self) -> Iterator[Connection]:
        connection = self.take()
        try:
            yield connection
        finally:
            self.give(connection)

    def ask(self, *commands: Command) -> list[Any]:
        """The answers to commands outside of a transaction. Raises TenureError."""
        with self.taken() as connection:
            try:
                answers = connection.ask(commands)
            except Lost as error:
                raise lost(error, self._where.shown) from error
        for answer in answers:
            if isinstance(answer, Exception):
                raise translated(answer, self._where.shown) from answer
        return answers

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
