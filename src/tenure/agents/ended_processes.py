"""Ends the claims of processes of this host that have ended, while this process leads.

`run` and `claim` look too; without them a claim of a crashed agent would last until its lease ends, and its agent would
look active, although a server or daemon runs beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tenure.agents.ended_holders import ended_here, named
from tenure.core.commands import Gone
from tenure.core.errors import spelled
from tenure.core.records import Project
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.reads.tasks import processes
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.runtime.engine import Engine


class EndedProcesses(LeaderThread):
    every = 5.0  # seconds between looks; one costs 0.1 ms, and a look at each process that holds a claim

    def __init__(
        self,
        engine: Engine,
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(engine, "processes", leading)
        self._report = failed

    def work(self, led: LeaderEngine) -> bool:
        for project in self.engine.read(lambda tx: [row.id for row in tx.find(Project, {})]):
            gone = ended_here(self.engine.read_settled((project,), partial(processes, project=project)))
            if gone:
                self.engine.do(Gone(project=project, processes=tuple(map(named, gone))))
        return False

    def failed(self, error: Exception) -> None:
        text = spelled(error)
        self._report(f"ending the claims of ended processes: {text}")
