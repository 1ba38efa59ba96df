"""The way to a server: each command and look is a request."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenure.client.ways import asking, hearing
from tenure.client.ways.address import address_of, is_here
from tenure.client.ways.asking import Request, named
from tenure.client.ways.connections import Connections, Failed, Unwanted
from tenure.client.ways.hearing import Reply
from tenure.client.ways.local_token import Authority
from tenure.client.ways.paging import first_page, next_page, pieces
from tenure.client.ways.trying import Tries
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query, Status

if TYPE_CHECKING:
    from tenure.client.contents import Got, Putting, Wanted
    from tenure.engine import Random

UNKNOWN = 401
LONGEST_PIECE = limits.POLL_PIECE


class Remote:
    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        chance: Random,
        monotonic: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        key = key or os.environ.get("TENURE_KEY") or None
        address = address_of(url, key)
        self.url = address.url
        self._authority = Authority(address.host, address.port, key, is_here=is_here(address.host))
        self._connections = Connections(address)
        self._chance, self._monotonic, self._pause = chance, monotonic, pause

    def do(self, command: Command, principal: Principal) -> Outcome:
        request = asking.of_command(named(command, self._chance), principal)
        return hearing.outcome_of(self._send(request), self.url)

    def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return self._run([named(command, self._chance) for command in batch], principal, is_preview=False)

    def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return self._run(batch, principal, is_preview=True)

    def _run(self, batch: Sequence[Command], principal: Principal, *, is_preview: bool) -> list[Outcome | TenureError]:
        if not batch:
            return []
        request = asking.of_batch(batch, principal, is_preview=is_preview)
        return hearing.answers_of(self._send(request), self.url)

    def stay(
        self, command: ClaimNext, seconds: float, principal: Principal, is_wanted: Callable[[], bool] | None = None
    ) -> Outcome:
        command = named(
            command, self._chance
        )  # one id for all pieces: a claim whose answer was lost comes with the next
        until = self._monotonic() + seconds
        while True:
            left = max(0.0, until - self._monotonic())
            piece = min(left, LONGEST_PIECE)
            try:
                reply = self._send(asking.of_command(command, principal, piece), piece, is_wanted)
            except Unwanted:
                return Outcome(outcome="NO_TASK", message="nobody waits for it any more")
            outcome = hearing.outcome_of(reply, self.url)
            if outcome.outcome != "NO_TASK" or left <= piece:
                return outcome

    def look(self, query: Query, principal: Principal) -> Any:
        found: list[Any] = []
        for piece in pieces(query):
            asked: Query | None = first_page(piece)
            while asked is not None:
                seen = hearing.seen_of(self._send(asking.of_query(asked, principal)), self.url)
                if not isinstance(seen, dict) or "items" not in seen:
                    return seen
                found += seen["items"]
                asked = next_page(asked, seen, len(found), piece)
        return found

    # --- artifacts ---

    def put(self, asked: Putting, principal: Principal) -> Outcome:
        from tenure.client.ways import streaming

        request = streaming.of_put(asked, principal)
        return hearing.outcome_of(
            self._try(request, lambda: streaming.upload(self._connections, request, asked)), self.url
        )

    def get(self, asked: Wanted, principal: Principal) -> Got:
        from tenure.client.contents import Got
        from tenure.client.ways import streaming

        request = streaming.of_get(asked, principal)
        got = streaming.Download(self._connections, request)
        reply = self._try(request, got.begin)
        if reply.status not in streaming.FOUND:
            hearing.seen_of(reply, self.url)  # raises what it tells of
        view = streaming.view_in(got.about)
        return Got(view, got.pieces(streaming.checking(view, asked)), got.close)

    # --- news ---

    def mark(self, project: str, principal: Principal) -> int:
        return hearing.mark_of(self._send(asking.of_news(project, 0, 0, principal)), self.url)

    def wait(
        self,
        mark: int,
        seconds: float,
        project: str,
        principal: Principal,
        is_wanted: Callable[[], bool] | None = None,
    ) -> bool:
        until = self._monotonic() + seconds
        while True:
            left = max(0.0, until - self._monotonic())
            piece = min(left, LONGEST_PIECE)
            try:
                reply = self._send(asking.of_news(project, mark, piece, principal), piece, is_wanted)
            except Unwanted:
                return False
            is_news = hearing.mark_of(reply, self.url) > mark
            if is_news or left <= piece:
                return is_news

    def now(self, project: str, principal: Principal) -> int:
        return int(self.look(Status(project=project), principal)["now"])

    def close(self) -> None:
        self._connections.close()

    # --- sending ---

    def _send(self, request: Request, wait: float = 0.0, is_wanted: Callable[[], bool] | None = None) -> Reply:
        return self._try(request, lambda: self._connections.exchange(request, wait, is_wanted), is_wanted)

    def _try(
        self, request: Request, exchange: Callable[[], Reply], is_wanted: Callable[[], bool] | None = None
    ) -> Reply:
        tries = Tries(request, self._monotonic, self._chance.fraction)
        while True:
            request.headers.update(self._authority.headers)
            try:
                reply = exchange()
                if reply.status == UNKNOWN and self._authority.is_renewed():
                    continue
                trouble = hearing.trouble_in(reply, self.url)
                if trouble is None:
                    return reply
            except Failed as failed:
                trouble = failed.trouble
                if not failed.may_pass:
                    raise tries.end(trouble) from failed
                if failed.is_stale:
                    continue
            self._pause(tries.pause_after(trouble))
            if is_wanted is not None and not is_wanted():
                raise Unwanted
