"""Watches the repository for triggers on changed files, while this process leads and such a trigger exists.

It compares the times and sizes of the files that git tracks or would track; ignored files do not count. Where there is
no git, all files count except hidden folders. No trigger, no look at any file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from tenure.agents import git
from tenure.core import limits, triggers
from tenure.core.commands import FilesChanged
from tenure.core.errors import spelled
from tenure.core.records import Trigger
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.runtime.engine import Engine

EVERY = 2.0  # seconds between looks, and for which changes are gathered
SHARE = 20  # a look that takes long is repeated less often: it never takes more than a twentieth of the time
KIND = "source.files_changed"
LEFT_OUT = frozenset({".git", ".tenure"})
MOST = limits.FILES_WATCHED
SHOWN = limits.FILES_IN_EVENT

Files = dict[str, tuple[int, int]]  # path → time of change, size


class FileWatch(LeaderThread):
    every = EVERY

    def __init__(
        self,
        engine: Engine,
        project: str,
        folder: str,
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(engine, "files", leading)
        self._project, self._folder, self._report = project, folder, failed
        self._files: Files | None = None  # None: nobody watches
        self._changed: dict[str, None] = {}

    def work(self, led: LeaderEngine) -> bool:
        """Look once. Changes of one look go out with those of the next, which finds what followed at once."""
        if not self._is_wanted():
            self.idle()
            return False
        began = time.monotonic()
        before, self._files = self._files, self._found()
        self.every = max(EVERY, SHARE * (time.monotonic() - began))
        if before is None:
            return False
        changed = _differences(before, self._files)
        is_second = bool(self._changed)
        self._changed |= changed
        if self._changed and (is_second or not changed):
            paths, self._changed = list(self._changed), {}
            command = FilesChanged(project=self._project, paths=tuple(paths[:SHOWN]), more=max(0, len(paths) - SHOWN))
            self.engine.do(command)
        return False

    def failed(self, error: Exception) -> None:
        text = spelled(error)
        self._report(f"watching files: {text}")
        self._files = None

    def idle(self) -> None:
        self._files, self._changed = None, {}

    def _is_wanted(self) -> bool:
        if not any(os.path.exists(os.path.join(self._folder, name)) for name in LEFT_OUT):
            return False  # not the folder of a repository or store: a server may be started anywhere
        found = self.engine.read(lambda tx: tx.find(Trigger, {"project": self._project}))
        return any(row.enabled and KIND in triggers.kinds_of(row.kind) for row in found)

    def _found(self) -> Files:
        files: Files = {}
        for path in self._paths():
            if not LEFT_OUT.isdisjoint(path.split("/")):
                continue
            try:
                status = os.lstat(os.path.join(self._folder, path))
            except OSError:
                continue  # deleted since
            files[path] = (status.st_mtime_ns, status.st_size)
            if len(files) >= MOST:
                break
        return files

    def _paths(self) -> Iterator[str]:
        if os.path.exists(os.path.join(self._folder, ".git")):
            yield from git.paths(self._folder, "ls-files", "--cached", "--others", "--exclude-standard")
            return
        for where, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                yield os.path.relpath(os.path.join(where, name), self._folder)


def _differences(before: Files, after: Files) -> dict[str, None]:
    """Paths that were created, changed or deleted."""
    changed = [path for path, seen in after.items() if before.get(path) != seen]
    return dict.fromkeys(changed + [path for path in before if path not in after])
