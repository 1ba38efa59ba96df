"""The transport to a server: which requests a call makes, when one is sent again, and what its replies mean.

`Calls` is written once, as coroutines that send and pause through two methods of their subclass. `HttpTransport` gives
it methods that block: its coroutines never suspend, so one step runs each of them to its end. The asynchronous
transport gives it methods that await.

Every command has a request id: sending it again has one effect and the same answer.

`Connections` are kept alive, as many as there are threads that send at once. They use http.client, not a larger
library: the command line starts hundreds of times a day, and http.client costs 30 ms of a start, others 80 and more.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from functools import partial, wraps
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from tenure.client.transports import http_messages as messages
from tenure.client.transports.bounded import BoundedResponse, Unbounded, longest
from tenure.client.transports.http_messages import Reply, Request, Trouble
from tenure.client.transports.server_address import (
    STRANGE,
    Address,
    Credentials,
    Failed,
    Unwanted,
    address_of,
    lost,
    strange,
)
from tenure.core import limits
from tenure.core.errors import NotHome, OutcomeUnknown, StoreUnavailable, TenureError, close_all, popped
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query, Status
from tenure.core.records import replace
from tenure.core.regions import named_home, parse_homes

if TYPE_CHECKING:
    import ssl

    from tenure.artifacts.port import Checking
    from tenure.client.contents import Download, Upload, Wanted
    from tenure.core.commands import ClaimNext, Command, Principal
    from tenure.engine import Random

P = ParamSpec("P")
T = TypeVar("T")

IsWanted = Callable[[], bool] | None
Monotonic = Callable[[], float]
Pause = Callable[[float], None]

PATIENCE = limits.RETRY_FOR
SHORTEST, LONGEST = 0.05, 2.0  # seconds between two tries
TO_CONNECT = limits.CONNECT_TIMEOUT
TO_ANSWER = limits.ANSWER_TIMEOUT
GLANCE = 0.2  # seconds between checks whether a reply is still wanted
NOT_SIGNED_IN, NOT_HOME = 401, 421
MOST_HOPS = limits.HOPS_TO_HOME


class Destination(NamedTuple):
    """A server and what signs in there. Threads share a client: one request is sent to one of these as a whole."""

    address: Address
    credentials: Credentials

    @property
    def url(self) -> str:
        return self.address.url


class Calls:
    """One coroutine for each call of a transport."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        random: Random,
        monotonic: Monotonic,
        tenant: str | None = None,
        homes: Mapping[str, str] | None = None,
    ) -> None:
        """`homes`: region → URL of servers to which a request may be sent again, where the tenant's home is there."""
        self._key, self._tenant = key or os.environ.get("TENURE_KEY") or None, tenant
        self._homes = parse_homes(os.environ.get("TENURE_HOMES")) if homes is None else dict(homes)
        self._random, self._monotonic = random, monotonic
        self._go_to(url)

    def _go_to(self, url: str) -> None:
        """Send this and later requests there."""
        address = address_of(url, self._key)
        self._destination = Destination(address, Credentials(address, self._key, self._tenant))

    @property
    def url(self) -> str:
        return self._destination.url

    async def _exchange(self, address: Address, request: Request, wait: float, is_wanted: IsWanted) -> Reply:
        """Send a request once; raise Failed where no reply came, Unwanted once `is_wanted` returns False."""
        raise NotImplementedError

    async def _pause(self, seconds: float) -> None:
        raise NotImplementedError

    async def _leave(self, stream: Any) -> None:
        """Close the stream of a download that is not read."""
        raise NotImplementedError

    async def do(self, command: Command, principal: Principal) -> Outcome:
        request = messages.command_request(self._identified(command), principal)
        return messages.outcome_of(await self._send(request), self.url)

    async def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await self._run([self._identified(command) for command in batch], principal, is_preview=False)

    async def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await self._run(batch, principal, is_preview=True)

    async def _run(
        self, batch: Sequence[Command], principal: Principal, *, is_preview: bool
    ) -> list[Outcome | TenureError]:
        if not batch:
            return []
        request = messages.batch_request(batch, principal, is_preview=is_preview)
        return messages.answers_of(await self._send(request), self.url)

    async def claim_or_wait(
        self, command: ClaimNext, seconds: float, principal: Principal, is_wanted: IsWanted = None
    ) -> Outcome:
        # One id for all polls: a claim whose answer was lost comes with the next.
        command = self._identified(command)
        for poll, is_last in self._polls(seconds):
            try:
                reply = await self._send(messages.command_request(command, principal, poll), poll, is_wanted)
            except Unwanted:
                break
            outcome = messages.outcome_of(reply, self.url)
            if outcome.outcome != "NO_TASK" or is_last:
                return outcome
        return Outcome(outcome="NO_TASK", message="the caller no longer waits")

    async def query(self, query: Query, principal: Principal) -> Any:
        found: list[Any] = []
        view: Any = None
        answer: Any = found
        for part in messages.parts_of(query):
            page: Query | None = messages.first_page(part)
            while page is not None:
                reply = await self._send(messages.query_request(page, principal))
                view = messages.view_of(reply, self.url)
                if not isinstance(view, dict) or "items" not in view:
                    return view
                found += view["items"]
                try:
                    page = messages.next_page(page, view, len(found), part)
                    answer = messages.page_of(query, found, view) if query.largest else found
                except messages.UNREADABLE:
                    raise messages.not_tenure(reply, self.url) from None
        return answer

    async def put(self, upload: Upload, principal: Principal) -> Outcome:
        from tenure.client.transports.http_artifacts import upload_request

        return messages.outcome_of(await self._send(upload_request(upload, principal)), self.url)

    async def _found(self, wanted: Wanted, principal: Principal) -> tuple[dict[str, Any], Checking, Any]:
        """An artifact's view, the check of its bytes, and the stream to read them from."""
        from tenure.artifacts.port import Checking
        from tenure.client.transports.http_artifacts import artifact_of, download_request

        reply = await self._send(download_request(wanted, principal))
        try:
            view = artifact_of(reply, self.url)
        except BaseException:
            if reply.stream is not None:
                await self._leave(reply.stream)
            raise
        end = view["size"] if wanted.end is None else min(wanted.end, view["size"])
        return view, Checking(view["digest"], view["size"], wanted.start, end), reply.stream

    async def mark(self, project: str, principal: Principal) -> int:
        return messages.mark_of(await self._send(messages.news_request(project, 0, 0, principal)), self.url)

    async def wait(
        self,
        mark: int,
        seconds: float,
        project: str,
        principal: Principal,
        is_wanted: IsWanted = None,
        tasks: Collection[str] = (),
    ) -> bool:
        for poll, is_last in self._polls(seconds):
            try:
                reply = await self._send(messages.news_request(project, mark, poll, principal, tasks), poll, is_wanted)
            except Unwanted:
                break
            is_news = messages.mark_of(reply, self.url) > mark
            if is_news or is_last:
                return is_news
        return False

    async def now(self, project: str, principal: Principal) -> int:
        return int((await self.query(Status(project=project), principal))["now"])

    # --- sending ---

    def _identified(self, command: Any) -> Any:
        """The command with a request id, so that it can be sent again."""
        if command.request_id is not None:
            return command
        return replace(command, request_id=self._random.token(16).hex())

    def _polls(self, seconds: float) -> Iterator[tuple[float, bool]]:
        """The seconds of each long poll, and whether it is the last."""
        until = self._monotonic() + seconds
        is_last = False
        while not is_last:
            left = max(0.0, until - self._monotonic())
            poll = min(left, limits.POLL_PIECE)
            is_last = left <= poll
            yield poll, is_last

    async def _send(self, request: Request, wait: float = 0.0, is_wanted: IsWanted = None) -> Reply:
        tries = Tries(request, self._monotonic, self._random.fraction)
        hops = 0
        while True:
            address, credentials = to = self._destination
            signed = request._replace(headers=request.headers | credentials.headers)
            try:
                reply = await self._exchange(address, signed, wait, is_wanted)
                if reply.status == NOT_SIGNED_IN and credentials.is_renewed(signed.headers):
                    continue
                if reply.status == NOT_HOME:
                    home = self._home_in(reply, to.url)
                    if self._destination is to:  # else another thread has followed an answer already
                        self._go_to(home)
                    hops += 1
                    if hops <= MOST_HOPS:
                        continue
                    # Servers keep a tenant's row for a moment: after a move each of two names the other.
                    trouble = Trouble(messages.problem_in(reply, to.url), False)
                else:
                    passing = messages.trouble_in(reply, to.url)
                    if passing is None:
                        return reply
                    trouble = passing
            except Failed as failed:
                trouble = failed.trouble
                if not failed.may_pass:
                    raise tries.end(trouble) from failed
                if failed.is_stale:
                    continue
            await self._pause(tries.pause_after(trouble))
            if is_wanted is not None and not is_wanted():
                raise Unwanted

    def _home_in(self, reply: Reply, url: str) -> str:
        """The tenant's home that the reply of this server names. NotHome where our own table does not name it too.

        The key goes to no address that only a reply names.
        """
        header = reply.headers.get("Tenure-Home")
        home = named_home(header, self._homes)
        if home is not None and home != url:
            return home
        error = messages.problem_in(reply, url)
        if home is None and header:
            hint = f"it names {header[:200]!r}; if that is your server, add it to `homes` (TENURE_HOMES=REGION=URL)"
            raise NotHome(error.message, hint, home=header)
        raise error


class _BlockingCalls(Calls):
    def __init__(self, url: str, pause: Pause, **how: Any) -> None:
        self._all: dict[str, Connections] = {}
        self._is_closed = False
        super().__init__(url, **how)
        self._sleep = pause

    def close(self) -> None:
        self._is_closed = True
        close_all(*(connections.close for connections in list(self._all.values())))

    async def _exchange(self, address: Address, request: Request, wait: float, is_wanted: IsWanted) -> Reply:
        connections = self._all.get(address.url) or self._all.setdefault(address.url, Connections(address))
        if self._is_closed:
            connections.close()
        return connections.exchange(request, wait, is_wanted)

    async def _pause(self, seconds: float) -> None:
        self._sleep(seconds)

    async def _leave(self, stream: Any) -> None:
        stream.close()

    async def get(self, wanted: Wanted, principal: Principal) -> Download:
        from tenure.client.contents import Download
        from tenure.client.transports.http_artifacts import pieces_of

        view, checking, stream = await self._found(wanted, principal)
        return Download(view, pieces_of(self.url, stream, checking), stream.close)


def _blocking(
    call: Callable[Concatenate[_BlockingCalls, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[HttpTransport, P], T]:
    """A method that runs a coroutine of `_BlockingCalls`, which never suspends, to its end."""

    @wraps(call)
    def method(self: HttpTransport, /, *given: P.args, **named: P.kwargs) -> T:
        try:
            call(self._calls, *given, **named).send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        raise AssertionError("a blocking call has suspended")

    return method


class HttpTransport:
    """Blocks the calling thread; threads share its connections."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        random: Random,
        monotonic: Monotonic,
        pause: Pause,
        tenant: str | None = None,
        homes: Mapping[str, str] | None = None,
    ) -> None:
        self._calls = _BlockingCalls(
            url, pause, key=key, random=random, monotonic=monotonic, tenant=tenant, homes=homes
        )
        self.url = self._calls.url

    do = _blocking(Calls.do)
    run = _blocking(Calls.run)
    preview = _blocking(Calls.preview)
    claim_or_wait = _blocking(Calls.claim_or_wait)
    query = _blocking(Calls.query)
    put = _blocking(Calls.put)
    get = _blocking(_BlockingCalls.get)
    mark = _blocking(Calls.mark)
    wait = _blocking(Calls.wait)
    now = _blocking(Calls.now)

    def close(self) -> None:
        self._calls.close()


# --- retries ------------------------------------------------------------------------------------------------


class Tries:
    """When a request is sent again, and the error it is given up with."""

    def __init__(self, request: Request, monotonic: Monotonic, fraction: Callable[[], float]) -> None:
        self._request, self._monotonic, self._fraction = request, monotonic, fraction
        self._until = monotonic() + PATIENCE
        self._count = 0
        self._is_unknown = False  # one of them may have been applied

    def pause_after(self, trouble: Trouble) -> float:
        """Seconds until the next try; raises where there is none."""
        self._is_unknown |= trouble.is_sent and not self._request.is_read
        pause = float(min(LONGEST, SHORTEST * 2**self._count) * (0.5 + self._fraction()))
        pause = max(pause, trouble.retry_after or 0.0)
        self._count += 1
        # A slow reply may have used up the time; the second try reports whether the first was applied.
        is_over = self._monotonic() + pause > self._until
        if is_over and (self._count > 1 or (trouble.retry_after or 0.0) > PATIENCE):
            raise self._waited(self.end(trouble))
        return pause

    @staticmethod
    def _waited(error: TenureError) -> TenureError:
        """The error of a request that was sent for PATIENCE seconds, which no setting makes longer."""
        if isinstance(error, StoreUnavailable):
            error.message += f"; it was tried for {PATIENCE:g} s"
            error.hint = f"{error.hint or 'the server may be starting again'}; then call it again: nothing was done"
        return error

    def end(self, trouble: Trouble) -> TenureError:
        """The error to give up with."""
        error, request_id = trouble.error, self._request.request_id
        if not self._is_unknown and (self._request.is_read or not trouble.is_sent):
            return error
        again = f" with request id {request_id}" if request_id else ""
        return OutcomeUnknown(f"{error.message}; whether it was done is not known", f"send it again{again}")


# --- connections --------------------------------------------------------------------------------------------


class Connections:
    """Thread-safe, and safe in a forked child, which opens its own connections."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: deque[HTTPConnection] = deque()  # its operations are atomic: it needs no lock
        self._process = os.getpid()
        self._is_closed = False
        self._context: ssl.SSLContext | None = None

    def exchange(self, request: Request, wait: float = 0.0, is_wanted: Callable[[], bool] | None = None) -> Reply:
        """Send a request and return its reply; raise Failed where none came, Unwanted once `is_wanted` is False."""
        if self._is_closed:
            closed = StoreUnavailable(f"{self.address.url}: this client was closed; nothing was done")
            raise Failed(Trouble(closed, False), may_pass=False)
        if request.source is not None or request.is_download:
            from tenure.client.transports.http_artifacts import transfer

            return transfer(self, request)
        kept = self._kept()
        connection = kept or self.connect()
        assert connection.sock is not None
        response: BoundedResponse | None = None
        try:
            connection.sock.settimeout(wait + TO_ANSWER)
            connection.request(request.method, self.address.path + request.path, request.body, request.headers)
            if is_wanted is not None:
                _await_reply(connection.sock, wait + TO_ANSWER, is_wanted)
            response = answered(connection, wait)
            body = response.whole()
        except BaseException as error:  # of an interrupt too: half a reply may be left in it
            # A reply keeps the socket of a connection that was to end with it.
            close_all(connection.close, *(() if response is None else (response.close,)))
            if isinstance(error, Unbounded):
                raise error.failed(self.address.url) from None
            if isinstance(error, STRANGE):
                raise Failed(strange(self.address.url, error), may_pass=False) from error
            if not isinstance(error, (OSError, HTTPException)):
                raise
            # A server closes idle connections; its notice may cross with a request.
            is_stale = kept is not None and isinstance(error, ConnectionError)
            raise Failed(lost(self.address.url, error), is_stale=is_stale) from error
        self._put_back(connection, is_good=not response.will_close)
        return Reply(response.status, body, response.headers)

    def close(self) -> None:
        self._is_closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        close_all(*(connection.close for connection in popped(self._idle)))

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
            if connection.sock is not None and not is_readable(connection.sock):
                return connection
            connection.close()

    def _put_back(self, connection: HTTPConnection, *, is_good: bool) -> None:
        if is_good and not self._is_closed and len(self._idle) < limits.IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()

    def connect(self) -> HTTPConnection:
        host, port, is_secure, _, url = self.address
        connection: HTTPConnection | None = None
        try:
            if is_secure:
                connection = HTTPSConnection(host, port, timeout=TO_CONNECT, context=self._ssl_context())
            else:
                connection = HTTPConnection(host, port, timeout=TO_CONNECT)
            connection.connect()
        except (OSError, HTTPException, ValueError) as error:  # of the network, of TLS settings, of a host's name
            if connection is not None:
                connection.close()
            raise Failed.to_connect(url, error) from error
        return connection

    def _ssl_context(self) -> ssl.SSLContext:
        if self._context is None:
            import ssl

            self._context = ssl.create_default_context()
        return self._context


def answered(connection: HTTPConnection, wait: float = 0.0) -> BoundedResponse:
    """The answer to the request that was sent."""
    connection.response_class = partial(BoundedResponse, seconds=longest(wait))  # type: ignore[assignment]
    response: Any = connection.getresponse()
    return response  # type: ignore[no-any-return]


def _await_reply(sock: socket.socket, timeout: float, is_wanted: Callable[[], bool]) -> None:
    """Wait for the first byte, and check now and then whether it is still wanted."""
    until = time.monotonic() + timeout
    while not is_readable(sock, GLANCE):
        if not is_wanted():
            raise Unwanted
        if time.monotonic() > until:
            raise TimeoutError("timed out")


def is_readable(sock: socket.socket, seconds: float = 0.0) -> bool:
    poll = select.poll()  # select() fails for descriptors beyond 1023
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
