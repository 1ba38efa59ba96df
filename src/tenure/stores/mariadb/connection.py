"""One connection: statements together in one round trip, values written into their texts.

MariaDB's protocol has no parameters for several statements at once, and preparing a statement costs another
round trip. So values become literals here, and only here. The session's `sql_mode` is ours, so `\\` escapes and `"`
quotes names.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pymysql
from pymysql.constants import CLIENT, COMMAND, SERVER_STATUS
from pymysql.converters import escape_string

from tenure.core import limits
from tenure.core.errors import NoStore, StoreUnavailable
from tenure.stores.mariadb.address import Address
from tenure.stores.mariadb.answers import Answer, Rows, next_answer, packets
from tenure.stores.mariadb.errors import Failed, translated
from tenure.stores.sql.nul import hidden
from tenure.stores.sql.server_errors import Lost

Statement = tuple[str, Sequence[Any]]  # without values its text is sent as it is

PACKET = 1 << 20  # bytes of statements that go together; a single one may be longer
_RECEIVED = 1 << 16  # bytes that are read at once
_CONNECT = 10  # seconds
_INSECURE = (
    "Give the server a certificate; `ssl_ca` in the URL names your own authority. allow_insecure=1 there sends "
    "everything in the clear."
)
_NO_DATABASE = 1049  # the code of the server
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
                raise Lost(_told(error)[1] or "no answer") from error
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


def connect(where: Address, *, wait: float, silence: float, database: bool = True) -> Connection:
    """`wait`: seconds for a lock. `silence`: the longest that a statement may take. Raises StoreUnavailable.

    Of a cluster the first node that answers, and belongs to the part of it that may write.
    """
    session = SESSION.format(
        mode=MODE, wait=max(1, math.ceil(wait)), silence=f"{silence:g}", idle=math.ceil(limits.WRITE_IDLE)
    )
    if where.is_cluster:
        session += OF_CLUSTER
    reasons: list[StoreUnavailable] = []
    for host, port in where.hosts:
        try:
            connection = _connected(where, host, port, session, silence, database=database)
        except StoreUnavailable as error:
            reasons.append(error)
            continue
        if not where.is_cluster or _is_ready(connection):
            return connection
        connection.close()
        reasons.append(StoreUnavailable(f"{where.shown}: {host}:{port} is not a ready node of a Galera cluster"))
    raise reasons[0] if len(reasons) == 1 else StoreUnavailable("; ".join(error.message for error in reasons))


def _is_ready(connection: Connection) -> bool:
    try:
        return connection.all(READY) == (("wsrep_ready", "ON"),)
    except (Failed, Lost):
        return False


def _connected(where: Address, host: str, port: int, session: str, silence: float, *, database: bool) -> Connection:
    try:
        raw = pymysql.connect(
            host=host, port=port, unix_socket=where.socket, user=where.user, password=where.password,
            database=where.database if database else None, charset="utf8mb4", init_command=session, autocommit=None,
            client_flag=CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS, connect_timeout=_CONNECT,
            read_timeout=_CONNECT, write_timeout=_CONNECT,
            ssl=_trusting(where.ssl_ca) if where.is_encrypted else None, ssl_disabled=not where.is_encrypted,
        )  # fmt: skip
        if where.is_encrypted and not isinstance(raw._sock, ssl.SSLSocket):  # some releases go on without it
            raw.close()
            raise StoreUnavailable(f"{where.shown}: the server offers no TLS", _INSECURE)
    except pymysql.err.Error as error:
        code, message = _told(error)
        if code == _NO_DATABASE:
            raise NoStore.at(f"at {where.shown}") from error
        meant = translated(Failed(code, message), where.shown)
        raise StoreUnavailable(meant.message, meant.hint) from error
    except (OSError, RuntimeError, ValueError) as error:  # of a socket; of TLS; of an answer that is not MariaDB's
        raise StoreUnavailable(f"{where.shown}: {error}") from error
    # From here on a statement may take its time; another program behind that port has been given up by now.
    raw._read_timeout = raw._write_timeout = silence + _CONNECT
    return Connection(raw, is_of_cluster=where.is_cluster)


@lru_cache(8)
def _trusting(authorities: str | None) -> ssl.SSLContext:
    """One for all connections: making it takes longer than connecting. The server's name is checked too.

    None: the authorities of the system.
    """
    return ssl.create_default_context(cafile=authorities)


def _told(error: pymysql.err.Error) -> tuple[int, str]:
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
        return f"'{escape_string(hidden(value))}'"
    if isinstance(value, int):  # a bool too
        return str(int(value))
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}e0" if "e" not in repr(value) else repr(value)
    raise TypeError(f"{value!r} cannot be a value of a column")
