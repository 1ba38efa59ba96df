"""POST over HTTPS to an address that a user chose: what webhooks and Slack-compatible channels send with.

Every rule here is there because the URL is not ours:

- https alone, unless the deployment's owner allows http; no user name or password in the URL.
- The name is resolved once; every address must be allowed (`addresses.py`), and the connection goes to one of those
  very addresses. A second answer of the name server has no effect. SNI, Host and the certificate keep the name.
- No proxy of the environment, no redirects, no cookies.
- Time and size bound the whole exchange: name, connection, TLS, request and answer. A receiver that sends one byte a
  second is cut off like one that sends nothing.

A connection may be used again for the same scheme, name and port; it stays with the address that was judged. One that
the receiver has closed meanwhile is replaced, and the request sent once more: deliveries carry an id, and come at least
once anyway. Nothing of a URL but scheme, name and port is in any error: paths of Slack's URLs are secrets.
"""

from __future__ import annotations

import io
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TYPE_CHECKING, NamedTuple

from tenure.core import limits
from tenure.core.errors import close_all
from tenure.core.target_urls import Target, checked_url
from tenure.sinks.addresses import Address, Network, is_allowed, parsed

if TYPE_CHECKING:
    import ssl

SECONDS = limits.SEND_SECONDS
LARGEST_ANSWER = limits.SEND_ANSWER
MOST_IDLE = limits.SEND_IDLE
REUSE = 30.0  # seconds after which an idle connection is not used again
_OVERHEAD = 64 * 1024  # bytes of status line and headers, beside the body

Resolve = Callable[[str, int], Sequence[str]]


class SendFailed(Exception):
    """No answer. The message says why, without any secret."""


class Answer(NamedTuple):
    status: int
    retry_after: str | None
    body: bytes  # its beginning
    seconds: float


def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the system's resolver gives them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class HttpSender:
    """Safe to share between threads: each delivery in flight has its own connection."""

    def __init__(
        self,
        *,
        allow_http: bool = False,
        networks: Sequence[Network] = (),
        authorities: str | None = None,
        resolve: Resolve = resolved,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`networks`: allowed besides the public internet. `authorities`: a file of CAs instead of the system's."""
        self._allow_http, self._networks, self._authorities = allow_http, networks, authorities
        self._resolve, self._monotonic = resolve, monotonic
        self._idle: deque[_Connection] = deque()
        self._mutex = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def post(self, url: str, headers: Mapping[str, str], body: bytes, seconds: float = SECONDS) -> Answer:
        """The answer to one request, whatever its status. Raises SendFailed, and InvalidInput for a URL it refuses."""
        target = checked_url(url, allow_http=self._allow_http)
        began = self._monotonic()
        until = began + seconds
        while True:
            connection = self._kept(target)
            is_kept = connection is not None
            if connection is None:
                connection = self._connected(target, until)
            try:
                answer = connection.exchange(headers, body, until)
            except _Closed as error:
                connection.close()
                if is_kept:  # an idle connection that the receiver has closed says nothing about the receiver
                    continue
                raise SendFailed(f"{target.shown} closed the connection without an answer") from error
            except BaseException:
                connection.close()
                raise
            self._put_back(connection)
            return answer._replace(seconds=round(self._monotonic() - began, 6))

    def close(self) -> None:
        with self._mutex:
            idle, self._idle = self._idle, deque()
        close_all(*(connection.close for connection in idle))

    # --- connections ---

    def _kept(self, target: Target) -> _Connection | None:
        """An idle connection for this scheme, name and port that is still good."""
        now, old, found = self._monotonic(), [], None
        with self._mutex:
            for connection in list(self._idle):
                if connection.idle_at + REUSE <= now:
                    self._idle.remove(connection)
                    old.append(connection)
                elif found is None and connection.target[:3] == target[:3]:
                    self._idle.remove(connection)
                    if connection.is_quiet():
                        found = connection
                    else:
                        old.append(connection)
        close_all(*(connection.close for connection in old))
        if found is not None:
            found.target = target
        return found

    def _put_back(self, connection: _Connection) -> None:
        if not connection.is_reusable:
            connection.close()
            return
        connection.idle_at = self._monotonic()
        with self._mutex:
            self._idle.append(connection)
            oldest = self._idle.popleft() if len(self._idle) > MOST_IDLE else None
        if oldest is not None:
            oldest.close()

    def _connected(self, target: Target, until: float) -> _Connection:
        sock = self._socket(target, self._addresses(target, until), until)
        try:
            if target.scheme == "https":
                sock = self._encrypted(sock, target, until)
        except BaseException:
            sock.close()
            raise
        return _Connection(target, sock, self._monotonic)

    def _addresses(self, target: Target, until: float) -> list[Address]:
        """The addresses of the name, resolved once, all of them allowed."""
        found: list[Address] = []
        for text in self._resolved_in_time(target, until):
            try:
                found.append(parsed(text.partition("%")[0]))
            except ValueError:
                raise SendFailed(f"{target.shown}: the name server's answer is not an address") from None
        if not found:
            raise SendFailed(f"{target.shown}: the name has no address")
        for address in found:
            if not is_allowed(address, self._networks):
                raise SendFailed(
                    f"{target.shown} has the address {address}, which is not on the public internet; "
                    "nothing was sent to it"
                )
        return found

    def _resolved_in_time(self, target: Target, until: float) -> Sequence[str]:
        """The system's resolver has no timeout of ours: it is left to a thread that nobody waits for longer."""
        try:
            return [str(parsed(target.host))]
        except ValueError:
            pass
        found: list[Sequence[str] | Exception] = []
        done = threading.Event()

        def look_up() -> None:
            try:
                found.append(self._resolve(target.host, target.port))
            except (OSError, UnicodeError) as error:
                found.append(error)
            done.set()

        threading.Thread(target=look_up, name="tenure-resolve", daemon=True).start()
        if not done.wait(max(0.0, until - self._monotonic())):
            raise SendFailed(f"{target.shown}: the name could not be resolved in time")
        (answer,) = found
        if isinstance(answer, Exception):
            raise SendFailed(f"{target.shown}: the name cannot be resolved") from answer
        return answer

    def _socket(self, target: Target, addresses: Sequence[Address], until: float) -> socket.socket:
        """A connection to the first of the addresses that accepts one."""
        why: OSError | None = None
        for number, address in enumerate(addresses):
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                # They share the rest of the time: an address that swallows packets must leave time for the others.
                sock.settimeout(_left(until, self._monotonic) / (len(addresses) - number))
                sock.connect((str(address), target.port))
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                sock.close()
                why = error
            else:
                return sock
        raise SendFailed(f"{target.shown} cannot be reached: {_reason(why)}") from why

    def _encrypted(self, sock: socket.socket, target: Target, until: float) -> socket.socket:
        import ssl

        if self._context is None:
            self._context = ssl.create_default_context(cafile=self._authorities)
            self._context.set_alpn_protocols(["http/1.1"])
        wrapped = self._context.wrap_socket(sock, server_hostname=target.host, do_handshake_on_connect=False)
        try:
            self._shake_hands(wrapped, target, until)
        except BaseException:
            wrapped.close()  # it has taken the descriptor from the first socket
            raise
        return wrapped

    def _shake_hands(self, sock: ssl.SSLSocket, target: Target, until: float) -> None:
        """The handshake is several reads; together they may take no longer than the rest of the time."""
        import ssl

        sock.settimeout(0.0)
        while True:
            try:
                return sock.do_handshake()
            except ssl.SSLWantReadError:
                _await(sock, until, self._monotonic, target, reads=True)
            except ssl.SSLWantWriteError:
                _await(sock, until, self._monotonic, target, reads=False)
            except ssl.SSLCertVerificationError as error:
                raise SendFailed(f"{target.shown}: its certificate is not valid: {error.verify_message}") from error
            except OSError as error:
                raise SendFailed(f"{target.shown}: TLS failed: {_reason(error)}") from error


class _Closed(Exception):
    """The receiver closed the connection before the first byte of an answer."""


class _TooLong(Exception):
    """Status line and headers have more bytes than any answer needs."""


class _Connection:
    """One connection, used by one delivery at a time."""

    def __init__(self, target: Target, sock: socket.socket, monotonic: Callable[[], float]) -> None:
        self.target, self.idle_at, self.is_reusable = target, 0.0, False
        self._sock, self._monotonic = sock, monotonic

    def is_quiet(self) -> bool:
        """Readable although nothing was asked: the receiver has closed it, or talks out of turn."""
        try:
            return not _is_ready(self._sock, 0.0, reads=True)
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        self._sock.close()

    def exchange(self, headers: Mapping[str, str], body: bytes, until: float) -> Answer:
        self.is_reusable = False
        timed = _TimedSocket(self._sock, until, self._monotonic)
        http = HTTPConnection(self.target.host, self.target.port)
        http.sock = timed
        http.auto_open = 0
        try:
            http.putrequest("POST", self.target.path, skip_host=True, skip_accept_encoding=True)
            http.putheader("Host", self.target.authority)
            http.putheader("Content-Length", str(len(body)))
            for name, value in headers.items():
                http.putheader(name, value)
            http.endheaders(body)
            response = http.getresponse()
        except TimeoutError as error:
            raise SendFailed(f"{self.target.shown} did not answer in time") from error
        except _TooLong as error:
            raise SendFailed(f"{self.target.shown} answered with too many headers") from error
        except (OSError, HTTPException) as error:
            if not timed.received:
                raise _Closed(_reason(error)) from error
            raise SendFailed(f"{self.target.shown}: its answer is broken: {_reason(error)}") from error
        content, is_whole = _content(response)
        self.is_reusable = is_whole and not response.will_close
        return Answer(response.status, response.getheader("Retry-After"), content, 0.0)


def _content(response: HTTPResponse) -> tuple[bytes, bool]:
    """The beginning of the body, and whether that is all. A body that stalls does not change the status."""
    content = b""
    try:
        while len(content) <= LARGEST_ANSWER and (part := response.read1(LARGEST_ANSWER + 1 - len(content))):
            content += part
    except (OSError, HTTPException, _TooLong):
        return content, False
    return content[:LARGEST_ANSWER], len(content) <= LARGEST_ANSWER and not response.length


class _TimedSocket:
    """What http.client uses of a socket, with one deadline and a limit on the bytes read."""

    def __init__(self, sock: socket.socket, until: float, monotonic: Callable[[], float]) -> None:
        self._sock, self._until, self._monotonic = sock, until, monotonic
        self.received = 0

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._sock.settimeout(_left(self._until, self._monotonic))
            view = view[self._sock.send(view) :]

    def receive_into(self, buffer: memoryview) -> int:
        if self.received > LARGEST_ANSWER + _OVERHEAD:
            raise _TooLong
        self._sock.settimeout(_left(self._until, self._monotonic))
        size = self._sock.recv_into(buffer)
        self.received += size
        return size

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self), 8192)

    def close(self) -> None:
        """The connection outlives one exchange."""


class _Reader(io.RawIOBase):
    def __init__(self, sock: _TimedSocket) -> None:
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the one kind that BufferedReader passes
        return self._sock.receive_into(buffer)


def _left(until: float, monotonic: Callable[[], float]) -> float:
    left = until - monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _await(sock: socket.socket, until: float, monotonic: Callable[[], float], target: Target, *, reads: bool) -> None:
    if not _is_ready(sock, max(0.0, until - monotonic()), reads=reads):
        raise SendFailed(f"{target.shown} did not answer in time")


def _is_ready(sock: socket.socket, seconds: float, *, reads: bool) -> bool:
    with selectors.DefaultSelector() as selector:  # `select` alone fails where a process has many open files
        selector.register(sock, selectors.EVENT_READ if reads else selectors.EVENT_WRITE)
        return bool(selector.select(seconds))


def _reason(error: BaseException | None) -> str:
    """The error's kind, in words; its text may have parts of the answer."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None)
    return str(reason)[:200] if isinstance(reason, str) else type(error).__name__
