"""The transport to a store: the engine in this process."""
# ruff: noqa: PTH100, PTH116, PTH122 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import limits
from tenure.core.commands import ClaimNext, ClaimTask, Command, Gone, Principal, Process, PutArtifact
from tenure.core.errors import InvalidInput, TenureError, close_all
from tenure.core.filters import Range
from tenure.core.outcomes import Outcome
from tenure.core.processes import process_of
from tenure.core.records import Claim, replace
from tenure.core.task_defaults import SHIPPED, TaskDefaults
from tenure.core.tenant_records import HOME
from tenure.engine import Context, Engine, Random
from tenure.engine.runtime.context import SHIPPED_TABLES, HostProcesses, UserTables
from tenure.process_table import HostTable
from tenure.stores.open_store import open_store, path_of
from tenure.stores.port import FAST_PATH, Clock, Store, Transaction

if TYPE_CHECKING:
    from tenure.artifacts.port import Artifacts
    from tenure.client.contents import Download, Upload, Wanted
    from tenure.core.queries import Query
    from tenure.engine.runtime.batcher import Batcher, TenantBatcher
    from tenure.sealing.signing import SigningKey

GLANCE = 0.2  # seconds between checks whether the caller still waits
MOST_SEEN = limits.HOLDERS_SEEN
SEEN_EVERY = limits.HOLDERS_SEEN_EVERY


class EndedHolders:
    """Ends, before a claim, what processes of this host hold that have ended: it may come before the ready tasks.

    Without a daemon nobody else would notice before the lease ends. Safe to share between threads: a look too many does
    no harm.
    """

    def __init__(self, engine: Engine, table: HostProcesses, monotonic: Callable[[], float]) -> None:
        self._engine, self._table, self._monotonic = engine, table, monotonic
        self._looked: dict[str, float] = {}  # project → when
        self._next: dict[str, str] = {}  # project → where the next look begins

    def end(self, project: str, principal: Principal) -> None:
        """End the claims of those that hold tasks of the project and have ended; no more often than once a second."""
        now = self._monotonic()
        if now - self._looked.get(project, -SEEN_EVERY) < SEEN_EVERY:
            return
        self._looked[project] = now
        found = self._engine.read(lambda tx: self._holders(tx, project))
        gone = [process for process in found if self._table.has_ended(process)]
        if gone:
            self._engine.do(Gone(project=project, processes=tuple(gone)), principal)

    def _holders(self, tx: Transaction, project: str) -> list[Process]:
        """Of at most MOST_SEEN claims; of more those that follow the last look's, so that each has its turn."""
        place = self._table.place
        first_digits = 10 + int(90 * self._engine.random.fraction())
        start = self._next.get(project) or f"{place}{first_digits}"
        rows: list[Claim] = []
        for part in (Range(start, f"{place}:"), Range(place, start)):  # digits, then a bar: all before a colon
            where = {"project": project, "process": part}
            rows += tx.find(Claim, where, order="process", limit=MOST_SEEN - len(rows))
            if len(rows) == MOST_SEEN:
                break
        texts = list(dict.fromkeys(row.process for row in rows if row.process is not None))
        if len(rows) == MOST_SEEN:
            self._next[project] = f"{texts[-1]}!"  # behind it, and before any other
        return [process_of(text) for text in texts]


class LocalTransport:
    def __init__(
        self,
        url: str,
        *,
        random: Random,
        create: bool,
        gather: bool,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        artifacts: str | None = None,
        tables: UserTables | None = None,
        task_defaults: TaskDefaults = SHIPPED,
        leader_lease: float = limits.AGENT_LEADER_LEASE / 1e6,
        allow_http: bool = False,
        networks: Sequence[str] = (),
        elects: bool = True,
        tenant: str | None = None,
    ) -> None:
        """With `gather` the commands of several threads share transactions.

        `elects`: in an embedded store the first agent of a project that joins or claims leads it.
        """
        self.store = open_store(url, clock=clock, create=create)
        self.url = self.store.url
        self._home_store: Store | None = None  # that of the tenant's row, where the tenant has its own
        self._monotonic = monotonic
        self._artifacts = ProjectArtifacts(artifacts, url, tenant or HOME)
        sealer: Any = LazySealer(url)
        table = HostTable()
        context = Context(
            pause=pause, artifacts=self._artifacts, tables=tables or SHIPPED_TABLES, sealer=sealer,
            task_defaults=task_defaults, leader_lease=round(leader_lease * 1e6),
            allow_http=allow_http, networks=tuple(networks),
            signer=_signer, elects=elects and FAST_PATH not in self.store.features, tenant=tenant or HOME,
            open_store=open_store, table=table,
        )  # fmt: skip
        self.engine = Engine(self.store, random, context) if tenant in (None, HOME) else self._of(context, random)
        self._ended = EndedHolders(self.engine, table, monotonic)
        self.batcher: Batcher | TenantBatcher | None = None
        if gather:
            from tenure.engine.runtime.batcher import Batcher

            self.batcher = Batcher(self.engine)

    def _of(self, context: Context, random: Random) -> Engine:
        """The engine of a tenant beside the home tenant; NotFound where there is none of that name."""
        from tenure.engine.runtime.tenancy import TenantLimits, check_open, is_far, open_own

        try:
            row = check_open(self.store, context.tenant)
            limits = TenantLimits(self.store, row, self._monotonic)
            if is_far(row):
                home = Engine(self.store, random, replace(context, tenant=HOME))
                self._home_store, self.store = self.store, open_own(home, row, open_store)
            return Engine(self.store, random, replace(context, limits=limits))
        except BaseException:
            self.store.close()
            raise

    def open_schemas(self, *names: str) -> list[str]:
        """Open the tables of these tenants, of all by default, where they have their own: that creates or upgrades
        them. The tenants' names.
        """
        from tenure.engine.runtime.tenancy import TenantEngines, open_own

        rows = [row for row in TenantEngines(self.engine, self._monotonic).rows() if row.schema is not None]
        found = [row for row in rows if not names or row.id in names]
        for row in found:
            open_own(self.engine, row, open_store).close()
        return [row.id for row in found]

    def do(self, command: Command, principal: Principal) -> Outcome:
        self._end_ended((command,), principal)
        return (self.batcher or self.engine).do(command, principal)

    def _end_ended(self, batch: Sequence[Command], principal: Principal) -> None:
        """Before claims: what dead processes hold may come first."""
        for project in {command.project for command in batch if isinstance(command, (ClaimNext, ClaimTask))}:
            self._ended.end(project, principal)

    def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        self._end_ended(batch, principal)
        return self.engine.run(batch, principal)

    def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return self.engine.preview(batch, principal)

    def claim_or_wait(
        self, command: ClaimNext, seconds: float, principal: Principal, is_wanted: Callable[[], bool] | None = None
    ) -> Outcome:
        from tenure.engine.runtime.work_wait import claim_next_or_wait

        return claim_next_or_wait(
            self.engine, command, seconds, self._monotonic, principal, is_wanted=is_wanted, do=self.do
        )

    def query(self, query: Query, principal: Principal) -> Any:
        from tenure.engine.reads.query_table import read_query  # a claim does not need it

        return read_query(self.engine, query, principal)

    def put(self, upload: Upload, principal: Principal) -> Outcome:
        from tenure.artifacts.port import put
        from tenure.engine.artifacts import artifact_verbs

        project, source = upload.project, upload.source
        ready = artifact_verbs.ready(self.engine, project, upload.receipt, upload.name, principal, upload.word)
        if isinstance(ready, Outcome):
            return ready
        kept = put(self._artifacts(project), source.pieces(), largest=ready.largest, expected=source.digest)
        named = {"project": project, "receipt": upload.receipt, "name": upload.name, "type": upload.type}
        command = PutArtifact(**named, digest=kept.digest, size=kept.size, since=ready.since, word=upload.word)
        outcome = self.do(command, principal)
        if not outcome.ok:
            artifact_verbs.left(self.engine, project, kept.digest, kept.size)
        return outcome

    def get(self, wanted: Wanted, principal: Principal) -> Download:
        from tenure.client.contents import Download
        from tenure.engine.artifacts.artifact_verbs import found

        view: Any = found(self.engine, wanted.project, wanted.task, wanted.name, wanted.generation, principal)
        pieces = self._artifacts(wanted.project).read(view["digest"], start=wanted.start, end=wanted.end)
        return Download(view, pieces)

    def mark(self, project: str, principal: Principal) -> int:
        return self.engine.mark()

    def wait(
        self,
        mark: int,
        seconds: float,
        project: str,
        principal: Principal,
        is_wanted: Callable[[], bool] | None = None,
        tasks: Collection[str] = (),
    ) -> bool:
        if is_wanted is None:
            return self.engine.wait(mark, seconds)
        until = self._monotonic() + seconds
        while is_wanted() and (left := until - self._monotonic()) > 0:
            if self.engine.wait(mark, min(GLANCE, left)):
                return True
        return False

    def now(self, project: str, principal: Principal) -> int:
        return self.engine.read_settled((), lambda work: work.now)

    def close(self) -> None:
        """Close the store, after the commands that other threads have sent."""
        parts = (self.batcher, self._artifacts, self.store, self._home_store)
        close_all(*(part.close for part in parts if part is not None))
        if self.url.startswith("memory://"):
            from tenure.artifacts import memory as artifacts
            from tenure.stores import memory as stores

            if not stores.is_open(self.url):
                artifacts.forget(self.url)


def _signer() -> SigningKey:
    from tenure.client.signed_submits import own_key

    return own_key(os.environ)


class LazySealer:
    """The cipher under this user's master key, made with the first secret: most commands have none."""

    def __init__(self, url: str) -> None:
        from tenure.config import SECRET_VARIABLES

        self._url = url
        self._cipher: Any = None
        if any(os.environ.get(name) for name in SECRET_VARIABLES):
            from tenure.processes.private_memory import keep_private

            keep_private()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of a copy that is being made
            raise AttributeError(name)
        if self._cipher is None:
            from tenure.processes.private_memory import keep_private
            from tenure.sealing.cipher import Cipher
            from tenure.sealing.master_key import KeySource

            keep_private()
            source = KeySource(os.environ, is_embedded=_is_own_file(self._url), say=_say)
            self._cipher = Cipher(source)
        return getattr(self._cipher, name)


def _is_own_file(url: str) -> bool:
    """Whether the store is a file of this user: only then may a key file be made for it."""
    path = path_of(url)
    try:
        return path is not None and os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def _say(text: str) -> None:
    import sys

    sys.stderr.write(f"tenure: {text}\n")


SET_ARTIFACTS = "set `artifacts` (TENURE_ARTIFACTS) to s3://bucket/prefix, or to a folder that all hosts share"


def keeps_no_artifacts(url: str | None, store: str) -> bool:
    """Whether artifacts, and results that are too large for a row, have no place here."""
    return not (url or os.environ.get("TENURE_ARTIFACTS") or store.startswith("memory://") or path_of(store))


class ProjectArtifacts:
    """The artifact store of each project: the configured one, else a folder beside an embedded store.

    Opened on first use: most commands need none.
    """

    def __init__(self, url: str | None, store: str, tenant: str = HOME) -> None:
        self._url, self._store, self._tenant = url or os.environ.get("TENURE_ARTIFACTS"), store, tenant
        self._opened: dict[str, Artifacts] = {}

    def of_tenant(self, tenant: str) -> ProjectArtifacts:
        """The same place, for another tenant."""
        return ProjectArtifacts(self._url, self._store, tenant)

    def __call__(self, project: str) -> Artifacts:
        found = self._opened.get(project)
        if found is None:
            from tenure.artifacts.open_artifacts import open_artifacts

            made = open_artifacts(self.url, tenant=self._tenant, project=project)
            found = self._opened.setdefault(project, made)
        return found

    @property
    def url(self) -> str:
        if self._url:
            return self._url
        if self._store.startswith("memory://"):
            return self._store
        path = path_of(self._store)
        if path is None:
            raise InvalidInput(
                "no artifact store is set, and this store is not a file that could have a folder beside it",
                SET_ARTIFACTS,
            )
        # After the store's own name: two stores in one folder must not delete each other's.
        return os.path.splitext(os.path.abspath(path))[0] + ".artifacts"

    def close(self) -> None:
        close_all(*(opened.close for opened in self._opened.values()))
