"""Which model an attempt should use, and why: the task's own preferences first, else the tier for its size.

An agent's models are those it registered, else those of its type; for an agent with neither only the tier is known. A
model that cools off after a rate limit is skipped where another may replace it.

This is advice to the holder. A claim waits in one case only: all models that the agent could use cool off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tenure.core import retry
from tenure.core.priority import tier_of
from tenure.core.records import Task
from tenure.core.tiers import MIDDLE, SMALL, TOP, Tiers

# Where a tier's model cools off: prefer a more expensive one to a weaker one, and a weaker one to waiting.
_INSTEAD = {SMALL: (MIDDLE, TOP), MIDDLE: (TOP, SMALL), TOP: (MIDDLE, SMALL)}


class Wanted(NamedTuple):
    """What routing uses of a task at one attempt."""

    priority: int
    type: str
    tags: Sequence[str] = ()
    complexity: float | None = None
    tokens: int | None = None  # expected
    models: tuple[str, ...] = ()  # preferred, best first
    fallbacks: tuple[str, ...] = ()
    failed: int = 0  # attempts that failed before


class User(NamedTuple):
    """What routing uses of an agent."""

    type: str = "generic"
    models: tuple[str, ...] = ()


class Route(NamedTuple):
    """`model` None: only the tier is known. `waits`: every suitable model cools off."""

    model: str | None
    tier: str | None
    why: str
    waits: bool = False
    by_rule: bool = False  # not by the task's own list


def wanted_of(task: Task, constraints: Mapping[str, Any], attempt: int, tokens: int | None) -> Wanted:
    return Wanted(
        task.priority, task.type, task.tags, constraints.get("complexity"), tokens, task.models, task.fallback_models,
        attempt - 1,
    )  # fmt: skip


def route(tiers: Tiers, wanted: Wanted, user: User, is_limited: Callable[[str], bool] = lambda _: False) -> Route:
    """The model for an attempt. Preferences are not binding: an agent that has none of them gets one by the rules."""
    found = _preferred(tiers, wanted, user, is_limited)
    if found is not None:
        return found
    tier, why = tier_for(tiers, wanted)
    choices = _choices(tiers, tier, user)
    if not choices:
        return Route(None, tier, f"{tier} tier: {why}", by_rule=True)
    first = choices[0]
    model = next((choice for choice in choices if not is_limited(choice)), None)
    if model is None:
        said = f"{tier} tier: {why}; {first} is rate limited, and so are its peers"
        return Route(first, tier, said, waits=True, by_rule=True)
    place = tiers.place_of(model)
    said = f"{tier} tier: {why}"
    if model != first:
        said += f"; {first} is rate limited"
    elif place is not None and place.tier != tier:
        said += f"; {model} is the closest model the agent has"
    return Route(model, place.tier if place else None, said, by_rule=True)


def tier_for(tiers: Tiers, wanted: Wanted) -> tuple[str, str]:
    """The tier by the rules, and why."""
    rules = tiers.rules
    if tier_of(wanted.priority) == "critical":
        return TOP, "critical priority"
    if wanted.complexity is not None and wanted.complexity > rules.top_above_complexity:
        return TOP, f"complexity {wanted.complexity:g} is above {rules.top_above_complexity:g}"
    word = next((word for word in (wanted.type, *wanted.tags) if word in rules.boilerplate), None)
    if word is not None:
        return SMALL, f"tagged `{word}`"
    if wanted.tokens is not None and wanted.tokens < rules.small_below_tokens:
        return SMALL, f"about {wanted.tokens:,} tokens expected, fewer than {rules.small_below_tokens:,}"
    return MIDDLE, "default"


def _preferred(tiers: Tiers, wanted: Wanted, user: User, is_limited: Callable[[str], bool]) -> Route | None:
    """By the task's own list; None where it has none, or none that this agent could use."""
    if wanted.failed >= retry.FALLBACK_AFTER and wanted.fallbacks:
        preferred, said = _usable(tiers, wanted.fallbacks, user), f"the task's fallback after {wanted.failed} failures"
        usable = preferred
    else:
        preferred, said = _usable(tiers, wanted.models, user), "preferred by the task"
        usable = preferred + (_usable(tiers, wanted.fallbacks, user) if wanted.models else [])
    if not usable:
        return None
    model = next((name for name in usable if not is_limited(name)), None)
    if model is None:
        return Route(usable[0], _tier(tiers, usable[0]), f"{said}, but {usable[0]} is rate limited", waits=True)
    if model == usable[0] and preferred:
        return Route(model, _tier(tiers, model), said)
    place = "next preference" if model in preferred else "fallback"
    why = f"{usable[0]} is rate limited; " if preferred else ""
    return Route(model, _tier(tiers, model), f"{why}it is the task's {place}")


def _tier(tiers: Tiers, model: str) -> str | None:
    place = tiers.place_of(model)
    return place.tier if place else None


def _usable(tiers: Tiers, names: Iterable[str], user: User) -> list[str]:
    """Those that the agent could use, as far as known: a model that is not in the table might be its own."""
    if user.models:
        return [name for name in names if any(tiers.is_same(name, own) for own in user.models)]
    family = tiers.family_of(user.type)
    if family is None:
        return list(names)
    return [name for name in names if (place := tiers.place_of(name)) is None or place.family == family]


def _choices(tiers: Tiers, tier: str, user: User) -> list[str]:
    """The agent's models, those of the tier first."""
    order = (tier, *_INSTEAD[tier])
    if user.models:
        placed = [(name, _tier(tiers, name)) for name in user.models]
        known = [name for wanted in order for name, its in placed if its == wanted]
        return known + [name for name, its in placed if its is None]
    family = tiers.family_of(user.type)
    return [] if family is None else [tiers.model(family, each, user.type) for each in order]
