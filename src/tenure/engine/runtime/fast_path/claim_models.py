"""Which model each claim of a run gets, from columns: computed once for all tasks that are alike, since most are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from tenure.core.models import User, Wanted, expected, route
from tenure.core.records import Project
from tenure.engine.models.model_choice import shown
from tenure.engine.models.tables import tier_table

Shown = dict[str, str | None]
ModelFor = Callable[
    [int, str, Sequence[str], Mapping[str, Any]], Shown
]  # of a task's priority, type, tags, constraints


class Models:
    """Only for plain tasks, which name no models, in projects without a model in trouble."""

    def __init__(self, own_tiers: str | None) -> None:
        self._tiers = tier_table(own_tiers)
        self._cache: dict[Any, Shown] = {}

    def of(self, project: Project, type: str, models: str) -> ModelFor:
        """For an agent given by its columns."""
        return partial(self._of, project, type, models) if project.routing else _nothing

    def _of(
        self,
        project: Project,
        agent_type: str,
        models: str,
        priority: int,
        type: str,
        tags: Sequence[str],
        constraints: Mapping[str, Any],
    ) -> Shown:
        size = (constraints.get("complexity"), constraints.get("estimated_tokens")) if constraints else None
        like = (project.id, agent_type, models, priority, type, tuple(tags), size)
        cached = self._cache.get(like)
        if cached is None:
            tokens = expected(type, constraints, project.typical).tokens
            wanted = Wanted(priority, type, tags, constraints.get("complexity"), tokens)
            user = User(agent_type, tuple(msgspec.json.decode(models)))
            cached = self._cache[like] = shown(route(self._tiers, wanted, user))
        return cached


def _nothing(*_: Any) -> Shown:
    return {}
