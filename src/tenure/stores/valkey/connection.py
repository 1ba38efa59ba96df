"""Connections: many commands in one round trip, and a bounded pool of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tenure.core import limits
from tenure.core.errors import StoreUnavailable
from tenure.process_table import called
from tenure.stores.sql import connection_pool, hosts
from tenure.stores.sql.server_errors import Lost, lost
from tenure.stores.valkey.address import Address
from tenure.stores.valkey.errors import translated

Command = tuple[Any, ...]
CONNECT = 10.0  # seconds
ANSWER = limits.STATEMENT_TIMEOUT


class _Addressed(redis.Connection):
    """To one address of its host, whose name the certificate must still have."""

    address: str

    def _connect(self) -> Any:
        name, self.host = self.host, self.address
        try:
            return super()._connect()  # type: ignore[no-untyped-call]  # redis-py has no types there
        finally:
            self.host = name


class _AddressedTls(redis.SSLConnection, _Addressed):
    pass


class Connection:
    """One connection, to the first host that is a primary. After Lost it is closed."""

    in_transaction = False  # a transaction is one call of a script

    def __init__(self, where: Address, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._where, self._monotonic = where, monotonic
        self._raw: Any = None
        self.is_open = False
        self.number = 0  # the server's, of this connection

    def open(self) -> None:
        reasons = []
        if (ca := self._where.ca) is not None and not os.access(ca, os.R_OK):
            raise Lost(f"ca={ca} cannot be read")
        places = [place for host, port in self._where.hosts for place in hosts.places_of(host, port)]
        for place in hosts.OF_THIS_PROCESS.last(places, self._monotonic()):
            self._raw = self._made(place)
            began = self._monotonic()
            try:
                self._raw.connect()
                hosts.OF_THIS_PROCESS.forget(place)
                if len(self._where.hosts) == 1 or self._asked("ROLE")[0] == b"master":
                    self.number = int(self._asked("CLIENT", "ID"))
                    self.is_open = True
                    return
                reasons.append(f"{place.host}:{place.port} is a replica")
            except redis.AuthenticationError as error:
                reasons.append(f"{error} Check the user and the password in the URL.")
            except (redis.RedisError, OSError, ValueError) as error:  # ValueError: a host that cannot be a name
                if self._monotonic() - began >= hosts.SLOW:
                    hosts.OF_THIS_PROCESS.note(place, self._monotonic())
                reasons.append(str(error))
            self.close()
        raise Lost("; ".join(reasons))

    def _made(self, place: hosts.Place) -> Any:
        where = self._where
        options: dict[str, Any] = {"ssl_ca_certs": where.ca, "ssl_check_hostname": True} if where.is_encrypted else {}
        kind = _AddressedTls if where.is_encrypted else _Addressed
        made = kind(
            host=place.host, port=place.port, db=where.database, username=where.user, password=where.password,
            socket_timeout=ANSWER, socket_connect_timeout=CONNECT, socket_keepalive=True, client_name=called(),
            socket_keepalive_options=hosts.options(), retry=Retry(NoBackoff(), 0), protocol=2, **options,
        )  # fmt: skip
        made.address = place.address or place.host
        return made

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


class ConnectionPool(connection_pool.ConnectionPool[Connection]):
    """At most `most` connections at a time; None: as many as are asked for."""

    def __init__(self, where: Address, most: int | None, patience: float) -> None:
        super().__init__(lambda: _connected(where), most, patience, where.shown)

    def is_usable(self, connection: Connection) -> bool:
        return connection.is_open and not connection.is_stale()

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
                raise lost(error, self._shown) from error
        for answer in answers:
            if isinstance(answer, Exception):
                raise translated(answer, self._shown) from answer
        return answers


def _connected(where: Address) -> Connection:
    """Raises StoreUnavailable."""
    connection = Connection(where)
    try:
        connection.open()
    except Lost as error:
        raise StoreUnavailable(f"{where.shown}: {error}") from error
    return connection
