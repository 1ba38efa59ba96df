"""A store in memory that answers conflicts instead of locking: a read that another commit has torn is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tenure.core.errors import Conflict
from tenure.stores.memory import Memory, MemoryTransaction
from tenure.stores.port import SNAPSHOTS, Clock

DEEPEST = 4  # queries after which a read is torn at the latest, or at its end


class Torn(Memory):
    """Without the feature SNAPSHOTS. With `tears` the first attempt of every read is torn, somewhere."""

    features = Memory.features - {SNAPSHOTS}

    def __init__(self, *, clock: Clock | None = None, tears: bool = False) -> None:
        super().__init__(clock=clock)
        self.commits = 0
        self.torn = 0  # reads that were refused
        self._tears = tears
        self._own = threading.local()

    def begin(self, tenant: str, *, write: bool) -> Any:
        rows = self._of(tenant)
        return Writing(self, rows) if write else TornRead(self, rows, self._next())

    def _next(self) -> int | None:
        """The query at which this attempt is torn: every other one of a thread, each time later."""
        if not self._tears:
            return None
        self._own.count = getattr(self._own, "count", 0) + 1
        return self._own.count // 2 % DEEPEST + 1 if self._own.count % 2 else None


class Writing(MemoryTransaction):
    def __init__(self, torn: Torn, rows: Memory) -> None:
        super().__init__(rows, write=True)
        self._torn = torn

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._torn.commits += 1  # while the lock is held
        super().__exit__(kind, error, trace)


class TornRead:
    """Holds the lock for one query at a time."""

    def __init__(self, store: Torn, rows: Memory, torn_at: int | None) -> None:
        self._store, self._rows, self._torn_at = store, rows, torn_at
        self._asked = 0
        self._commits: int | None = None
        self._moment: dict[str, Any] = {}

    def __enter__(self) -> TornRead:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._torn_at is not None:
            self._refuse()

    def __getattr__(self, name: str) -> Any:
        if name in ("now", "epoch", "behind", "jump"):
            self._ask(lambda _: None)
            return self._moment[name]
        if name in ("lock", "expect"):
            return lambda *_: None
        return lambda *given, **more: self._ask(lambda tx: getattr(tx, name)(*given, **more))

    def _ask(self, query: Callable[[MemoryTransaction], Any]) -> Any:
        self._asked += 1
        if self._asked == self._torn_at:
            self._refuse()
        with MemoryTransaction(self._rows, write=False) as tx:
            if self._commits is None:
                self._commits = self._store.commits
                self._moment = {"now": tx.now, "epoch": tx.epoch, "behind": tx.behind, "jump": tx.jump}
            elif self._commits != self._store.commits:
                self._refuse()
            return query(tx)

    def _refuse(self) -> None:
        self._store.torn += 1
        raise Conflict("rows changed during the read")
