"""One connection, and the statements that run on it.

Below psycopg's cursors, on its `pq`: statements of one call go out together and come back together, in one round trip,
and are prepared by our own count. psycopg would prepare each text once for every combination of types and None.

Nothing on the server outlives a transaction but prepared statements, and those only on a direct connection. Whether
it is one shows by itself: a pooler hands out a process id of its own making.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import psycopg
import psycopg.conninfo
from psycopg import pq
from psycopg.adapt import Transformer

from tenure.core import limits
from tenure.core.errors import StoreUnavailable
from tenure.stores.postgres.errors import LOST_STATEMENTS, Failed, Lost, Notice
from tenure.stores.postgres.values import parameters

_PREPARED_AT_MOST = limits.PREPARED
_PLANS_AT_FIRST, _PLANS_AT_MOST = 1.0, 300.0  # seconds that plans are kept, longer each time
_AT_ONCE = 200  # statements on their way: the answers to so many fit into a socket's buffer
_SILENCE = 5.0  # seconds beyond the server's own timeouts, after which it counts as gone

Statement = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]


class Answer:
    """What one statement gave: its rows, or how many it touched."""

    __slots__ = ("_link", "_result")

    def __init__(self, result: pq.abc.PGresult, link: Connection) -> None:
        self._result = result
        self._link = link

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
        """The first row, as the server has written it."""
        return [self._result.get_value(0, column) for column in range(self._result.nfields)]

    def rows(self) -> Rows:
        return self._loaded(self._link.loader)

    def rows_apart(self) -> Rows:
        """As `rows`, when the link may be another thread's by now."""
        return self._loaded(Transformer())

    def _loaded(self, loader: Any) -> Rows:
        loader.set_pgresult(self._result, set_loaders=True, format=pq.Format.TEXT)
        rows: Rows = loader.load_rows(0, self._result.ntuples, tuple)
        return rows


class Connection:
    """Used by one thread at a time. After Lost it is of no use any more."""

    def __init__(self, wire: pq.abc.PGconn, patience: float) -> None:
        """`patience`: seconds that the server's own timeouts let a statement take."""
        self.is_direct = False  # and not a pooler's
        self.prepares = False
        self.patience = patience
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
        self._bell = select.poll()
        self._owed: list[str | None] | None = None  # what comes for a statement whose answer nobody waits for

    @property
    def is_open(self) -> bool:
        return self._wire.status == pq.ConnStatus.OK

    @property
    def told_process(self) -> int:
        """Which process serves us, as whoever took our call has said."""
        return self._wire.backend_pid

    @property
    def version(self) -> int:
        """Of the server: 150004 is 15.4."""
        return self._wire.server_version

    @property
    def in_transaction(self) -> bool:
        return self._owed is None and self._wire.transaction_status != pq.TransactionStatus.IDLE

    def all(self, text: str, values: Sequence[Any] = ()) -> Rows:
        return self.run([(text, values)])[0].rows()

    def run(self, statements: Sequence[Statement], aside: Statement | None = None) -> list[Answer]:
        """The answers, in order, after one round trip. Raises Failed for the first that fails: none behind it runs.

        Nobody minds whether `aside` fails, which is run last.
        """
        if self._owed is not None:
            self._take_owed()
        if self._prepared and not self.in_transaction and time.monotonic() > self._plans_until:
            self._plan_anew()
        # All are encoded before the first is sent: a value that cannot be must not leave half of them on their way.
        ready = [(text, parameters(values)) for text, values in (*statements, *((aside,) if aside else ()))]
        answers: list[Answer] = []
        for start in range(0, len(ready), _AT_ONCE):
            needed = len(statements) - start
            answers += self._exchange(ready[start : start + _AT_ONCE], needed)
        return answers[: len(statements)]

    def post(self, statement: Statement) -> None:
        """Run it, last of its transaction or after it, without waiting: its answer is read before the next one's."""
        text, values = statement
        coming: list[str | None] = []
        try:
            self._send(text, parameters(values), coming)
            self._owed = coming
            self._flush()
        except psycopg.OperationalError as error:
            self.close()
            raise Lost(str(error).strip()) from error

    def _take_owed(self) -> None:
        owed, self._owed = self._owed or [], None
        try:
            self._receive(owed, syncs=0)
        except psycopg.OperationalError as error:
            self.close()
            raise Lost(str(error).strip()) from error

    def script(self, text: str) -> None:
        """Run several statements without parameters, one after another, as a migration has them."""
        if self._owed is not None:
            self._take_owed()
        try:
            self._wire.send_query(text.encode())
            self._flush()
            _, failed = self._receive([""], syncs=0)
        except psycopg.OperationalError as error:
            self.close()
            raise Lost(str(error).strip()) from error
        if failed is not None:
            raise failed

    def _exchange(self, statements: Sequence[tuple[str, Sequence[bytes | None]]], needed: int) -> list[Answer]:
        wire = self._wire
        coming: list[str | None] = []  # for each answer that will come: the text that it prepares, if it does
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
            self.close()
            raise Lost(str(error).strip()) from error
        except BaseException:
            self.close()  # interrupted half way: nobody knows what the server will say next
            raise
        if failed is not None:
            if failed.state in LOST_STATEMENTS:
                self.forget()
            if len(answers) < needed:
                raise failed
        return answers

    def _is_to_prepare(self, text: str) -> bool:
        """What comes a second time will come often."""
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

    def _plan_anew(self) -> None:
        """A plan that was made for ten rows must not serve ten thousand, and nothing tells the server so."""
        self._prepared.clear()
        self._plans_last = min(self._plans_last * 2, _PLANS_AT_MOST)
        self._plans_until = time.monotonic() + self._plans_last
        self._exchange([("DEALLOCATE ALL", ())], 1)

    def forget(self) -> None:
        """Prepared statements are not where we left them: this connection goes on without."""
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
        """Until there is something to do on the socket. The GIL is free meanwhile, and Ctrl-C works."""
        if not self._poll.poll((self.patience + _SILENCE) * 1000):
            self.close()
            raise Lost(f"the server has not said a word for {self.patience + _SILENCE:g} s")

    def _receive(self, coming: Sequence[str | None], syncs: int) -> tuple[list[Answer], Failed | None]:
        """Read everything that will come, and stay in step with the server whatever it says."""
        wire, answers, step = self._wire, [], 0
        failed: Failed | None = None
        while step < len(coming) or syncs > 0:
            while wire.is_busy():
                self._wait()
                wire.consume_input()
            result = wire.get_result()
            if result is None:  # stands behind the answer to each statement
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
            else:  # it failed, or something before it did
                self._prepared.pop(coming[step] or "", None)
                if status == pq.ExecStatus.FATAL_ERROR and failed is None:
                    failed = _failed(result)
                    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
                    if severity in (b"FATAL", b"PANIC") or wire.status != pq.ConnStatus.OK:
                        raise psycopg.OperationalError(failed.message)
        return answers, failed

    def stop_hearing(self, descriptor: int) -> None:
        """`hear` also ends when there is something to read here. This link is for hearing from now on."""
        self._bell.register(self._wire.socket, select.POLLIN)
        self._bell.register(descriptor, select.POLLIN)

    def hear(self, seconds: float) -> None:
        """Wait for the server to speak by itself; what it tells goes to `on_news`."""
        wire = self._wire
        try:
            if self._hand_on():  # what came along with the last answer
                return
            if self._bell.poll(seconds * 1000):
                wire.consume_input()
                if wire.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the server has closed the connection")
            self._hand_on()
        except psycopg.OperationalError as error:
            self.close()
            raise Lost(str(error).strip()) from error

    def _hand_on(self) -> int:
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


def connect(conninfo: str, patience: float, *, prepares: bool = True) -> Connection:
    """An open connection. Raises StoreAway where there is none to be had, or where the server only reads."""
    try:
        link = Connection(_reached(conninfo), patience)
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL cannot be reached: {str(error).strip()}") from error
    try:
        ((process, encoding),) = link.all("SELECT pg_backend_pid(), current_setting('server_encoding')")
    except (Failed, Lost) as error:
        link.close()
        raise StoreUnavailable(f"PostgreSQL cannot be asked: {error}") from error
    if encoding != "UTF8":
        link.close()
        raise StoreUnavailable(f"the database has the encoding {encoding}; tenure needs UTF8")
    link.is_direct = process == link.told_process
    link.prepares = prepares and link.is_direct
    return link


def _reached(conninfo: str) -> pq.abc.PGconn:
    """Without psycopg's connection around it, which has a word to say about each that nobody closes.

    Each host gets as long as `connect_timeout` says; whoever waits can be interrupted, and holds nobody up.
    """
    settings = psycopg.conninfo.conninfo_to_dict(conninfo)
    hosts = str(settings.get("host") or "").count(",") + 1
    until = time.monotonic() + hosts * float(settings.get("connect_timeout") or 10)
    wire = pq.PGconn.connect_start(conninfo.encode())
    while True:
        if wire.status == pq.ConnStatus.BAD:
            raise psycopg.OperationalError(wire.get_error_message())
        status = wire.connect_poll()
        if status == pq.PollingStatus.OK:
            return wire
        if status == pq.PollingStatus.FAILED:
            raise psycopg.OperationalError(wire.get_error_message())
        wanted = select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT
        waiting = select.poll()
        waiting.register(wire.socket, wanted)
        if not waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            wire.finish()
            raise psycopg.OperationalError("no answer within the connect_timeout")


def _failed(result: pq.abc.PGresult) -> Failed:
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    words = [
        result.error_field(field) for field in (pq.DiagnosticField.MESSAGE_PRIMARY, pq.DiagnosticField.MESSAGE_DETAIL)
    ]
    text = ": ".join(word.decode(errors="replace") for word in words if word)
    return Failed(state, text or (result.error_message or b"").decode(errors="replace").strip())


@lru_cache(maxsize=4096)
def numbered(text: str) -> bytes:
    """`?` as $1, $2, …; texts with `$1` in them already have none."""
    first, *others = text.split("?")
    return "".join([first, *(f"${n}{part}" for n, part in enumerate(others, start=1))]).encode()
