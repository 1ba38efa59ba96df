"""`Client`: the verbs and looks on a local store or a server, each call until its answer is there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tenure.client.large import too_large
from tenure.client.verbs import Verbs
from tenure.client.ways.way import StoreOnly, Way, is_server
from tenure.core.commands import ClaimNext, Command, Principal, Submit
from tenure.core.outcomes import Outcome

if TYPE_CHECKING:
    from tenure.client.contents import Given, Got
    from tenure.client.ways.local import Local
    from tenure.core.errors import TenureError
    from tenure.core.queries import Query
    from tenure.engine import Engine, Random
    from tenure.engine.archive.mover import Moved
    from tenure.engine.runtime.batcher import Batcher
    from tenure.engine.runtime.clock_repair import Accepted, ClockState
    from tenure.stores.port import Clock, Store

__all__ = ["Client"]


class Client(Verbs[Outcome, dict[str, Any], list[dict[str, Any]], list[str]]):
    """One project, and who speaks: `agent` and `session` are what claims are put down to.

    `url` is a store (a path, `sqlite://`, `postgresql://` …) or a server (`http://`, `https://`); without it, the store
    that the command line would find in the working folder, with its project. A server is shown `key`, else what
    TENURE_KEY says; it knows the role by that, and `role` can only lower it.

    Safe to share between threads. With `gather=True` commands that several threads send at once share transactions of
    a local store, which is worth it from a handful of threads on; more than 10,000 waiting ones are refused as
    Overloaded. From asyncio use AsyncClient.

    `artifacts` is where their bytes lie: a folder or `s3://bucket/prefix`, else what TENURE_ARTIFACTS says, else a
    folder beside an embedded store. A server has its own.
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
        gather: bool = False,
        artifacts: str | None = None,
        clock: Clock | None = None,
        chance: Random | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
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
        if chance is None:
            from tenure.client.chance import SystemChance

            chance = SystemChance()
        self.way: Way
        if is_server(url):
            from tenure.client.ways.remote import Remote

            self.way = Remote(url, key=key, chance=chance, monotonic=monotonic, pause=pause)
        else:
            from tenure.client.ways.local import Local

            self.way = Local(
                url, chance=chance, create=create, gather=gather, clock=clock, monotonic=monotonic, pause=pause,
                artifacts=artifacts,
            )  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store or server, once what other threads have sent is done."""
        self.way.close()

    # --- asking ---

    def do(self, command: Command) -> Outcome:
        """Run any command. A result that is too large to stand in a row is put as an artifact first."""
        if isinstance(command, Submit) and (large := too_large(command.data)) is not None:
            return self._submit_large(command, large)
        return self.way.do(command, self.principal)

    def _submit_large(self, command: Submit, encoded: bytes) -> Outcome:
        from tenure.client.large import JSON, NAME, referring

        put = self.put_artifact(command.receipt, NAME, encoded, type=JSON)
        return self.way.do(referring(command, put), self.principal) if put.ok else put

    def stay(self, command: ClaimNext, seconds: float, *, is_wanted: Callable[[], bool] | None = None) -> Outcome:
        """As `do`, but stays until there is something to take or the time is over, or `is_wanted` says no."""
        return self.way.stay(command, seconds, self.principal, is_wanted)

    def batch(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """Many commands in one transaction, one outcome or error each."""
        return self.way.run(batch, self.principal)

    def preview(self, batch: Sequence[Command]) -> list[Outcome | TenureError]:
        """What `batch` would answer now; nothing is written."""
        return self.way.preview(batch, self.principal)

    def look(self, query: Query) -> Any:
        """What any query asks for."""
        return self.way.look(query, self.principal)

    # --- artifacts ---

    def put_artifact(self, receipt: str, name: str, content: Given, *, type: str | None = None) -> Outcome:
        """Keep a named output of the claim: bytes, a Path, or a file opened for bytes. Sent in pieces."""
        from tenure.client.contents import Putting, Source, type_of

        with Source(content) as source:
            asked = Putting(self.project, receipt, name, type or type_of(name), source)
            return self.way.put(asked, self.principal)

    def get_artifact(
        self, task: str, name: str, *, generation: int | None = None, start: int = 0, end: int | None = None
    ) -> Got:
        """An artifact in pieces: the last of that name, or of a generation; all of it, or from `start` to `end`."""
        from tenure.client.contents import Wanted

        return self.way.get(Wanted(self.project, task, name, generation, start, end), self.principal)

    # --- news ---

    def mark(self) -> int:
        """Where the log ends now, for `wait_for_news`. Take it before a look: what comes after it is then news."""
        return self.way.mark(self.project, self.principal)

    def wait_for_news(self, mark: int, seconds: float, *, is_wanted: Callable[[], bool] | None = None) -> bool:
        """True as soon as the log goes beyond `mark`, False when the time is over or `is_wanted` says no."""
        return self.way.wait(mark, seconds, self.project, self.principal, is_wanted)

    def now(self) -> int:
        """The store's time, in microseconds."""
        return self.way.now(self.project, self.principal)

    # --- what only a store can do ---

    def _local(self, what: str, instead: str = "do it on the server's host, with its store's URL") -> Local:
        if self.is_remote:
            raise StoreOnly(f"{what}: not over a server; {self.way.url} is one", instead)
        local: Any = self.way
        return local  # type: ignore[no-any-return]

    @property
    def is_remote(self) -> bool:
        """Whether a server is asked, and not a store."""
        return is_server(self.way.url)

    @property
    def store(self) -> Store:
        return self._local("store").store

    @property
    def engine(self) -> Engine:
        return self._local("engine").engine

    @property
    def gatherer(self) -> Batcher | None:
        return self._local("gatherer").gatherer

    def sweep(self) -> int:
        """Settle what is due, so that events come promptly; how many rows it was."""
        return self._local("sweep", "a server settles what is due by itself").engine.sweep(self.project).settled

    def verify(self) -> list[str]:
        """What is wrong with the store; empty when every promise holds."""
        local = self._local("verify")
        from tenure.engine.verify.artifact_rows import lost

        return [*local.store.check(), *local.engine.verify(), *lost(local.engine)]

    def backup(self, target: str) -> None:
        """An exact copy of one moment, while others go on working."""
        self._local("backup").store.backup(target)

    def archive_finished(self, *, older: float | None = None) -> Moved:
        """Move finished tasks that nothing open can reach into the archive, those `older` than so many seconds.

        Where nobody leads, triggers hear the rest of the log first; what some reader has not passed stays.
        """
        engine = self._local("archive").engine
        from tenure.engine.archive.mover import move_all
        from tenure.engine.duties.election import hear_alone

        hear_alone(engine, self.project, f"archive-{self.session}")
        return move_all(engine, self.project, older=None if older is None else round(older * 1e6))

    def could_archive(self, *, older: float | None = None) -> Moved:
        """What `archive_finished` would move, and what readers of the log hold back; nothing is written."""
        engine = self._local("archive").engine
        from tenure.engine.archive.mover import could_move

        return could_move(engine, self.project, older=None if older is None else round(older * 1e6))

    def clock(self) -> ClockState:
        """How the clock stands to the store's time; nothing is written."""
        from tenure.engine.runtime.clock_repair import clock_state

        return clock_state(self._local("clock").engine)

    def accept_clock(self) -> Accepted:
        """Take the host's clock as right, and put right what was written while it was ahead."""
        return self._local("accept_clock").engine.accept_clock()

    def new_epoch(self, why: str) -> str:
        """End every live claim and void all receipts handed out so far."""
        return self._local("new_epoch").engine.new_epoch(why)
