"""Connections with their settings, and the stack of idle ones: one is in use for each running transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from tenure.core.errors import StoreUnavailable
from tenure.stores.sqlite.errors import moved, translated
from tenure.stores.sqlite.store_file import change_of, files_of, names_of

_STATEMENTS = 256  # an update has as many texts as there are sets of changed columns

_SETTINGS = (
    (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),  # a command that ends would pay for everybody's checkpoint
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),  # the schema has none: one that was planted must not run
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (apsw.SQLITE_DBCONFIG_DQS_DML, 0),  # a misspelt "column" is an error, not a text
    (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
    # One plan a text, whatever is bound: without it half of a claim's time went into planning again (425 of 835 µs).
    (apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1),
)

# FULL: NORMAL loses acknowledged writes in a power cut. fullfsync is for macOS, where fsync does not reach the disk.
_PRAGMAS = """
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
PRAGMA cell_size_check = ON;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -8000;
"""


class SqliteConnection:
    """One connection and the one cursor that it is used through; every result is read to its end at once."""

    __slots__ = ("connection", "execute", "executemany")

    def __init__(self, connection: apsw.Connection) -> None:
        cursor = connection.cursor()
        self.connection = connection
        self.execute: Callable[..., Any] = cursor.execute
        self.executemany: Callable[..., Any] = cursor.executemany

    def all(self, text: str, values: Any = ()) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.execute(text, values).fetchall()
        return rows

    def close(self) -> None:
        self.connection.close()


def connect(path: str, patience: float, *, wal: bool = True) -> SqliteConnection:
    """An open connection to an existing file, set up. Never makes one."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=_STATEMENTS)
    except apsw.Error as error:
        raise translated(error, path) from error
    try:
        # Before anything else: even the journal mode needs a lock that others may hold for a moment.
        connection.set_busy_timeout(int(patience * 1000))
        for option, value in _SETTINGS:
            connection.config(option, value)
        connection.execute(_PRAGMAS).fetchall()
        if wal and connection.execute("PRAGMA journal_mode = WAL").fetchall() != [("wal",)]:
            raise StoreUnavailable(f"{path}: SQLite cannot use WAL here")
    except apsw.Error as error:
        connection.close()
        raise translated(error, path) from error
    except BaseException:
        connection.close()
        raise
    return SqliteConnection(connection)


class Connections:
    """Idle links to one file, the last used on top. Appending to and popping from a list are atomic.

    The file is known by device and inode from the first link on: `change` says whether it and the two beside it still
    lie at their names. What is written to one that does not is lost with it.
    """

    def __init__(self, path: str, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._idle: list[SqliteConnection] = []
        self._closed = False
        self._names = names_of(path)
        self._files: tuple[tuple[int, int], ...] | None = None

    def take(self) -> SqliteConnection:
        if self._closed:
            raise StoreUnavailable(f"{self._path}: the store was closed")
        try:
            return self._idle.pop()
        except IndexError:
            # First the look: to connect where the log was removed would make a new one.
            if (change := self.change()) is not None:
                raise moved(change) from None
            link = connect(self._path, self._patience)
        if self._files is None:
            link.all("PRAGMA schema_version")  # whoever reads has all three open, and makes what is missing
            try:
                self._files = files_of(self._path)
            except OSError as error:
                link.close()
                raise moved(f"{error.filename} was removed") from error
        return link

    def change(self) -> str | None:
        """What happened to the files since the first link was opened; None where they are as they were."""
        return None if self._files is None else change_of(self._names, self._files)

    def give(self, link: SqliteConnection) -> None:
        if self._closed:
            link.close()
        else:
            self._idle.append(link)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()
