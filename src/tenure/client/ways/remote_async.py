"""The way to a server for asyncio: the same requests as `remote.py`, over httpx2."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenure.artifacts.port import Checking
from tenure.client.contents import PIECE, AsyncGot, Putting, Wanted, in_threads
from tenure.client.ways import asking, hearing, streaming
from tenure.client.ways.address import address_of, is_here
from tenure.client.ways.asking import Request, named
from tenure.client.ways.connections import TO_ANSWER, TO_CONNECT, may_pass, seconds
from tenure.client.ways.hearing import Reply, Trouble
from tenure.client.ways.local_token import Authority
from tenure.client.ways.paging import first_page, next_page, pieces
from tenure.client.ways.remote import LONGEST_PIECE, UNKNOWN
from tenure.client.ways.trying import Tries
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import InvalidInput, StoreUnavailable, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query, Status

if TYPE_CHECKING:
    from tenure.engine import Random

try:
    import httpx2
except ImportError as error:
    raise InvalidInput(
        f"AsyncClient speaks to a server with httpx2, which is not installed ({error})", "Install httpx2."
    ) from None

MOST_CONNECTIONS = limits.ASYNC_CONNECTIONS
# Nothing was sent yet; after any other failure something may have happened.
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class RemoteAsync:
    def __init__(self, url: str, *, key: str | None, chance: Random) -> None:
        key = key or os.environ.get("TENURE_KEY") or None
        address = address_of(url, key)
        self.url = address.url
        self._chance = chance
        self._authority = Authority(address.host, address.port, key, is_here=is_here(address.host))
        self._http = httpx2.AsyncClient(
            verify=ssl.create_default_context() if address.is_secure else False,
            limits=httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS),
            trust_env=False,  # as Client: a proxy in the environment is for the web, not for the team's own server
        )

    async def do(self, command: Command, principal: Principal) -> Outcome:
        request = asking.of_command(named(command, self._chance), principal)
        return hearing.outcome_of(await self._send(request), self.url)

    async def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await self._run([named(command, self._chance) for command in batch], principal, is_preview=False)

    async def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await self._run(batch, principal, is_preview=True)

    async def _run(
        self, batch: Sequence[Command], principal: Principal, *, is_preview: bool
    ) -> list[Outcome | TenureError]:
        if not batch:
            return []
        request = asking.of_batch(batch, principal, is_preview=is_preview)
        return hearing.answers_of(await self._send(request), self.url)

    async def stay(self, command: ClaimNext, seconds: float, principal: Principal) -> Outcome:
        command = named(command, self._chance)
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            piece = min(left, LONGEST_PIECE)
            reply = await self._send(asking.of_command(command, principal, piece), piece)
            outcome = hearing.outcome_of(reply, self.url)
            if outcome.outcome != "NO_TASK" or left <= piece:
                return outcome

    async def look(self, query: Query, principal: Principal) -> Any:
        found: list[Any] = []
        for piece in pieces(query):
            asked: Query | None = first_page(piece)
            while asked is not None:
                seen = hearing.seen_of(await self._send(asking.of_query(asked, principal)), self.url)
                if not isinstance(seen, dict) or "items" not in seen:
                    return seen
                found += seen["items"]
                asked = next_page(asked, seen, len(found), piece)
        return found

    # --- artifacts ---

    async def put(self, asked: Putting, principal: Principal) -> Outcome:
        request = streaming.of_put(asked, principal)
        reply = await self._send(request, content=lambda: in_threads(asked.source.pieces()))
        return hearing.outcome_of(reply, self.url)

    async def get(self, asked: Wanted, principal: Principal) -> AsyncGot:
        responses: list[httpx2.Response] = []
        reply = await self._send(streaming.of_get(asked, principal), streams=responses)
        if reply.status not in streaming.FOUND:
            hearing.seen_of(reply, self.url)  # raises what it tells of
        response = responses[-1]
        view = streaming.view_in(response.headers.get("Tenure-Artifact"))
        return AsyncGot(view, self._pieces(response, streaming.checking(view, asked)))

    async def _pieces(self, response: httpx2.Response, checking: Checking) -> AsyncIterator[bytes]:
        """As they come, the last only once all is right."""
        try:
            async for piece in response.aiter_raw(PIECE):
                if before := checking.take(piece):
                    yield before
            if last := checking.finish():
                yield last
        except httpx2.TransportError as error:
            raise StoreUnavailable(self._failed(error).error.message, "get it again") from error
        finally:
            await response.aclose()

    # --- news ---

    async def mark(self, project: str, principal: Principal) -> int:
        return hearing.mark_of(await self._send(asking.of_news(project, 0, 0, principal)), self.url)

    async def wait(self, mark: int, seconds: float, project: str, principal: Principal) -> bool:
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            piece = min(left, LONGEST_PIECE)
            reply = await self._send(asking.of_news(project, mark, piece, principal), piece)
            is_news = hearing.mark_of(reply, self.url) > mark
            if is_news or left <= piece:
                return is_news

    async def now(self, project: str, principal: Principal) -> int:
        return int((await self.look(Status(project=project), principal))["now"])

    async def close(self) -> None:
        await self._http.aclose()

    # --- sending ---

    async def _send(
        self,
        request: Request,
        wait: float = 0.0,
        *,
        content: Callable[[], AsyncIterator[bytes]] | None = None,
        streams: list[httpx2.Response] | None = None,
    ) -> Reply:
        """`content` makes the body anew for each try; an answer that is found is added to `streams`, unread."""
        tries = Tries(request, time.monotonic, self._chance.fraction)
        timeout = httpx2.Timeout(wait + TO_ANSWER, connect=TO_CONNECT)
        while True:
            asked = self._http.build_request(
                request.method, self.url + request.path, headers=request.headers | self._authority.headers,
                timeout=timeout,
                content=content() if content is not None else request.body or None,
            )  # fmt: skip
            try:
                response = await self._http.send(asked, stream=True)
                if streams is None or response.status_code not in streaming.FOUND:
                    await response.aread()
            except httpx2.TransportError as error:
                trouble = self._failed(error)
                cause = error.__cause__.__cause__ if error.__cause__ is not None else None
                if isinstance(cause, OSError) and not may_pass(cause):
                    raise tries.end(trouble) from error
            else:
                if streams is not None and not response.is_stream_consumed:
                    streams.append(response)
                    return _reply(response, b"")
                reply = _reply(response, response.content)
                if reply.status == UNKNOWN and self._authority.is_renewed():
                    continue
                found = hearing.trouble_in(reply, self.url)
                if found is None:
                    return reply
                trouble = found
            await asyncio.sleep(tries.pause_after(trouble))

    def _failed(self, error: httpx2.TransportError) -> Trouble:
        why = str(error) or type(error).__name__
        if isinstance(error, _UNSENT):
            return Trouble(
                StoreUnavailable(f"{self.url} cannot be reached: {why}", "look whether the server runs"), False
            )
        return Trouble(StoreUnavailable(f"{self.url}: the connection was lost: {why}"), True)


def _reply(response: httpx2.Response, body: bytes) -> Reply:
    headers = response.headers
    return Reply(
        response.status_code, body, headers.get("Content-Type", ""), seconds(headers.get("Retry-After")),
        headers.get("Location", ""),
    )  # fmt: skip
