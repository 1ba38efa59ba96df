"""One transaction's reads: each comes with the versions of the projects it is of.

The versions that a project had at the first read must be its versions at every later read, and at the commit. So all
reads are of one moment, and where somebody has written in between, the transaction ends with Conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tenure.core.errors import Bug, SchemaMismatch, StoreError, TenureError
from tenure.stores.sql.server_errors import BAD_VALUES, Lost, bad_value, lost
from tenure.stores.valkey.commit import last_time
from tenure.stores.valkey.connection import Command, Connection
from tenure.stores.valkey.errors import Torn, changed, translated
from tenure.stores.valkey.keys import Keys
from tenure.stores.valkey.rows import FORM
from tenure.stores.valkey.turns import Turn

if TYPE_CHECKING:
    from tenure.stores.valkey.store import Valkey

T = TypeVar("T")

TEARS = 3  # of one reader, before it takes the turn
MOST_TEARS = 10
_META = ("form", "epoch", "sequence", "last")


class Session:
    """Begins with its first read, which is one round trip with everything that a transaction must know."""

    def __init__(self, store: Valkey, tenant: str, write: bool) -> None:
        self._store, self._write = store, write
        self._keys: Keys = store.keys_of(tenant)
        self._tenant = tenant
        self._connection: Connection | None = None
        self._ended = False
        self._failed: TenureError | None = None
        self._seen: dict[str, bytes] = {}  # project → its version
        self._commits: bytes | None = None  # how many commits there were, where it has read in all projects
        self._to_hold: dict[str, None] = {}
        self._turn: Turn | None = None
        self._has_begun = False
        self._has_returned = False  # something of what it read has been returned
        self._first_due: dict[str, list[bytes]] = {}  # project → the first entry among its due tasks
        self._started = 0.0
        self._now = self._behind = self._began = self._sequence = 0
        self._epoch = self._stored_epoch = ""

    # --- what every transaction knows ---

    @property
    def now(self) -> int:
        self._answer(self._begin)
        return self._now

    @property
    def epoch(self) -> str:
        self._answer(self._begin)
        return self._epoch

    @property
    def behind(self) -> int:
        self._answer(self._begin)
        return self._behind

    @property
    def jump(self) -> int:
        """Always 0: its time is the server's."""
        return 0

    def _begin(self) -> None:
        if not self._has_begun:
            self._ask(())

    def _enter(self, projects: Iterable[str]) -> None:
        """Know the versions of these projects."""
        new = [project for project in dict.fromkeys(projects) if project not in self._seen]
        if new or not self._has_begun:
            self._ask(new)

    def _answer(self, ask: Callable[[], T]) -> T:
        """The answer of `ask`, which is asked again where rows changed, unless something was returned already."""
        tears = 0
        while True:
            try:
                answer = ask()
            except Torn:
                tears += 1
                self._store.tears.note(self._seen, everywhere=self._commits is not None)
                if self._has_returned or tears == MOST_TEARS:
                    self._fail(changed())
                self._forget()
                continue
            except BAD_VALUES as error:
                self._fail(bad_value(error))
            self._has_returned = True
            return answer

    def _forget(self) -> None:
        """Nothing of it was returned, so the reads may be of a later moment; a reader may get its turn now."""
        self._release()
        self._seen.clear()
        self._first_due.clear()
        self._commits, self._has_begun = None, False

    # --- reading ---

    def _ask(self, projects: Collection[str], *commands: Command, everywhere: bool = False) -> list[Any]:
        """The answers, of one moment, and of the moment of all earlier ones. Raises Torn."""
        if self._ended:
            raise Bug("this transaction has ended")
        is_first, keys = not self._has_begun, self._keys
        wanted = dict.fromkeys([*self._seen, *projects, *(self._to_hold if is_first else ())])
        dues = [project for project in wanted if project in self._to_hold and project not in self._first_due]
        inner: list[Command] = [("HMGET", keys.versions, b"*", *map(version_field, wanted))]
        if is_first:
            inner += [("TIME",), ("HMGET", keys.meta, *_META)]
        inner += [("ZRANGE", keys.due(project), "-", "+", "BYLEX", "LIMIT", 0, 1) for project in dues]
        answers = self._send([*inner, *commands], list(wanted) if is_first else [], everywhere=everywhere)
        commits, *versions = answers[0]
        self._compare(dict(zip(wanted, versions, strict=True)), commits, everywhere=everywhere)
        if is_first:
            self._learn(answers[1], answers[2])
        at = 3 if is_first else 1
        self._first_due.update(zip(dues, answers[at : at + len(dues)], strict=True))
        self._check_times()
        return answers[at + len(dues) :]

    def _send(self, inner: list[Command], projects: list[str], *, everywhere: bool) -> list[Any]:
        """In one transaction of the server; at its beginning, with the turn."""
        if self._connection is None:
            if self._write:
                self._turn = self._store.turns.writer(self._keys, projects)
            elif self._store.tears.count >= TEARS:
                self._turn = self._store.turns.reader(self._keys, self._store.tears, projects, everywhere=everywhere)
            if self._turn is not None:
                self._turn.wait_here()
            self._connection = self._store.connections.take()
        connection = self._connection
        try:
            if self._turn is not None:
                answers = self._turn.ask(connection, [("MULTI",), *inner, ("EXEC",)])
            else:
                answers = connection.ask([("MULTI",), *inner, ("EXEC",)])
        except Lost as error:
            self._fail(lost(error, self._store.url), error)
        for answer in (*answers[:-1], *(answers[-1] if isinstance(answers[-1], list) else (answers[-1],))):
            if isinstance(answer, Exception):
                self._fail(translated(answer, self._store.url), answer)
        found: list[Any] = answers[-1]
        return found

    def _compare(self, versions: dict[str, bytes | None], commits: bytes | None, *, everywhere: bool) -> None:
        for project, version in versions.items():
            if self._seen.setdefault(project, version or b"") != (version or b""):
                raise Torn
        if self._commits is not None and self._commits != (commits or b"0"):
            raise Torn
        if everywhere:
            self._commits = commits or b"0"

    def _learn(self, time: list[bytes], meta: list[bytes | None]) -> None:
        """The clock, the epoch and the end of the log."""
        form, epoch, sequence, last = meta
        if form is not None and int(form) > FORM:
            raise newer(self._store.url, int(form))
        self._began = int(time[0]) * 1_000_000 + int(time[1])
        clock = self._began if self._store.clock is None else self._store.clock()
        self._now = max(clock, last_time(last))
        self._behind = self._now - clock
        self._stored_epoch = epoch.decode() if epoch is not None else ""
        self._epoch = self._stored_epoch or self._store.epoch
        self._sequence = int(sequence or 0)
        self._started = self._store.monotonic()
        self._has_begun = True

    def _check_times(self) -> None:
        """A writer's `now` must not be before the last event of a project that it enters later."""
        if self._write and any(time_of(version) > self._now for version in self._seen.values()):
            raise Torn

    # --- the end ---

    def _fail(self, error: TenureError, cause: BaseException | None = None) -> NoReturn:
        """From here on the transaction can only end without a trace."""
        if isinstance(error, StoreError) or self._write:
            self._failed = error
        raise error from cause

    def _release(self, *, freed: bool = False) -> None:
        """Give back the turn and the connection; `freed`: the commit has given back the turn."""
        turn, self._turn = self._turn, None
        connection, self._connection = self._connection, None
        try:
            if turn is not None:
                turn.end(None if freed else connection)
        finally:
            if connection is not None:
                self._store.connections.give(connection)


def version_field(project: str) -> bytes:
    return b":" + project.encode()


def next_version(version: bytes, last: int) -> bytes:
    """A version is a number and the time of the project's last event."""
    number, _, time = version.partition(b" ")
    return b"%d %d" % (int(number or 0) + 1, max(last, int(time or last)))


def time_of(version: bytes) -> int:
    return last_time(None) if not version else int(version.partition(b" ")[2])


def newer(url: str, form: int) -> SchemaMismatch:
    return SchemaMismatch(
        f"{url} has form {form}; this program knows forms up to {FORM}", "Start again with the newer version."
    )
