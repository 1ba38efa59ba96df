"""Agents on this machine: one `tenure run --once` for each spawn, which survives the process that started it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenure.spawners import children
from tenure.spawners.children import Children
from tenure.spawners.port import Spawned, SpawnRequest, State
from tenure.spawners.programs import Programs


class LocalSpawner:
    def __init__(self, programs: Programs, children: Children) -> None:
        self._programs, self._children = programs, children

    def spawn(self, request: SpawnRequest, timeout: float) -> Spawned:
        process = self._children.start(
            request.spawn,
            self._programs.command(request),
            cwd=self._programs.find(request.program).folder,
            env=self._programs.environment(request),
            seconds=timeout,
        )
        return Spawned(handle=process.text)

    def home(self) -> str:
        return self._children.home()

    def find(self, spawns: Sequence[str]) -> Mapping[str, Spawned | None]:
        return children.processes_of(self._children.found(spawns))

    def status(self, handles: Sequence[str]) -> Mapping[str, State]:
        return children.states_of(handles)

    def end(self, handle: str, graceful: bool) -> None:
        children.end(handle, graceful)

    def close(self) -> None:
        """The children live on."""
