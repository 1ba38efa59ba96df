"""The transport to a server: which requests a call makes, when one is sent again, and what its replies mean.

`Calls` is written once, as coroutines that send and pause through two methods of their subclass. `HttpTransport` gives
it methods that block: its coroutines never suspend, so one step runs each of them to its end. The asynchronous
transport gives it methods that await.

Every command has a request id: sending it again has one effect and the same answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from tenure.client.local_token import find_token
from tenure.client.transports import http_messages as messages
from tenure.client.transports.connections import Connections, Failed, Unwanted
from tenure.core import limits
from tenure.core.errors import InvalidInput, OutcomeUnknown, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Log, Query, States, Status, Tasks
from tenure.core.records import replace

if TYPE_CHECKING:
    from tenure.artifacts.port import Checking
    from tenure.client.contents import Download, Upload, Wanted
    from tenure.client.transports.http_messages import Reply, Request, Trouble
    from tenure.core.commands import ClaimNext, Command, Principal
    from tenure.engine import Random

T = TypeVar("T")

IsWanted = Callable[[], bool] | None

LONGEST_POLL = limits.POLL_PIECE
PATIENCE = limits.RETRY_FOR
SHORTEST, LONGEST = 0.05, 2.0  # seconds between two tries
PAGE = 500
MOST_NAMED = limits.TASKS_PER_QUERY
NOT_SIGNED_IN = 401


class Calls:
    """One coroutine for each call of a transport."""

    def __init__(self, url: str, *, key: str | None, chance: Random, monotonic: Callable[[], float]) -> None:
        key = key or os.environ.get("TENURE_KEY") or None
        self.address = address_of(url, key)
        self.url = self.address.url
        self._credentials = Credentials(self.address, key)
        self._chance, self._monotonic = chance, monotonic

    async def _exchange(self, request: Request, wait: float, is_wanted: IsWanted) -> Reply:
        """Send a request once; raise Failed where no reply came, Unwanted once `is_wanted` returns False."""
        raise NotImplementedError

    async def _pause(self, seconds: float) -> None:
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
        return Outcome(outcome="NO_TASK", message="nobody waits for it any more")

    async def query(self, query: Query, principal: Principal) -> Any:
        found: list[Any] = []
        for part in _parts(query):
            page: Query | None = _first_page(part)
            while page is not None:
                view = messages.view_of(await self._send(messages.query_request(page, principal)), self.url)
                if not isinstance(view, dict) or "items" not in view:
                    return view
                found += view["items"]
                page = _next_page(page, view, len(found), part)
        return found

    async def put(self, upload: Upload, principal: Principal) -> Outcome:
        return messages.outcome_of(await self._send(messages.upload_request(upload, principal)), self.url)

    async def _found(self, wanted: Wanted, principal: Principal) -> tuple[dict[str, Any], Checking, Any]:
        """An artifact's view, the check of its bytes, and the stream to read them from."""
        from tenure.artifacts.port import Checking

        reply = await self._send(messages.download_request(wanted, principal))
        view = messages.artifact_of(reply, self.url)
        end = view["size"] if wanted.end is None else min(wanted.end, view["size"])
        return view, Checking(view["digest"], view["size"], wanted.start, end), reply.stream

    async def mark(self, project: str, principal: Principal) -> int:
        return messages.mark_of(await self._send(messages.news_request(project, 0, 0, principal)), self.url)

    async def wait(
        self, mark: int, seconds: float, project: str, principal: Principal, is_wanted: IsWanted = None
    ) -> bool:
        for poll, is_last in self._polls(seconds):
            try:
                reply = await self._send(messages.news_request(project, mark, poll, principal), poll, is_wanted)
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
        return replace(command, request_id=self._chance.token(16).hex())

    def _polls(self, seconds: float) -> Iterator[tuple[float, bool]]:
        """The seconds of each long poll, and whether it is the last."""
        until = self._monotonic() + seconds
        is_last = False
        while not is_last:
            left = max(0.0, until - self._monotonic())
            poll = min(left, LONGEST_POLL)
            is_last = left <= poll
            yield poll, is_last

    async def _send(self, request: Request, wait: float = 0.0, is_wanted: IsWanted = None) -> Reply:
        tries = Tries(request, self._monotonic, self._chance.fraction)
        while True:
            signed = request._replace(headers=request.headers | self._credentials.headers)
            try:
                reply = await self._exchange(signed, wait, is_wanted)
                if reply.status == NOT_SIGNED_IN and self._credentials.is_renewed():
                    continue
                trouble = messages.trouble_in(reply, self.url)
                if trouble is None:
                    return reply
            except Failed as failed:
                trouble = failed.trouble
                if not failed.may_pass:
                    raise tries.end(trouble) from failed
                if failed.is_stale:
                    continue
            await self._pause(tries.pause_after(trouble))
            if is_wanted is not None and not is_wanted():
                raise Unwanted


class HttpTransport:
    """Blocks the calling thread; threads share its connections."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        chance: Random,
        monotonic: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self._calls = _BlockingCalls(url, key, chance, monotonic, pause)
        self.url = self._calls.url

    def do(self, command: Command, principal: Principal) -> Outcome:
        return _completed(self._calls.do(command, principal))

    def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return _completed(self._calls.run(batch, principal))

    def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return _completed(self._calls.preview(batch, principal))

    def claim_or_wait(
        self, command: ClaimNext, seconds: float, principal: Principal, is_wanted: IsWanted = None
    ) -> Outcome:
        return _completed(self._calls.claim_or_wait(command, seconds, principal, is_wanted))

    def query(self, query: Query, principal: Principal) -> Any:
        return _completed(self._calls.query(query, principal))

    def put(self, upload: Upload, principal: Principal) -> Outcome:
        return _completed(self._calls.put(upload, principal))

    def get(self, wanted: Wanted, principal: Principal) -> Download:
        return _completed(self._calls.get(wanted, principal))

    def mark(self, project: str, principal: Principal) -> int:
        return _completed(self._calls.mark(project, principal))

    def wait(self, mark: int, seconds: float, project: str, principal: Principal, is_wanted: IsWanted = None) -> bool:
        return _completed(self._calls.wait(mark, seconds, project, principal, is_wanted))

    def now(self, project: str, principal: Principal) -> int:
        return _completed(self._calls.now(project, principal))

    def close(self) -> None:
        self._calls.connections.close()


class _BlockingCalls(Calls):
    def __init__(
        self,
        url: str,
        key: str | None,
        chance: Random,
        monotonic: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        super().__init__(url, key=key, chance=chance, monotonic=monotonic)
        self.connections = Connections(self.address)
        self._sleep = pause

    async def _exchange(self, request: Request, wait: float, is_wanted: IsWanted) -> Reply:
        return self.connections.exchange(request, wait, is_wanted)

    async def _pause(self, seconds: float) -> None:
        self._sleep(seconds)

    async def get(self, wanted: Wanted, principal: Principal) -> Download:
        from tenure.client.contents import Download

        view, checking, stream = await self._found(wanted, principal)
        return Download(view, self.connections.pieces(stream, checking), stream.close)


def _completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a blocking call has suspended")


# --- retries ------------------------------------------------------------------------------------------------


class Tries:
    """When a request is sent again, and the error it is given up with."""

    def __init__(self, request: Request, monotonic: Callable[[], float], fraction: Callable[[], float]) -> None:
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
            raise self.end(trouble)
        return pause

    def end(self, trouble: Trouble) -> TenureError:
        """The error to give up with."""
        error, request_id = trouble.error, self._request.request_id
        if not self._is_unknown and (self._request.is_read or not trouble.is_sent):
            return error
        again = f" with request id {request_id}" if request_id else ""
        return OutcomeUnknown(f"{error.message}; whether it was done is not known", f"send it again{again}")


# --- pages --------------------------------------------------------------------------------------------------


def _parts(query: Query) -> Iterator[Query]:
    """The query, or several that together ask for the same: one URL cannot hold all names."""
    if not isinstance(query, States):
        yield query
        return
    for start in range(0, len(query.tasks), MOST_NAMED):
        yield replace(query, tasks=query.tasks[start : start + MOST_NAMED])


def _first_page(query: Query) -> Query:
    """The newest events of the log come in one reply; other long lists come page by page."""
    if isinstance(query, Tasks) or (isinstance(query, Log) and not query.last):
        return replace(query, limit=min(query.limit, PAGE))
    return query


def _next_page(page: Query, view: Mapping[str, Any], so_far: int, wanted: Query) -> Query | None:
    """The next page, until there are as many rows as wanted, or no more."""
    if not isinstance(page, (Tasks, Log)) or view["next"] is None:
        return None
    assert isinstance(wanted, (Tasks, Log))
    left = wanted.limit - so_far
    if left <= 0 or (isinstance(page, Log) and page.last):
        return None
    after = view["next"]
    if isinstance(page, Tasks):
        value, id = msgspec.json.decode(after)
        return replace(page, after=(value, id), limit=min(left, PAGE))
    return replace(page, after=int(after), limit=min(left, PAGE))


# --- addresses and credentials ------------------------------------------------------------------------------


class Address(NamedTuple):
    host: str
    port: int
    is_secure: bool
    path: str  # before the API's own, without a slash at its end
    url: str  # as it may be printed

    @property
    def is_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def address_of(url: str, key: str | None) -> Address:
    """InvalidInput where it is not a server's URL, or where the key would cross a network unencrypted."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if not parts.hostname or port == -1 or parts.query or parts.fragment:
        raise InvalidInput(f"{url[:200]!r} is not a server's URL", "it looks like https://tenure.example.com")
    if parts.username is not None:
        raise InvalidInput("a server's URL has no user or password in it", "pass the key as `key`, or in TENURE_KEY")
    is_secure = parts.scheme == "https"
    path = parts.path.rstrip("/")
    address = Address(parts.hostname, port or (443 if is_secure else 80), is_secure, path, url.rstrip("/"))
    if key is not None and not is_secure and not address.is_loopback:
        raise InvalidInput(
            f"{url[:200]}: a key is not sent over plain HTTP to another host: anybody on the network could read it",
            "use https://, or a tunnel to this host's loopback",
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InvalidInput("the key has characters that are not printable ASCII", "copy it exactly as it was shown")
    return address


class Credentials:
    """What a client sends to sign in: its key, or the token of the server's start on this machine.

    A restarted server has a new token, so the file is read again when the token is refused.
    """

    def __init__(self, address: Address, key: str | None) -> None:
        self._address = address if key is None and address.is_loopback else None
        self._shown = key or self._token()

    def _token(self) -> str | None:
        return find_token(os.environ, self._address.host, self._address.port) if self._address is not None else None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._shown}"} if self._shown else {}

    def is_renewed(self) -> bool:
        """Whether there is another token now than the refused one; it is sent from now on."""
        token = self._token()
        if token is None or token == self._shown:
            return False
        self._shown = token
        return True
