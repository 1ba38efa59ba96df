"""The way to a store: the engine in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenure.client.ways.places import Places
from tenure.core.commands import ClaimNext, Command, Principal, PutArtifact
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.engine import Engine, Random
from tenure.stores.open_store import open_store
from tenure.stores.port import Clock

if TYPE_CHECKING:
    from tenure.client.contents import Got, Putting, Wanted
    from tenure.core.queries import Query
    from tenure.engine.runtime.batcher import Batcher

GLANCE = 0.2  # seconds between looks whether the waiter still wants to know


class Local:
    def __init__(
        self,
        url: str,
        *,
        chance: Random,
        create: bool,
        gather: bool,
        clock: Clock | None,
        monotonic: Callable[[], float],
        pause: Callable[[float], None],
        artifacts: str | None = None,
    ) -> None:
        """With `gather` the commands of several threads share transactions."""
        self.store = open_store(url, clock=clock, create=create)
        self.url = self.store.url
        self.engine = Engine(self.store, chance, pause=pause)
        self.places = self.engine.places = Places(artifacts, url, self.engine.tenant)
        self._monotonic = monotonic
        self.gatherer: Batcher | None = None
        if gather:
            from tenure.engine.runtime.batcher import Batcher

            self.gatherer = Batcher(self.engine)

    def do(self, command: Command, principal: Principal) -> Outcome:
        return (self.gatherer or self.engine).do(command, principal)

    def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return self.engine.run(batch, principal)

    def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return self.engine.preview(batch, principal)

    def stay(
        self, command: ClaimNext, seconds: float, principal: Principal, is_wanted: Callable[[], bool] | None = None
    ) -> Outcome:
        from tenure.engine.runtime.work_wait import claim_next_or_wait

        return claim_next_or_wait(
            self.engine, command, seconds, self._monotonic, principal, is_wanted=is_wanted, do=self.do
        )

    def look(self, query: Query, principal: Principal) -> Any:
        from tenure.engine.reads.query_table import look  # a claim needs none of it

        return look(self.engine, query, principal)

    def put(self, asked: Putting, principal: Principal) -> Outcome:
        from tenure.artifacts.port import put
        from tenure.engine.artifacts import artifact_verbs

        project, source = asked.project, asked.source
        ready = artifact_verbs.ready(self.engine, project, asked.receipt, asked.name, principal)
        if isinstance(ready, Outcome):
            return ready
        kept = put(self.places(project), source.pieces(), largest=ready.largest, expected=source.digest)
        outcome = self.do(
            PutArtifact(
                project=project, receipt=asked.receipt, name=asked.name, type=asked.type, digest=kept.digest,
                size=kept.size, since=ready.since,
            ),
            principal,
        )  # fmt: skip
        if not outcome.ok:
            artifact_verbs.left(self.engine, project, kept.digest, kept.size)
        return outcome

    def get(self, asked: Wanted, principal: Principal) -> Got:
        from tenure.client.contents import Got
        from tenure.engine.artifacts.artifact_verbs import found

        view: Any = found(self.engine, asked.project, asked.task, asked.name, asked.generation, principal)
        return Got(view, self.places(asked.project).read(view["digest"], start=asked.start, end=asked.end))

    def mark(self, project: str, principal: Principal) -> int:
        return self.store.mark()

    def wait(
        self,
        mark: int,
        seconds: float,
        project: str,
        principal: Principal,
        is_wanted: Callable[[], bool] | None = None,
    ) -> bool:
        if is_wanted is None:
            return self.store.wait(mark, seconds)
        until = self._monotonic() + seconds
        while is_wanted() and (left := until - self._monotonic()) > 0:
            if self.store.wait(mark, min(GLANCE, left)):
                return True
        return False

    def now(self, project: str, principal: Principal) -> int:
        with self.engine.reading() as work:
            return work.now

    def close(self) -> None:
        """Let go of the store, once what other threads have sent is done."""
        if self.gatherer is not None:
            self.gatherer.close()
        self.places.close()
        self.store.close()
