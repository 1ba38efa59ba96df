"""One connection: statements together in one round trip, values written into their texts.

MariaDB's protocol has no parameters for several statements at once, and preparing a statement costs another
round trip. So values become literals here, and only here. The session's `sql_mode` is ours, so `\\` escapes and `"`
quotes names.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pymysql
from pymysql.constants import CLIENT, COMMAND, SERVER_STATUS

from tenure.core import limits
from tenure.core.errors import NoStore, StoreUnavailable
from tenure.process_table import called
from tenure.stores.mariadb.address import Address
from tenure.stores.mariadb.answers import Answer, Rows, next_answer, packets
from tenure.stores.mariadb.errors import Failed, translated
from tenure.stores.sql import hosts
from tenure.stores.sql.nul import hidden
from tenure.stores.sql.server_errors import Lost

Statement = tuple[str, Sequence[Any]]  # without values its text is sent as it is

PACKET = 1 << 20  # bytes of statements that go together; a single one may be longer
_RECEIVED = 1 << 16  # bytes that are read at once
_CONNECT = 10  # seconds
_NO_DATABASE, _NO_HOST = 1049, 2003  # the codes of the server and its clients
MODE = "ANSI_QUOTES,PIPES_AS_CONCAT,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
# Whatever the server's defaults are. A sort compares so many bytes of a text; the longest that is sorted by has fewer.
SESSION = (
    "SET sql_mode = '{mode}', time_zone = '+00:00', collation_connection = utf8mb4_nopad_bin,"
    " tx_isolation = 'READ-COMMITTED', autocommit = 1, unique_checks = 1, sql_select_limit = DEFAULT,"
    " max_sort_length = 4096, innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait},"
    " max_statement_time = {silence}, idle_write_transaction_timeout = {idle}"
)
# A node of a cluster reads, and begins to write, once it has applied what the others had committed before.
OF_CLUSTER = ", wsrep_sync_wait = 7"
READY = "SHOW GLOBAL STATUS LIKE 'wsrep_ready'"


class Connection:
    def __init__(self, raw: Any, *, is_of_cluster: bool = False) -> None:
        self._raw, self.is_of_cluster = raw, is_of_cluster
        self._status = 0

    @property
    def is_open(self) -> bool:
        return bool(self._raw.open)

    @property
    def in_transaction(self) -> bool:
        return bool(self._status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    @property
    def version(self) -> str:
        return str(self._raw.get_server_info())

    def run(self, statements: Sequence[Statement]) -> list[Answer]:
        """Their answers, in one round trip, or a few where they are large. The first that fails is the last that runs.

        Raises Failed, Lost, or one of BAD_VALUES, and then nothing of the same round trip was sent.
        """
        answers: list[Answer] = []
        together: list[bytes] = []
        size = 0
        for text, values in statements:
            encoded = (rendered(text, values) if values else text).encode()
            if together and size + len(encoded) > PACKET:
                self._send(together, answers)
                together, size = [], 0
            together.append(encoded)
            size += len(encoded)
        if together:
            self._send(together, answers)
        return answers

    def all(self, text: str, values: Sequence[Any] = ()) -> Rows:
        return self.run([(text, values)])[0].found

    def _send(self, together: list[bytes], answers: list[Answer]) -> None:
        raw = self._raw
        try:
            raw._execute_command(COMMAND.COM_QUERY, b";".join(together))
            stream = packets(lambda: raw._rfile.read1(_RECEIVED))
            for text in together:
                answer = next_answer(stream)
                if text.startswith(b"BEGIN NOT"):
                    answer = _of_block(answer, stream)
                answers.append(answer)
                self._status = answer.status
        except Failed as error:
            error.place = len(answers)
            raise
        except BaseException as error:
            self.close()  # answers may still be on their way
            if isinstance(error, pymysql.err.Error):
                raise Lost(_code_and_message(error)[1] or "no answer") from error
            if isinstance(error, OSError):
                raise Lost(str(error)) from error
            raise

    def close(self) -> None:
        """At once: the server rolls back an open transaction."""
        self._raw._force_close()


def _of_block(answer: Answer, stream: Iterator[bytes]) -> Answer:
    """A block has an answer for each of its queries, and one at its end."""
    rows = list(answer.found)
    while answer.is_table:
        answer = next_answer(stream)
        rows += answer.found
    return answer._replace(found=tuple(rows))


def connect(
    where: Address,
    *,
    wait: float,
    silence: float,
    database: bool = True,
    monotonic: Callable[[], float] = time.monotonic,
) -> Connection:
    """`wait`: seconds for a lock. `silence`: the longest that a statement may take. Raises StoreUnavailable.

    Of a cluster the first node that answers, and belongs to the part of it that may write. Each address has its own
    deadline; one that answered nothing is tried last for a while.
    """
    session = SESSION.format(
        mode=MODE, wait=max(1, math.ceil(wait)), silence=f"{silence:g}", idle=math.ceil(limits.WRITE_IDLE)
    )
    if where.is_cluster:
        session += OF_CLUSTER
    reasons: list[StoreUnavailable] = []
    places = [place for host, port in where.hosts for place in _places(where, host, port)]
    for place in hosts.OF_THIS_PROCESS.last(places, monotonic()):
        began = monotonic()
        try:
            connection = _connected(where, place, session, silence, database=database)
        except NoStore:
            raise
        except StoreUnavailable as error:
            if monotonic() - began >= hosts.SLOW:
                hosts.OF_THIS_PROCESS.note(place, monotonic())
            reasons.append(error)
            continue
        hosts.OF_THIS_PROCESS.forget(place)
        if not where.is_cluster or _is_ready(connection):
            return connection
        connection.close()
        at = f"{place.host}:{place.port}"
        reasons.append(StoreUnavailable(f"{where.shown}: {at} is not a ready node of a Galera cluster"))
    raise reasons[0] if len(reasons) == 1 else StoreUnavailable("; ".join(error.message for error in reasons))


def _is_ready(connection: Connection) -> bool:
    try:
        return connection.all(READY) == (("wsrep_ready", "ON"),)
    except (Failed, Lost):
        return False


def _places(where: Address, host: str, port: int) -> list[hosts.Place]:
    return [hosts.Place(where.socket, 0)] if where.socket else hosts.places_of(host, port)


def _connected(where: Address, place: hosts.Place, session: str, silence: float, *, database: bool) -> Connection:
    authorities = _trusting(where.ssl_ca) if where.is_encrypted else None
    try:
        raw = pymysql.Connection(
            host=place.host, port=place.port, unix_socket=where.socket, user=where.user,
            password=where.password.encode(),
            database=where.database if database else None, charset="utf8mb4", init_command=session, autocommit=None,
            client_flag=CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS, connect_timeout=_CONNECT,
            read_timeout=_CONNECT, write_timeout=_CONNECT,
            ssl=authorities, ssl_disabled=authorities is None, defer_connect=True, program_name=called(),
        )  # fmt: skip
        raw.connect(None if where.socket else _opened(place))
    except pymysql.err.Error as error:
        code, message = _code_and_message(error)
        if code == _NO_DATABASE:
            raise NoStore.at(f"at {where.shown}") from error
        meant = translated(Failed(code, message), where.shown)
        raise StoreUnavailable(meant.message, meant.hint) from error
    except Exception as error:  # the driver fails in many ways at a greeting that is not MariaDB's
        raise StoreUnavailable(f"{where.shown}: no MariaDB could be reached there: {error}") from error
    # From here on a statement may take its time; another program behind that port has been given up by now.
    raw._read_timeout = raw._write_timeout = silence + _CONNECT
    return Connection(raw, is_of_cluster=where.is_cluster)


def _opened(place: hosts.Place) -> socket.socket:
    try:
        return hosts.opened(place, _CONNECT)
    except OSError as error:  # in the words of the driver
        text = f"Can't connect to MySQL server on {place.host!r} ({error})"
        raise pymysql.err.OperationalError(_NO_HOST, text) from error


@lru_cache(8)
def _trusting(authorities: str | None) -> ssl.SSLContext:
    """One for all connections: making it takes longer than connecting. The server's name is checked too.

    None: the system's.
    """
    try:
        return ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise StoreUnavailable(f"ssl_ca={authorities} cannot be used: {error.strerror or error}") from error


def _code_and_message(error: pymysql.err.Error) -> tuple[int, str]:
    code, *rest = error.args or (0,)
    return (code if isinstance(code, int) else 0), str(rest[0] if rest else error)


# --- values ---


def rendered(text: str, values: Sequence[Any]) -> str:
    """The text with each `?` replaced by its value."""
    pieces = _pieces(text)
    if len(pieces) != len(values) + 1:
        raise TypeError(f"{len(pieces) - 1} places for {len(values)} values")
    parts = [pieces[0]]
    for value, piece in zip(values, pieces[1:], strict=True):
        parts.append(literal(value))
        parts.append(piece)
    return "".join(parts)


@lru_cache(4096)
def _pieces(text: str) -> tuple[str, ...]:
    return tuple(text.split("?"))


def literal(value: Any) -> str:
    """The value as the server reads it. Raises TypeError where there is no such literal."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        text = hidden(value)
        if "\\" in text or "'" in text:  # nothing else ends a text, or means something else in it
            text = text.replace("\\", "\\\\").replace("'", "\\'")
        return "'" + text + "'"
    if isinstance(value, int):  # a bool too
        return str(int(value))
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}e0" if "e" not in repr(value) else repr(value)
    raise TypeError(f"{value!r} cannot be a value of a column")
