"""Copies of an embedded store in the user's state folder, while this process leads.

`git clean -xdf` deletes `.tenure` with the plan, the history and the budgets. So `run`, `daemon` and `serve` copy the
store as `tenure db backup` does: when they begin and end, and now and then while it is written. No command of a holder
does. A copy that fails is one line of the log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from tenure.core import limits
from tenure.core.errors import StoreCorrupt, StoreError, TenureError, spelled
from tenure.core.store_copies import Copy, beyond, is_due, surplus
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.runtime.engine import Engine
from tenure.store_folder import KnownStore, all_copies, copies_at, folder_for_copies, moved_here, remember
from tenure.stores.sqlite.backup import looked_at
from tenure.stores.sqlite.store import Sqlite

LOOK_EVERY = 5.0  # seconds between two looks whether a copy is due: one read of the log's end
DRAFT = "incoming-"
ABANDONED = 3600.0  # seconds after which the draft of a process that was killed is deleted


class StoreCopies(LeaderThread):
    every = LOOK_EVERY

    def __init__(
        self,
        engine: Engine,
        leading: Callable[[], LeaderEngine | None],
        environ: Mapping[str, str],
        seconds: float = limits.COPY_EVERY,
        *,
        now: Callable[[], float] = time.time,
        project: str = "",
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`seconds` between two copies. `project`: the one that commands in the store's folder use."""
        super().__init__(engine, "copies", leading)
        assert isinstance(engine.store, Sqlite)
        self._store, self._environ, self._seconds, self._now, self._say = engine.store, environ, seconds, now, say
        self._project = project
        self._said = ""
        self._epoch = ""  # that the store was last noted with
        self._is_first = True

    def work(self, led: LeaderEngine) -> bool:
        self.copy(min(self._seconds, limits.COPY_SOONEST) if self._is_first else self._seconds)
        self._is_first = False
        return False

    def close(self) -> None:
        """A process that ends leaves a copy of what it has done."""
        with suppress(TenureError, OSError):
            if self.leading() is not None:
                self.copy(0.0)

    def failed(self, error: Exception) -> None:
        if not isinstance(error, StoreError):  # the store is unavailable: every part would say so
            self._report(spelled(error))

    def copy(self, least: float) -> Copy | None:
        """Copy the store `least` seconds after its newest copy, if it has grown.

        None where it is not due, or failed. Raises StoreError where the store is unavailable.
        """
        path, store = self._store.path, self._store
        epoch = self.engine.read(lambda tx: tx.epoch)
        last = store.mark(self.engine.tenant)
        if epoch != self._epoch:
            known = KnownStore(path, store.place, epoch, self._project)
            moved_here(known, self._environ)
            remember(known, self._environ)
            self._epoch = epoch
        copies = copies_at(path, self._environ)
        if not is_due(copies, epoch, last, self._now(), least):
            return None
        try:
            return self._copied(path)
        except (TenureError, OSError) as error:
            if store.is_lost:
                raise
            kept = "the earlier copies stay" if copies else "there is no copy"
            self._report(f"{error.strerror if isinstance(error, OSError) else spelled(error)}; {kept}")
            return None

    def _copied(self, path: str) -> Copy | None:
        size = os.path.getsize(path)
        if size > limits.COPY_LARGEST:
            self._report(
                f"the store has {size >> 20} MiB, and up to {limits.COPY_LARGEST >> 20} are copied: "
                "make backups of it with `tenure db backup FILE`"
            )
            return None
        folder = folder_for_copies(path, self._environ)
        self._clear_drafts(folder)
        draft = os.path.join(folder, f"{DRAFT}{os.getpid()}")
        with suppress(FileNotFoundError):
            os.unlink(draft)
        try:
            self._store.backup(draft)
            epoch, last, wrong = looked_at(draft)
            if wrong:
                raise StoreCorrupt(f"the store is damaged: {wrong}", "`tenure doctor --verify`")
            made = Copy(os.path.join(folder, f"{epoch}-{last}.db"), epoch, last, self._now(), os.path.getsize(draft))
            os.utime(draft, (made.made, made.made))
            os.replace(draft, made.path)
        finally:
            with suppress(OSError):
                os.unlink(draft)
        for gone in surplus(copies_at(path, self._environ), epoch):
            _delete(gone)
        for gone in beyond(all_copies(self._environ), made):
            _delete(gone)
        self._said = ""
        return made

    def _clear_drafts(self, folder: str) -> None:
        for entry in os.scandir(folder):
            if entry.name.startswith(DRAFT) and self._now() - entry.stat().st_mtime > ABANDONED:
                with suppress(OSError):
                    os.unlink(entry.path)

    def _report(self, text: str) -> None:
        """Once, until a copy succeeds."""
        if text != self._said:
            self._said = text
            self._say(f"the store was not copied into your state folder: {text}")


def _delete(copy: Copy) -> None:
    with suppress(OSError):
        os.unlink(copy.path)
