"""One connection: statements together in one round trip, values written into their texts.

MariaDB's protocol has no parameters for several statements at once, and preparing a statement costs another
round trip. So values become literals here, and only here. The session's `sql_mode` is ours, so `\\` escapes and `"`
quotes names.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pymysql
from pymysql.constants import CLIENT, SERVER_STATUS
from pymysql.converters import escape_string

from tenure.core import limits
from tenure.core.errors import StoreUnavailable
from tenure.stores.mariadb.address import Address
from tenure.stores.mariadb.errors import Failed, Lost, translated

Statement = tuple[str, Sequence[Any]]  # without values its text is sent as it is
Rows = tuple[tuple[Any, ...], ...]

PACKET = 1 << 20  # bytes of statements that go together; a single one may be longer
_ENDED = frozenset({0, 2006, 2013, 2014, 2027, 2055})  # of the client: there is no answer
_CONNECT = 10  # seconds
MODE = "ANSI_QUOTES,PIPES_AS_CONCAT,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
# Whatever the server's defaults are. A sort compares so many bytes of a text; the longest that is sorted by has fewer.
SESSION = (
    "SET sql_mode = '{mode}', time_zone = '+00:00', collation_connection = utf8mb4_nopad_bin,"
    " tx_isolation = 'READ-COMMITTED', autocommit = 1, unique_checks = 1, sql_select_limit = DEFAULT,"
    " max_sort_length = 4096, innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait},"
    " max_statement_time = {silence}, idle_write_transaction_timeout = {idle}"
)


class Answer(NamedTuple):
    rows: Rows
    touched: int  # rows that were found, also by a change
    last: int  # what LAST_INSERT_ID(…) was given


class Connection:
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    @property
    def is_open(self) -> bool:
        return bool(self._raw.open)

    @property
    def in_transaction(self) -> bool:
        return bool(self._raw.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

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
        return self.run([(text, values)])[0].rows

    def _send(self, together: list[bytes], answers: list[Answer]) -> None:
        try:
            with self._raw.cursor() as cursor:
                cursor.execute(b";".join(together))  # bytes pass as they are
                for text in together:
                    if text is not together[0]:
                        cursor.nextset()
                    answers.append(Answer(tuple(cursor.fetchall()), cursor.rowcount, cursor.lastrowid or 0))
                    if text.startswith(b"BEGIN NOT"):
                        cursor.nextset()  # a block has one answer more, at its end
        except pymysql.err.Error as error:
            code, message = _told(error)
            if code in _ENDED or not self._raw.open:
                self.close()
                raise Lost(message or "no answer") from error
            failed = Failed(code, message)
            failed.place = len(answers)
            raise failed from error
        except BaseException as error:
            self.close()  # answers may still be on their way
            if isinstance(error, OSError):
                raise Lost(str(error)) from error
            raise

    def close(self) -> None:
        """At once: the server rolls back an open transaction."""
        self._raw._force_close()


def connect(where: Address, *, wait: float, silence: float, database: bool = True) -> Connection:
    """`wait`: seconds for a lock. `silence`: the longest that a statement may take. Raises StoreUnavailable."""
    session = SESSION.format(
        mode=MODE, wait=max(1, math.ceil(wait)), silence=f"{silence:g}", idle=math.ceil(limits.WRITE_IDLE)
    )
    try:
        raw = pymysql.connect(
            host=where.host, port=where.port, unix_socket=where.socket, user=where.user, password=where.password,
            database=where.database if database else None, charset="utf8mb4", init_command=session, autocommit=None,
            client_flag=CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS, connect_timeout=_CONNECT,
            read_timeout=silence + _CONNECT, write_timeout=silence + _CONNECT,
            ssl=_trusting(where.ssl_ca) if where.ssl_ca else None, ssl_disabled=where.ssl_ca is None,
        )  # fmt: skip
    except pymysql.err.Error as error:
        code, message = _told(error)
        meant = translated(Failed(code, message), where.shown)
        raise StoreUnavailable(meant.message, meant.hint) from error
    except (OSError, RuntimeError, ValueError) as error:  # of a socket; of TLS; of an answer that is not MariaDB's
        raise StoreUnavailable(f"{where.shown}: {error}") from error
    return Connection(raw)


@lru_cache(8)
def _trusting(authorities: str) -> ssl.SSLContext:
    """One for all connections: making it takes longer than connecting. The server's name is checked too."""
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
        return f"'{escape_string(value)}'"
    if isinstance(value, int):  # a bool too
        return str(int(value))
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}e0" if "e" not in repr(value) else repr(value)
    raise TypeError(f"{value!r} cannot be a value of a column")
