"""`Client`: the verbs and queries on a local store or a server; each call blocks until its answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tenure.client.caller import JSON, LARGE, R, StoreOnly, SystemRandom, T, find_store, is_server, referring
from tenure.client.results import Stored
from tenure.client.times import with_plain_times
from tenure.client.verbs import Verbs
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, DefineProject, Principal, Submit
from tenure.core.errors import NotFound
from tenure.core.outcomes import Outcome
from tenure.core.task_defaults import SHIPPED, TaskDefaults

if TYPE_CHECKING:
    from tenure.client.contents import Content, Download
    from tenure.client.handles import Handle
    from tenure.client.new_epoch import NewEpoch
    from tenure.client.transports.local import LocalTransport
    from tenure.client.transports.port import Transport
    from tenure.core.errors import TenureError
    from tenure.engine import Engine, Random
    from tenure.engine.archive.mover import Moved
    from tenure.engine.runtime.batcher import Batcher, TenantBatcher
    from tenure.engine.runtime.clock_repair import Accepted, ClockState
    from tenure.engine.runtime.context import UserTables
    from tenure.stores.port import Clock, Store

__all__ = ["Client"]


class Client(Verbs):
    """One project, and who uses it: claims are made in the name of `agent` and `session`.

    `url` is a store (a path, `sqlite://`, `postgresql://` …) or a server (`http://`, `https://`); without it, the store
    that the command line would find in the working folder, with its project. `key` (default: TENURE_KEY) signs in to
    a server and decides the role there; `role` can only lower it. `tenant` names one of several: of a store (default:
    `local`), or of a server (default: the key's own).
    `homes` (default: TENURE_HOMES): region → URL of the servers to which a request may be sent again, with the key,
    where the tenant's home is in that region; without them it raises NotHome.

    Thread-safe. With `gather=True` commands that several threads send at once share transactions of a local store,
    which pays off from a handful of threads on; beyond 10,000 waiting commands it raises Overloaded. From asyncio use
    AsyncClient.

    With `create=True` a missing store and a missing project are created. Otherwise a missing store raises NoStore, and
    calls in a missing project raise NotFound. A store in memory (`memory://`) is created when it is first opened.

    `artifacts` is where their bytes are stored: a folder or `s3://bucket/prefix` (default: TENURE_ARTIFACTS, else a
    folder beside an embedded store). A server has its own. `allow_http`: webhooks of a local store may have URLs
    without TLS; `networks`: private networks that they may be sent to.
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
        gather: bool = False,
        artifacts: str | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        tables: UserTables | None = None,
        task_defaults: TaskDefaults = SHIPPED,
        leader_lease: float = limits.AGENT_LEADER_LEASE / 1e6,
        allow_http: bool = False,
        networks: Sequence[str] = (),
    ) -> None:
        if url is None:
            found = find_store(tenant, project, key, artifacts)
            url, tenant, project, key = found.url, found.tenant, found.project, found.key
            artifacts, task_defaults, leader_lease = found.artifacts, found.task_defaults, found.leader_lease
            homes = found.homes if homes is None else homes
        url = os.fspath(url)
        self._identify(project, agent, session, role, user)
        random = random or SystemRandom()
        self._sleep, self._monotonic = pause, monotonic
        self.transport: Transport
        if is_server(url):
            from tenure.client.transports.http import HttpTransport

            self.transport = HttpTransport(
                url, key=key, tenant=tenant, homes=homes, random=random, monotonic=monotonic, pause=pause
            )
        else:
            from tenure.client.transports.local import LocalTransport

            how: dict[str, Any] = {
                "clock": clock,
                "monotonic": monotonic,
                "pause": pause,
                "artifacts": artifacts,
                "tables": tables,
                "task_defaults": task_defaults,
                "leader_lease": leader_lease,
                "allow_http": allow_http,
                "networks": networks,
                "tenant": tenant,
            }
            self.transport = LocalTransport(url, random=random, create=create, gather=gather, **how)
        if create:
            self._create_project()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the store or server, after the commands that other threads have sent."""
        self.transport.close()

    def _create_project(self) -> None:
        try:
            self.tracks()
        except NotFound:
            self.transport.do(DefineProject(project=self.project), Principal(user=self.user))

    # --- commands and queries ---

    def _as(self, result: type[R], answer: Outcome) -> R:
        return result.of(answer)

    def _steps(self, steps: Coroutine[Any, Any, T]) -> T:
        try:
            steps.send(None)  # it never suspends
        except StopIteration as end:
            result: T = end.value
            return result
        raise AssertionError("a blocking call has suspended")

    async def _each(self, answer: T) -> T:
        return answer

    async def _pause(self, seconds: float) -> None:
        self._sleep(seconds)

    def _submit_large(self, command: Submit, encoded: bytes) -> Outcome:
        put = self.put_artifact(command.receipt, LARGE, encoded, type=JSON)
        return self.do(referring(command, put)) if put.ok else put

    def claim_or_wait(
        self, command: ClaimNext, seconds: float, *, is_wanted: Callable[[], bool] | None = None
    ) -> Outcome:
        """As `do`, but waits for a claimable task, up to `seconds` or until `is_wanted` returns False."""
        return self.transport.claim_or_wait(with_plain_times(command), seconds, self.principal, is_wanted)

    def batch(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """Run many commands in one transaction; one outcome or error each. Results are signed as by `submit`."""
        if self.signing_key is not None:
            return self._steps(self._signed_batch(batch, self.signing_key, self.transport.run))
        return self.transport.run(batch, self.principal)

    def preview(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """Return what `batch` would return now; write nothing."""
        if self.signing_key is not None:
            return self._steps(self._signed_batch(batch, self.signing_key, self.transport.preview))
        return self.transport.preview(batch, self.principal)

    def handle(self, task: str) -> Handle[Any]:
        """A handle of the task, to wait for its end or its result."""
        from tenure.client.handles import Handle

        return Handle(self, task)

    # --- artifacts ---

    def put_artifact(
        self, receipt: str, name: str, content: Content, *, type: str | None = None, word: str | None = None
    ) -> Stored:
        """Store a named output of the claim: bytes, a Path, or a file opened for bytes. Sent in pieces.

        `word`: of a runner, which alone may put the transcript.
        """
        from tenure.client.contents import Source, Upload, type_of

        with Source(content) as source:
            upload = Upload(self.project, receipt, name, type or type_of(name), source, word)
            return Stored.of(self.transport.put(upload, self.principal))

    def get_artifact(
        self, task: str, name: str, *, generation: int | None = None, start: int = 0, end: int | None = None
    ) -> Download:
        """An artifact in pieces: the last of that name, or of a generation; all of it, or from `start` to `end`."""
        from tenure.client.contents import Wanted

        return self.transport.get(Wanted(self.project, task, name, generation, start, end), self.principal)

    # --- news ---

    def mark(self) -> int:
        """The last event's sequence, for `wait_for_news`. Take it before a query, so that no later event is missed."""
        return self.transport.mark(self.project, self.principal)

    def wait_for_news(
        self,
        mark: int,
        seconds: float,
        *,
        tasks: Collection[str] = (),
        is_wanted: Callable[[], bool] | None = None,
    ) -> bool:
        """True as soon as there are events after `mark`, False after `seconds` or once `is_wanted` returns False.

        With `tasks`, ids, a server reports only events of these; a store on this machine reports all.
        """
        return self.transport.wait(mark, seconds, self.project, self.principal, is_wanted, tasks)

    def now(self) -> int:
        """The store's time, in microseconds."""
        return self.transport.now(self.project, self.principal)

    # --- only on a store ---

    def _local(self, what: str, instead: str = "do it on the server's host, with its store's URL") -> LocalTransport:
        if self.is_remote:
            raise StoreOnly(f"{what} works only on a store; {self.transport.url} is a server", instead)
        local: Any = self.transport
        return local  # type: ignore[no-any-return]

    @property
    def is_remote(self) -> bool:
        """Whether this is a server, not a store."""
        return is_server(self.transport.url)

    @property
    def store(self) -> Store:
        return self._local("store").store

    @property
    def engine(self) -> Engine:
        return self._local("this").engine

    @property
    def batcher(self) -> Batcher | TenantBatcher | None:
        return self._local("batcher").batcher

    def sweep(self) -> int:
        """Settle due rows now, so that their events come promptly; return the number of rows."""
        return self._local("sweep", "a server settles due rows by itself").engine.sweep(self.project).settled

    def verify(self) -> list[str]:
        """List the violated invariants of the store; empty when every invariant holds."""
        local = self._local("verify")
        from tenure.engine.verify.artifact_rows import lost

        return [*local.store.check(), *local.engine.verify(), *lost(local.engine)]

    def backup(self, target: str) -> None:
        """Write a consistent copy of the store while it is in use."""
        self._local("backup").store.backup(target)

    def archive_finished(self, *, older: float | None = None) -> Moved:
        """Move finished tasks that nothing open can reach into the archive, those `older` than so many seconds.

        Without a leader, triggers read the rest of the log first; tasks whose events a reader has not passed stay.
        """
        engine = self._local("archive").engine
        from tenure.engine.archive.mover import move_all
        from tenure.engine.audit.sealer import seal_all
        from tenure.engine.duties.election import hear_alone

        hear_alone(engine, self.project, f"archive-{self.session}")
        seal_all(engine, self.project)
        return move_all(engine, self.project, older=None if older is None else round(older * 1e6))

    def could_archive(self, *, older: float | None = None) -> Moved:
        """Count what `archive_finished` would move and what readers of the log hold back; write nothing."""
        engine = self._local("archive").engine
        from tenure.engine.archive.mover import could_move

        return could_move(engine, self.project, older=None if older is None else round(older * 1e6))

    def clock(self) -> ClockState:
        """Compare the clock with the store's time; write nothing."""
        from tenure.engine.runtime.clock_repair import clock_state

        return clock_state(self._local("clock").engine)

    def accept_clock(self) -> Accepted:
        """Accept the host's clock as correct, and correct the rows that were written while it was ahead."""
        return self._local("accept_clock").engine.accept_clock()

    def new_epoch(self, why: str, *, alone: bool = False) -> NewEpoch:
        """End every live claim and make all receipts so far void, in every tenant of the store.

        `alone`: in the client's own tenant. The answer names the tenants, and those whose own store it does not cover.
        """
        engine = self._local("new_epoch").engine
        from tenure.client.new_epoch import begin

        return begin(engine, why, alone=alone, monotonic=self._monotonic)
