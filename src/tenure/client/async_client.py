"""`AsyncClient`: the same verbs and looks, awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tenure.client.chance import SystemChance
from tenure.client.contents import AsyncGot, Given, Putting, Source, Wanted, type_of
from tenure.client.large import JSON, NAME, referring, too_large
from tenure.client.verbs import Verbs
from tenure.client.ways.way import AsyncWay, is_server
from tenure.core.commands import ClaimNext, Command, Principal, Submit
from tenure.core.outcomes import Outcome

if TYPE_CHECKING:
    from tenure.core.errors import TenureError
    from tenure.core.queries import Query
    from tenure.engine import Random
    from tenure.stores.port import Clock

__all__ = ["AsyncClient"]


class AsyncClient(
    Verbs[Awaitable[Outcome], Awaitable[dict[str, Any]], Awaitable[list[dict[str, Any]]], Awaitable[list[str]]]
):
    """As Client, for asyncio: each method gives what is to be awaited.

    One serves a whole event loop: commands that are in flight at once share transactions of a local store, or the
    connections to a server. Cancelled, a command that was not begun is taken back; one that was is done, and only its
    outcome is let go of: a claim that nobody waits for any more is held until its lease is over.
    """

    def __init__(
        self,
        url: str | None = None,
        project: str | None = None,
        *,
        key: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        role: str = "owner",
        user: str | None = None,
        create: bool = True,
        artifacts: str | None = None,
        clock: Clock | None = None,
        chance: Random | None = None,
    ) -> None:
        if url is None:
            from tenure.client.finding import find

            url, project, key, artifacts = find(project, key, artifacts)
        self.project = project or "default"
        self.agent = agent or "me"
        # identity is per process, never per host or name
        self.session = session or f"{self.agent}-{os.getpid()}"
        self.user = user
        self.principal = Principal(role=role, user=user, agent=agent, session=session)
        self.way: AsyncWay
        if is_server(url):
            from tenure.client.ways.remote_async import RemoteAsync

            self.way = RemoteAsync(url, key=key, chance=chance or SystemChance())
        else:
            from tenure.client.ways.local_async import LocalAsync

            self.way = LocalAsync(url, chance=chance or SystemChance(), create=create, clock=clock, artifacts=artifacts)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the store or server, once what was sent is done."""
        await self.way.close()

    # --- asking ---

    def do(self, command: Command) -> Awaitable[Outcome]:
        """Run any command. A result that is too large to stand in a row is put as an artifact first."""
        if isinstance(command, Submit) and (large := too_large(command.data)) is not None:
            return self._submit_large(command, large)
        return self.way.do(command, self.principal)

    async def _submit_large(self, command: Submit, encoded: bytes) -> Outcome:
        put = await self.put_artifact(command.receipt, NAME, encoded, type=JSON)
        return await self.way.do(referring(command, put), self.principal) if put.ok else put

    def stay(self, command: ClaimNext, seconds: float) -> Awaitable[Outcome]:
        """As `do`, but stays until there is something to take or the time is over."""
        return self.way.stay(command, seconds, self.principal)

    async def batch(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """Many commands in one transaction, one outcome or error each."""
        return await self.way.run(batch, self.principal)

    async def preview(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """What `batch` would answer now; nothing is written."""
        return await self.way.preview(batch, self.principal)

    def look(self, query: Query) -> Any:
        """What any query asks for, to be awaited."""
        return self.way.look(query, self.principal)

    # --- artifacts ---

    async def put_artifact(self, receipt: str, name: str, content: Given, *, type: str | None = None) -> Outcome:
        """Keep a named output of the claim: bytes, a Path, or a file opened for bytes. Sent in pieces."""
        source = await asyncio.to_thread(Source, content)
        try:
            asked = Putting(self.project, receipt, name, type or type_of(name), source)
            return await self.way.put(asked, self.principal)
        finally:
            source.close()

    async def get_artifact(
        self, task: str, name: str, *, generation: int | None = None, start: int = 0, end: int | None = None
    ) -> AsyncGot:
        """An artifact in pieces: the last of that name, or of a generation; all of it, or from `start` to `end`."""
        return await self.way.get(Wanted(self.project, task, name, generation, start, end), self.principal)

    # --- news ---

    async def mark(self) -> int:
        """Where the log ends now, for `wait_for_news`. Take it before a look: what comes after it is then news."""
        return await self.way.mark(self.project, self.principal)

    async def wait_for_news(self, mark: int, seconds: float) -> bool:
        """True as soon as the log goes beyond `mark`, False when the time is over."""
        return await self.way.wait(mark, seconds, self.project, self.principal)

    async def now(self) -> int:
        """The store's time, in microseconds."""
        return await self.way.now(self.project, self.principal)
