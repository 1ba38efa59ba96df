"""Connections to a server that are kept alive, as many as there are threads that ask at once.

http.client, not a larger library: the command line starts hundreds of times a day, and this is 30 ms of a start where
others are 80 and more. Safe for threads, and in a forked child, which makes connections of its own.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING

from tenure.client.ways.address import Address
from tenure.client.ways.asking import Request
from tenure.client.ways.hearing import Reply, Trouble
from tenure.core import limits
from tenure.core.errors import StoreUnavailable

if TYPE_CHECKING:
    import ssl

TO_CONNECT = limits.CONNECT_TIMEOUT
TO_ANSWER = limits.ANSWER_TIMEOUT
MOST_IDLE = limits.IDLE_CONNECTIONS
GLANCE = 0.2  # seconds between looks whether an answer is still wanted


class Failed(Exception):
    """No reply came. `may_pass`: another try may fare better."""

    def __init__(self, trouble: Trouble, *, may_pass: bool = True, is_stale: bool = False) -> None:
        super().__init__(trouble.error.message)
        self.trouble, self.may_pass, self.is_stale = trouble, may_pass, is_stale


class Unwanted(Exception):
    """Whoever asked no longer wants to know; the server sees that nobody is there any more."""


class Connections:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: deque[HTTPConnection] = deque()  # its steps are atomic: it needs no lock
        self._process = os.getpid()
        self._is_closed = False
        self._context: ssl.SSLContext | None = None

    def exchange(self, request: Request, wait: float = 0.0, is_wanted: Callable[[], bool] | None = None) -> Reply:
        """Send a request and have its reply; raises Failed where none came, Unwanted once `is_wanted` says no."""
        self._refuse_when_closed()
        connection = self._kept()
        is_kept = connection is not None
        if connection is None:
            connection = self.made()
        assert connection.sock is not None
        try:
            connection.sock.settimeout(wait + TO_ANSWER)
            connection.request(request.method, self.below(request.path), request.body, request.headers)
            if is_wanted is not None:
                _await_answer(connection.sock, wait + TO_ANSWER, is_wanted)
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            connection.close()
            # A server closes what has been idle, and the news of it may cross with a request.
            is_stale = is_kept and isinstance(error, ConnectionError)
            raise Failed(self.lost(error), is_stale=is_stale) from error
        except BaseException:  # an interrupt: half an answer may be left in it
            connection.close()
            raise
        self._put_back(connection, is_good=not response.will_close)
        return Reply(
            response.status, body, response.headers.get("Content-Type", ""),
            seconds(response.headers.get("Retry-After")), response.headers.get("Location", ""),
        )  # fmt: skip

    def close(self) -> None:
        self._is_closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def _kept(self) -> HTTPConnection | None:
        """An idle connection that is still good."""
        if self._process != os.getpid():  # these are the parent's
            self._drop_idle()
            self._process = os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            # What can be read although nothing was asked is the end of it.
            if connection.sock is not None and not is_readable(connection.sock):
                return connection
            connection.close()

    def _put_back(self, connection: HTTPConnection, *, is_good: bool) -> None:
        if is_good and not self._is_closed and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            away = StoreUnavailable(f"{self._address.url}: this client was closed; nothing was done")
            raise Failed(Trouble(away, False), may_pass=False)

    def below(self, path: str) -> str:
        """The path of a request, behind that of the server's own URL."""
        return self._address.path + path

    def made(self) -> HTTPConnection:
        """A new connection, which whoever asked for it closes; raises Failed where there is none."""
        self._refuse_when_closed()
        host, port, is_secure, _, url = self._address
        connection = (
            HTTPSConnection(host, port, timeout=TO_CONNECT, context=self._trusting())
            if is_secure
            else HTTPConnection(host, port, timeout=TO_CONNECT)
        )
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            away = StoreUnavailable(
                f"{url} cannot be reached: {error}", "look whether the server runs, and what the url is"
            )
            raise Failed(Trouble(away, False), may_pass=may_pass(error)) from error
        return connection

    def _trusting(self) -> ssl.SSLContext:
        if self._context is None:
            import ssl

            self._context = ssl.create_default_context()
        return self._context

    def lost(self, error: Exception) -> Trouble:
        why = str(error) or type(error).__name__
        return Trouble(StoreUnavailable(f"{self._address.url}: the connection was lost: {why}"), True)


def may_pass(error: OSError) -> bool:
    """A name that nobody knows, or a certificate that nobody vouches for, will be no better in a moment."""
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return type(error).__name__ != "SSLCertVerificationError"


def seconds(text: str | None) -> float | None:
    """`Retry-After` in seconds; a date there is not worth a parser."""
    return float(text) if text is not None and text.isdecimal() else None


def _await_answer(sock: socket.socket, timeout: float, is_wanted: Callable[[], bool]) -> None:
    """Wait for the first byte, and look up now and then whether it is still wanted."""
    until = time.monotonic() + timeout
    while not is_readable(sock, GLANCE):
        if not is_wanted():
            raise Unwanted
        if time.monotonic() > until:
            raise TimeoutError("timed out")


def is_readable(sock: socket.socket, seconds: float = 0.0) -> bool:
    poll = select.poll()  # select() knows no descriptor beyond 1023
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
