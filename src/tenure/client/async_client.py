"""`AsyncClient`: the same verbs and queries, awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Collection, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tenure.client.async_verbs import AsyncVerbs
from tenure.client.caller import JSON, LARGE, R, SystemRandom, T, find_store, is_server, referring
from tenure.client.contents import AsyncDownload, Content, Source, Upload, Wanted, type_of
from tenure.client.results import Stored
from tenure.client.transports.asynchronous import AsyncHttpTransport, AsyncLocalTransport
from tenure.core import limits
from tenure.core.commands import Command, DefineProject, Principal, Submit
from tenure.core.errors import NotFound
from tenure.core.outcomes import Outcome
from tenure.core.task_defaults import SHIPPED

if TYPE_CHECKING:
    from tenure.core.errors import TenureError
    from tenure.engine import Random
    from tenure.stores.port import Clock

__all__ = ["AsyncClient"]


class AsyncClient(AsyncVerbs):
    """As Client, for asyncio: each method is awaited. `async with` creates the project that `create=True` asks for.

    One client serves a whole event loop: commands in flight at once share transactions of a local store, or the
    connections to a server. A cancelled command that was not begun is withdrawn; one that was begun is finished and its
    outcome dropped: a claim that was cancelled meanwhile lasts until its lease ends.
    """

    def __init__(
        self,
        url: str | os.PathLike[str] | None = None,
        project: str | None = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
        homes: Mapping[str, str] | None = None,
        agent: str | None = None,
        session: str | None = None,
        role: str = "owner",
        user: str | None = None,
        create: bool = False,
        artifacts: str | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        task_defaults, leader_lease = SHIPPED, limits.AGENT_LEADER_LEASE / 1e6
        if url is None:
            found = find_store(tenant, project, key, artifacts)
            url, tenant, project, key = found.url, found.tenant, found.project, found.key
            artifacts, task_defaults, leader_lease = found.artifacts, found.task_defaults, found.leader_lease
            homes = found.homes if homes is None else homes
        url = os.fspath(url)
        self._identify(project, agent, session, role, user)
        random = random or SystemRandom()
        self.transport: AsyncLocalTransport | AsyncHttpTransport
        if is_server(url):
            self.transport = AsyncHttpTransport(url, key=key, tenant=tenant, homes=homes, random=random)
        else:
            self.transport = AsyncLocalTransport(
                url, random=random, create=create, clock=clock, artifacts=artifacts,
                task_defaults=task_defaults, leader_lease=leader_lease, tenant=tenant,
            )  # fmt: skip
        self._creates_project = create

    async def __aenter__(self) -> AsyncClient:
        if self._creates_project:
            try:
                await self.tracks()
            except NotFound:
                await self.transport.do(DefineProject(project=self.project), Principal(user=self.user))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection to the store or server, after the commands that were sent."""
        await self.transport.close()

    # --- commands and queries ---

    async def _as(self, result: type[R], answer: Awaitable[Outcome]) -> R:
        return result.of(await answer)

    def _steps(self, steps: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return steps

    async def _each(self, answer: Awaitable[T]) -> T:
        return await answer

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _submit_large(self, command: Submit, encoded: bytes) -> Outcome:
        put = await self.put_artifact(command.receipt, LARGE, encoded, type=JSON)
        return await self.do(referring(command, put)) if put.ok else put

    async def batch(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """Run many commands in one transaction; one outcome or error each. Results are signed as by `submit`."""
        if self.signing_key is not None:
            return await self._signed_batch(batch, self.signing_key, self.transport.run)
        return await self.transport.run(batch, self.principal)

    async def preview(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """Return what `batch` would return now; write nothing."""
        if self.signing_key is not None:
            return await self._signed_batch(batch, self.signing_key, self.transport.preview)
        return await self.transport.preview(batch, self.principal)

    # --- artifacts ---

    async def put_artifact(
        self, receipt: str, name: str, content: Content, *, type: str | None = None, word: str | None = None
    ) -> Stored:
        """Store a named output of the claim: bytes, a Path, or a file opened for bytes. Sent in pieces.

        `word`: of a runner, which alone may put the transcript.
        """
        source = await asyncio.to_thread(Source, content)
        try:
            upload = Upload(self.project, receipt, name, type or type_of(name), source, word)
            return Stored.of(await self.transport.put(upload, self.principal))
        finally:
            source.close()

    async def get_artifact(
        self, task: str, name: str, *, generation: int | None = None, start: int = 0, end: int | None = None
    ) -> AsyncDownload:
        """An artifact in pieces: the last of that name, or of a generation; all of it, or from `start` to `end`."""
        return await self.transport.get(Wanted(self.project, task, name, generation, start, end), self.principal)

    # --- news ---

    async def mark(self) -> int:
        """The last event's sequence, for `wait_for_news`. Take it before a query, so that no later event is missed."""
        return await self.transport.mark(self.project, self.principal)

    async def wait_for_news(self, mark: int, seconds: float, *, tasks: Collection[str] = ()) -> bool:
        """True as soon as there are events after `mark`, False after `seconds`.

        With `tasks`, ids, a server reports only events of these; a store on this machine reports all.
        """
        return await self.transport.wait(mark, seconds, self.project, self.principal, tasks=tasks)

    async def now(self) -> int:
        """The store's time, in microseconds."""
        return await self.transport.now(self.project, self.principal)
