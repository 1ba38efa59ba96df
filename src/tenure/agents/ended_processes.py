"""Ends the claims of processes of this host that have ended, while this process leads.

`run` and `claim` look too; without them a claim of a crashed agent would last until its lease ends, and its agent would
look active, although a server or daemon runs beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from tenure.agents.process_table import ended_here, named
from tenure.core.commands import Gone
from tenure.core.errors import TenureError
from tenure.core.records import Project
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.reads.tasks import processes
from tenure.engine.runtime.engine import Engine

EVERY = 5.0  # seconds between looks; one costs 0.1 ms, and a look at each process that holds a claim


class EndedProcesses:
    """`step` is for one thread; `start` runs it in a new thread."""

    def __init__(
        self,
        engine: Engine,
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._engine, self._leading, self._failed = engine, leading, failed
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tenure-processes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(EVERY)

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            try:
                self.step()
            except TenureError as error:
                self._failed(f"ending the claims of ended processes: {error.message}")

    def step(self) -> tuple[str, ...]:
        """Look once; the keys of the tasks that are free again."""
        freed: list[str] = []
        if self._leading() is None:
            return ()
        for project in self._engine.read(lambda tx: [row.id for row in tx.find(Project, {})]):
            gone = ended_here(self._engine.read_settled((project,), partial(processes, project=project)))
            if gone:
                outcome = self._engine.do(Gone(project=project, processes=tuple(map(named, gone))))
                freed += outcome.changed or ()
        return tuple(freed)
