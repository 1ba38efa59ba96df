"""Keep-alive connections to a server, as many as there are threads that send at once.

http.client, not a larger library: the command line starts hundreds of times a day, and http.client costs 30 ms of a
start where others cost 80 and more. Thread-safe, and safe in a forked child, which opens its own connections.

An artifact goes over its own connection, which is closed afterwards. A sender first asks whether it may (`Expect:
100-continue`), so that a refused one has sent nothing.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, NamedTuple

from tenure.client.transports.http_messages import FOUND, Reply, Request, Trouble
from tenure.core import limits
from tenure.core.errors import StoreUnavailable

if TYPE_CHECKING:
    import ssl

    from tenure.artifacts.port import Checking
    from tenure.client.contents import Source
    from tenure.client.transports.http import Address

TO_CONNECT = limits.CONNECT_TIMEOUT
TO_ANSWER = limits.ANSWER_TIMEOUT
TO_CONTINUE = 2.0  # some proxies never answer "continue"
MOST_IDLE = limits.IDLE_CONNECTIONS
GLANCE = 0.2  # seconds between checks whether a reply is still wanted


class Failed(Exception):
    """No reply came. `may_pass`: another try may succeed."""

    def __init__(self, trouble: Trouble, *, may_pass: bool = True, is_stale: bool = False) -> None:
        super().__init__(trouble.error.message)
        self.trouble, self.may_pass, self.is_stale = trouble, may_pass, is_stale


class Unwanted(Exception):
    """The caller no longer wants the reply; the server sees the connection close."""


class Stream(NamedTuple):
    """A download whose bytes are still to be read."""

    connection: HTTPConnection
    response: HTTPResponse

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class Connections:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: deque[HTTPConnection] = deque()  # its operations are atomic: it needs no lock
        self._process = os.getpid()
        self._is_closed = False
        self._context: ssl.SSLContext | None = None

    def exchange(self, request: Request, wait: float = 0.0, is_wanted: Callable[[], bool] | None = None) -> Reply:
        """Send a request and return its reply; raise Failed where none came, Unwanted once `is_wanted` is False."""
        if self._is_closed:
            closed = StoreUnavailable(f"{self._address.url}: this client was closed; nothing was done")
            raise Failed(Trouble(closed, False), may_pass=False)
        if request.source is not None or request.is_download:
            return self._transfer(request)
        connection = self._kept()
        is_kept = connection is not None
        if connection is None:
            connection = self._connect()
        assert connection.sock is not None
        try:
            connection.sock.settimeout(wait + TO_ANSWER)
            connection.request(request.method, self._address.path + request.path, request.body, request.headers)
            if is_wanted is not None:
                _await_reply(connection.sock, wait + TO_ANSWER, is_wanted)
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            connection.close()
            # A server closes idle connections; its notice may cross with a request.
            raise Failed(self._lost(error), is_stale=is_kept and isinstance(error, ConnectionError)) from error
        except BaseException:  # an interrupt: half a reply may be left in it
            connection.close()
            raise
        self._put_back(connection, is_good=not response.will_close)
        return Reply(response.status, body, response.headers)

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
            # Readable although nothing was asked: the server has closed it.
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            connection.close()

    def _put_back(self, connection: HTTPConnection, *, is_good: bool) -> None:
        if is_good and not self._is_closed and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _connect(self) -> HTTPConnection:
        host, port, is_secure, _, url = self._address
        connection = (
            HTTPSConnection(host, port, timeout=TO_CONNECT, context=self._ssl_context())
            if is_secure
            else HTTPConnection(host, port, timeout=TO_CONNECT)
        )
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise Failed(unreachable(url, error), may_pass=may_pass(error)) from error
        return connection

    def _ssl_context(self) -> ssl.SSLContext:
        if self._context is None:
            import ssl

            self._context = ssl.create_default_context()
        return self._context

    def _lost(self, error: Exception) -> Trouble:
        return lost(self._address.url, error)

    # --- artifacts ---

    def _transfer(self, request: Request) -> Reply:
        """Send an upload, or begin a download: its reply has a Stream."""
        connection = self._connect()
        is_open = False
        try:
            assert connection.sock is not None
            connection.sock.settimeout(TO_ANSWER)
            path = self._address.path + request.path
            if request.source is not None:
                response = _upload(connection, request, path, request.source)
            else:
                connection.request(request.method, path, headers=request.headers)
                response = connection.getresponse()
                is_open = response.status in FOUND
            if is_open:
                return Reply(response.status, b"", response.headers, Stream(connection, response))
            return Reply(response.status, response.read(), response.headers)
        except (OSError, HTTPException) as error:
            raise Failed(self._lost(error)) from error
        finally:
            if not is_open:
                connection.close()

    def pieces(self, stream: Stream, checking: Checking) -> Iterator[bytes]:
        """The bytes of a download; the last piece only after all were checked."""
        from tenure.client.contents import PIECE

        try:
            while piece := stream.response.read(PIECE):
                if before := checking.take(piece):
                    yield before
            if last := checking.finish():
                yield last
        except (OSError, HTTPException) as error:
            raise StoreUnavailable(self._lost(error).error.message, "get it again") from error
        finally:
            stream.close()


def _upload(connection: HTTPConnection, request: Request, path: str, source: Source) -> HTTPResponse:
    connection.putrequest(request.method, path)
    for name, value in {**request.headers, "Expect": "100-continue"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.response_class(connection.sock, method=request.method)
    if _may_send(connection, response):
        try:
            for piece in source.pieces():
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused meanwhile: the reply, if there is one, has the reason
    response.begin()
    return response


def _may_send(connection: HTTPConnection, response: HTTPResponse) -> bool:
    assert connection.sock is not None
    if not _is_readable(connection.sock, TO_CONTINUE):
        return True
    if not response.fp.peek(12).split(b" ", 1)[-1].startswith(b"100"):
        return False
    while response.fp.readline() not in (b"\r\n", b"\n", b""):
        pass
    return True


# --- failures -----------------------------------------------------------------------------------------------


def unreachable(url: str, error: Exception) -> Trouble:
    why = str(error) or type(error).__name__
    hint = "check whether the server runs, and what the url is"
    return Trouble(StoreUnavailable(f"{url} cannot be reached: {why}", hint), False)


def lost(url: str, error: Exception) -> Trouble:
    return Trouble(StoreUnavailable(f"{url}: the connection was lost: {str(error) or type(error).__name__}"), True)


def may_pass(error: OSError) -> bool:
    """Whether another try may succeed: not for an unknown host name or an untrusted certificate."""
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return type(error).__name__ != "SSLCertVerificationError"


def _await_reply(sock: socket.socket, timeout: float, is_wanted: Callable[[], bool]) -> None:
    """Wait for the first byte, and check now and then whether it is still wanted."""
    until = time.monotonic() + timeout
    while not _is_readable(sock, GLANCE):
        if not is_wanted():
            raise Unwanted
        if time.monotonic() > until:
            raise TimeoutError("timed out")


def _is_readable(sock: socket.socket, seconds: float = 0.0) -> bool:
    poll = select.poll()  # select() fails for descriptors beyond 1023
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
