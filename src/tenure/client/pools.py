"""The verbs and queries of pools, which start agents while tasks are ready."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tenure.client.messaging import Messaging
from tenure.client.results import Changed
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.query import Page

if TYPE_CHECKING:
    from tenure.client.times import Duration
    from tenure.core.views import PoolInFull, PoolView, SpawnView


class Pools(Messaging):
    def set_pool(
        self,
        name: str,
        program: str | None = None,
        *,
        size: int | None = None,
        spawner: str | None = None,
        idle: Duration | None = None,
        capabilities: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tracks: Iterable[str] | None = None,
        models: Iterable[str] | None = None,
    ) -> Changed:
        """Create or change a pool; omitted fields stay as they are. A new pool needs a program.

        `program` and `spawner` are names in the configuration of the leading process.
        """
        lists = {"capabilities": capabilities, "types": types, "tracks": tracks, "models": models}
        given = {field: None if values is None else tuple(values) for field, values in lists.items()}
        return self._do(Changed, c.SetPool, pool=name, program=program, size=size, spawner=spawner, idle=idle, **given)

    def pause_pool(self, name: str, reason: str = "") -> Changed:
        """Start nothing more; running agents finish their tasks."""
        return self._do(Changed, c.PausePool, pool=name, reason=reason)

    def resume_pool(self, name: str) -> Changed:
        """Start agents again, at once, also while the pool backs off."""
        return self._do(Changed, c.ResumePool, pool=name)

    def remove_pool(self, name: str) -> Changed:
        """Remove the pool. Agents that have not claimed yet claim nothing; the others finish their tasks."""
        return self._do(Changed, c.RemovePool, pool=name)

    def pools(self) -> list[PoolView]:
        """The pools, by name, with the number of their live processes."""
        return self._ask(q.Pools(project=self.project))

    def pool(self, name: str) -> PoolInFull:
        """One pool with its live processes."""
        return self._ask(q.ShowPool(project=self.project, pool=name))

    def spawns(
        self, pool: str | None = None, *, state: Iterable[str] | None = None, limit: int = 100
    ) -> Page[SpawnView]:
        """Processes that pools have started, the newest first; ended ones are kept for a while."""
        states = None if state is None else tuple(state)
        return self._ask(q.Spawns(project=self.project, pool=pool, state=states, limit=limit))
