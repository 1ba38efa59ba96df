"""One connection, and the statements that run on it.

It uses psycopg's `pq` instead of its cursors: the statements of one call take one round trip, and are prepared when a
text comes again. psycopg would prepare each text once for every combination of types and None.

Only prepared statements outlive a transaction on the server, and only on a direct connection. A pooler is recognised by
the process id that it reports, which is not the server's.
"""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from tenure.core import limits
from tenure.core.errors import StoreUnavailable
from tenure.stores.postgres.errors import LOST_STATEMENTS, Failed, Notice
from tenure.stores.postgres.reach import reached
from tenure.stores.postgres.values import parameters
from tenure.stores.sql import hosts
from tenure.stores.sql.hosts import Place
from tenure.stores.sql.server_errors import Lost

_PREPARED_AT_MOST = limits.PREPARED
_PLANS_AT_FIRST, _PLANS_AT_MOST = 1.0, 300.0  # seconds that plans are kept, longer each time
_AT_ONCE = 200  # statements sent together: their answers fit into a socket's buffer
_SILENCE = 5.0  # seconds beyond the server's timeouts, after which it counts as lost

Statement = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]


class Answer:
    """The result of one statement: its rows, or how many it touched."""

    __slots__ = ("_connection", "_result")

    def __init__(self, result: pq.abc.PGresult, connection: Connection) -> None:
        self._result = result
        self._connection = connection

    @property
    def touched(self) -> int:
        return self._result.command_tuples or 0

    @property
    def tag(self) -> bytes:
        return self._result.command_status or b""

    @property
    def count(self) -> int:
        return self._result.ntuples

    def first(self) -> list[bytes | None]:
        """The first row, as the server sent it."""
        return [self._result.get_value(0, column) for column in range(self._result.nfields)]

    def rows(self) -> Rows:
        return self._loaded(self._connection.loader)

    def rows_apart(self) -> Rows:
        """As `rows`, when another thread may be using the connection by now."""
        return self._loaded(Transformer())

    def _loaded(self, loader: Any) -> Rows:
        loader.set_pgresult(self._result, set_loaders=True, format=pq.Format.TEXT)
        rows: Rows = loader.load_rows(0, self._result.ntuples, tuple)
        return rows


class Connection:
    """Used by one thread at a time. After Lost it cannot be used any more."""

    def __init__(self, wire: pq.abc.PGconn, patience: float) -> None:
        """`patience`: seconds that the server's timeouts allow a statement."""
        self.is_direct = False  # not through a pooler
        self.prepares = False
        self.patience = patience
        self.place: Place | None = None  # where the server is
        self.notices: list[Notice] = []
        self.loader = Transformer()
        self._wire = wire
        self._wire.nonblocking = 1
        self._wire.notice_handler = self._note
        self.on_news: Callable[[str], None] | None = None
        self._prepared: dict[str, bytes] = {}
        self._names = 0
        self._plans_last = _PLANS_AT_FIRST
        self._plans_until = time.monotonic() + _PLANS_AT_FIRST
        self._seen: set[str] = set()
        self._poll = select.poll()
        self._poll.register(self._wire.socket, select.POLLIN)
        self._hearing = select.poll()
        self._owed: list[str | None] | None = None  # the answers to a posted statement, still to be read

    @property
    def is_open(self) -> bool:
        return self._wire.status == pq.ConnStatus.OK

    @property
    def reported_process(self) -> int:
        """The server's process id, as reported when connecting; a pooler reports another one."""
        return self._wire.backend_pid

    @property
    def version(self) -> int:
        """The server's: 150004 is 15.4."""
        return self._wire.server_version

    @property
    def in_transaction(self) -> bool:
        return self._owed is None and self._wire.transaction_status != pq.TransactionStatus.IDLE

    def all(self, text: str, values: Sequence[Any] = ()) -> Rows:
        return self.run([(text, values)])[0].rows()

    def run(self, statements: Sequence[Statement], aside: Statement | None = None) -> list[Answer]:
        """The answers, in order, after one round trip. Raises Failed for the first that fails: no later one runs.

        `aside` is run last, and its failure is ignored.
        """
        self._take_owed()
        if self._prepared and not self.in_transaction and time.monotonic() > self._plans_until:
            self._plan_again()
        # All are encoded before the first is sent: a value that cannot be encoded must not leave half of them sent.
        ready = [(text, parameters(values)) for text, values in (*statements, *((aside,) if aside else ()))]
        answers: list[Answer] = []
        for start in range(0, len(ready), _AT_ONCE):
            needed = len(statements) - start
            answers += self._exchange(ready[start : start + _AT_ONCE], needed)
        return answers[: len(statements)]

    def post(self, statement: Statement) -> None:
        """Run it, last in its transaction or after it, without waiting; the next statement reads its answer first."""
        text, values = statement
        coming: list[str | None] = []
        with self._losing():
            self._send(text, parameters(values), coming)
            self._owed = coming
            self._flush()

    def roll_back(self) -> None:
        """End a transaction that failed. The server does it by itself where the connection is lost meanwhile."""
        if self.is_open and self.in_transaction:
            with suppress(Lost):
                self.run([("ROLLBACK", ())])

    def settle(self) -> None:
        """Read the answers that are still to come; raises Lost where the server has closed the connection meanwhile."""
        self._take_owed()
        with self._losing():
            if self._poll.poll(0):
                self._wire.consume_input()
                if self._wire.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the server has closed the connection")

    def _take_owed(self) -> None:
        if self._owed is not None:
            owed, self._owed = self._owed, None
            with self._losing():
                self._receive(owed, syncs=0)

    def script(self, text: str, patience: float | None = None) -> None:
        """Run several statements without parameters. The server may be silent until the last, so long as `patience`."""
        self._take_owed()
        usual = self.patience
        self.patience = usual if patience is None else patience
        try:
            with self._losing():
                self._wire.send_query(text.encode())
                self._flush()
                _, failed = self._receive([""], syncs=0)
        finally:
            self.patience = usual
        if failed is not None:
            raise failed

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Close the connection where it fails, and raise Lost."""
        try:
            yield
        except psycopg.OperationalError as error:
            raise self._lost(error) from error

    def _lost(self, error: psycopg.OperationalError) -> Lost:
        """A server that vanished is tried last from now on; one that ended the connection answers."""
        text = str(error).strip()
        self.close()
        if self.place is not None and os.strerror(errno.ETIMEDOUT) in text:
            hosts.OF_THIS_PROCESS.note(self.place, time.monotonic())
        return Lost(text)

    def _exchange(self, statements: Sequence[tuple[str, Sequence[bytes | None]]], needed: int) -> list[Answer]:
        wire = self._wire
        coming: list[str | None] = []  # for each expected answer: the text that it prepares, if any
        try:
            if len(statements) == 1 and not self._is_to_prepare(statements[0][0]):
                self._send(*statements[0], coming)
                self._flush()
                answers, failed = self._receive(coming, syncs=0)
            else:
                wire.enter_pipeline_mode()
                for text, values in statements:
                    self._send(text, values, coming)
                wire.pipeline_sync()
                self._flush()
                answers, failed = self._receive(coming, syncs=1)
                wire.exit_pipeline_mode()
        except psycopg.OperationalError as error:
            raise self._lost(error) from error
        except BaseException:
            self.close()  # interrupted half way: answers are still to come
            raise
        if failed is not None:
            if failed.state in LOST_STATEMENTS:
                self.forget()
            if len(answers) < needed:
                raise failed
        return answers

    def _is_to_prepare(self, text: str) -> bool:
        """A text that comes a second time will come often."""
        if not self.prepares or text in self._prepared:
            return False
        if text in self._seen and len(self._prepared) < _PREPARED_AT_MOST:
            return True
        self._seen.add(text)
        return False

    def _send(self, text: str, values: Sequence[bytes | None], coming: list[str | None]) -> None:
        wire = self._wire
        given = values or None
        name = self._prepared.get(text)
        if name is None and wire.pipeline_status and self._is_to_prepare(text):
            self._names += 1
            name = b"t%d" % self._names
            wire.send_prepare(name, numbered(text))
            self._prepared[text] = name
            coming.append(text)
        if name is not None:
            wire.send_query_prepared(name, given)
        else:
            wire.send_query_params(numbered(text), given)
        coming.append(None)

    def _plan_again(self) -> None:
        """A plan made for ten rows must not be used for ten thousand, and the server does not notice by itself."""
        self._prepared.clear()
        self._plans_last = min(self._plans_last * 2, _PLANS_AT_MOST)
        self._plans_until = time.monotonic() + self._plans_last
        self._exchange([("DEALLOCATE ALL", ())], 1)

    def forget(self) -> None:
        """The server no longer has the prepared statements: this connection continues without."""
        self.prepares = False
        self._prepared.clear()

    def _flush(self) -> None:
        wire = self._wire
        while wire.flush():
            self._poll.modify(wire.socket, select.POLLIN | select.POLLOUT)
            try:
                self._wait()
            finally:
                self._poll.modify(wire.socket, select.POLLIN)
            wire.consume_input()

    def _wait(self) -> None:
        """Until the socket is ready. The GIL is free meanwhile, and Ctrl-C works."""
        if not self._poll.poll((self.patience + _SILENCE) * 1000):
            self.close()
            raise Lost(f"the server has not answered for {self.patience + _SILENCE:g} s")

    def _receive(self, coming: Sequence[str | None], syncs: int) -> tuple[list[Answer], Failed | None]:
        """Read every expected answer, and stay in step with the server after an error."""
        wire, answers, step = self._wire, [], 0
        failed: Failed | None = None
        while step < len(coming) or syncs > 0:
            while wire.is_busy():
                self._wait()
                wire.consume_input()
            result = wire.get_result()
            if result is None:  # ends the answer to each statement
                if wire.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the server has closed the connection")
                step += 1
                continue
            status = result.status
            if status == pq.ExecStatus.PIPELINE_SYNC:
                syncs -= 1
            elif status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                if coming[step] is None:
                    answers.append(Answer(result, self))
            else:  # it failed, or one before it
                self._prepared.pop(coming[step] or "", None)
                if status == pq.ExecStatus.FATAL_ERROR and failed is None:
                    failed = _failed(result)
                    failed.place = len(answers)
                    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
                    if severity in (b"FATAL", b"PANIC") or wire.status != pq.ConnStatus.OK:
                        raise psycopg.OperationalError(failed.message)
        return answers, failed

    def stop_hearing(self, descriptor: int) -> None:
        """`hear` also ends when this descriptor is readable. The connection is for notifications from now on."""
        self._hearing.register(self._wire.socket, select.POLLIN)
        self._hearing.register(descriptor, select.POLLIN)

    def hear(self, seconds: float) -> None:
        """Wait for notifications, which go to `on_news`."""
        wire = self._wire
        with self._losing():
            if self._pass_on():  # those that came with the last answer
                return
            if self._hearing.poll(seconds * 1000):
                wire.consume_input()
                if wire.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the server has closed the connection")
            self._pass_on()

    def _pass_on(self) -> int:
        count = 0
        while (news := self._wire.notifies()) is not None:
            count += 1
            if self.on_news is not None:
                self.on_news(news.extra.decode(errors="replace"))
        return count

    def _note(self, result: pq.abc.PGresult) -> None:
        severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) or b""
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        self.notices.append(Notice(severity.decode(errors="replace"), message.decode(errors="replace")))
        del self.notices[:-8]

    def close(self) -> None:
        self._wire.finish()


def connect(
    conninfo: str, patience: float, *, prepares: bool = True, monotonic: Callable[[], float] = time.monotonic
) -> Connection:
    """An open connection. Raises StoreUnavailable where the server cannot be reached, or is read-only."""
    try:
        wire, place = reached(conninfo, monotonic)
        connection = Connection(wire, patience)
        connection.place = place
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL cannot be reached: {str(error).strip()}") from error
    try:
        ((process, encoding),) = connection.all("SELECT pg_backend_pid(), current_setting('server_encoding')")
    except (Failed, Lost) as error:
        connection.close()
        raise StoreUnavailable(f"PostgreSQL query failed: {error}") from error
    if encoding != "UTF8":
        connection.close()
        raise StoreUnavailable(f"the database has the encoding {encoding}; tenure needs UTF8")
    connection.is_direct = process == connection.reported_process
    connection.prepares = prepares and connection.is_direct
    return connection


def _failed(result: pq.abc.PGresult) -> Failed:
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    words = [
        result.error_field(field) for field in (pq.DiagnosticField.MESSAGE_PRIMARY, pq.DiagnosticField.MESSAGE_DETAIL)
    ]
    text = ": ".join(word.decode(errors="replace") for word in words if word)
    return Failed(state, text or (result.error_message or b"").decode(errors="replace").strip())


@lru_cache(maxsize=4096)
def numbered(text: str) -> bytes:
    """`?` as $1, $2, …; a text that already has `$1` contains no `?`."""
    first, *others = text.split("?")
    return "".join([first, *(f"${n}{part}" for n, part in enumerate(others, start=1))]).encode()
