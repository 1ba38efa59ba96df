"""Models: tiers, the model that an attempt should use, and estimates of a task's tokens.

A *family* is one maker's models; a *tier* is small, middle or top. The table of tiers ships as data (`data/tiers.json`)
and is passed in, overridden by a user's values. It is read as plain values, since every claim names a model and startup
must stay fast; a user's file is checked against `tiers_shape.py` first, and so is the shipped one, by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from tenure.core import limits
from tenure.core.priority import tier_of
from tenure.core.records import Finished, LikeTasks, Model, Task, Usage, replace
from tenure.core.retry import LONGEST_COOL_OFF, cool_off

SMALL, MIDDLE, TOP = TIERS = ("small", "middle", "top")


class TierPosition(msgspec.Struct, frozen=True):
    family: str
    tier: str


class Offered(msgspec.Struct, frozen=True):
    """One model of the table."""

    family: str
    tier: str
    model: str


class Rules(msgspec.Struct, frozen=True):
    top_above_complexity: float
    small_below_tokens: int
    boilerplate: frozenset[str]  # types and tags


class Tiers:
    def __init__(self, table: bytes, own: Mapping[str, Any] | None = None) -> None:
        """`own` overrides the table key by key; raises InvalidInput where it does not fit."""
        whole: dict[str, Any] = msgspec.json.decode(table)
        if own:
            from tenure.core.tiers_shape import checked

            whole = checked(_laid_over(whole, own))
        self.tiers: dict[str, dict[str, Any]] = whole["tiers"]  # what each is for, and good at
        self.split: dict[str, int] = whole["split"]  # hundredths of a task's tokens, by what they are priced as
        rules = whole["rules"]
        self.rules = Rules(
            rules["top_above_complexity"], rules["small_below_tokens"], frozenset(rules["boilerplate"])
        )  # fmt: skip
        self._families: dict[str, dict[str, Any]] = whole["families"]
        self._by_agent = {type: name for name, its in self._families.items() for type in its.get("agents", ())}
        called = [its[tier].get("called", {}) for its in self._families.values() for tier in TIERS]
        self._aliases = frozenset(name for names in called for name in names.values())
        self._placed: dict[str, TierPosition | None] = {}

    def family_of(self, agent_type: str) -> str | None:
        return self._by_agent.get(agent_type)

    def model(self, family: str, tier: str, agent_type: str = "") -> str:
        """The family's model of that tier, by the name that agents of this type use."""
        place = self._families[family][tier]
        return str(place.get("called", {}).get(agent_type, place["model"]))

    def offered(self) -> list[Offered]:
        return [Offered(family, tier, self.model(family, tier)) for family in self._families for tier in TIERS]

    def place_of(self, name: str) -> TierPosition | None:
        """Family and tier of any model name; an unknown model of a known family is in the middle tier."""
        if name not in self._placed:
            if len(self._placed) >= limits.MODELS_CACHED:
                self._placed.clear()
            self._placed[name] = self._find(name)
        return self._placed[name]

    def _find(self, name: str) -> TierPosition | None:
        known = known_as(name)
        words = known.replace("_", "-").replace(":", "-").split("-")
        for family, its in self._families.items():
            begins = tuple(its["begins"])
            if not any(part.startswith(begins) for word in words for part in (word, word.rpartition(".")[2])):
                continue
            for tier in TIERS:
                if known == known_as(its[tier]["model"]):
                    return TierPosition(family, tier)
            for tier in (SMALL, TOP, MIDDLE):  # `gpt-5.1-codex-mini` is a small one
                if any(word in words for word in its[tier].get("like", ())):
                    return TierPosition(family, tier)
            return TierPosition(family, MIDDLE)
        return None

    def is_alias(self, name: str) -> bool:
        """Whether it is an agent's alias for any model of a tier, and not a model's own name."""
        return name in self._aliases

    def is_same(self, one: str, other: str) -> bool:
        """Whether two names mean one model. An alias means every model of its tier."""
        if known_as(one) == known_as(other):
            return True
        if not (self.is_alias(one) or self.is_alias(other)):
            return False
        place = self.place_of(one)
        return place is not None and place == self.place_of(other)


def _laid_over(under: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    return under | {
        key: _laid_over(under[key], value) if isinstance(under.get(key), dict) and isinstance(value, Mapping) else value
        for key, value in over.items()
    }


@lru_cache(maxsize=limits.MODELS_CACHED)
def known_as(name: str) -> str:
    """A model's name without host, date and remark: limits of `anthropic/claude-opus-5-20260101` are claude-opus-5's.

    Without regular expressions, whose compilation would cost each start more than all of this.
    """
    bare = name.strip().lower().rpartition("/")[2]
    if bare.endswith("]"):
        bare = bare[: bare.rfind("[")]  # Claude Code's `claude-opus-4-6[1m]`
    version = bare.rpartition("-v")[2]
    if version.replace(":", "").isdigit() and ":" in version:
        bare = bare.rpartition("-v")[0]  # `…-v1:0` of Bedrock
    head, _, date = bare.replace("@", "-").rpartition("-")
    if len(date) == 8 and date.isdigit():
        return head
    parts = bare.rsplit("-", 3)
    if [len(part) for part in parts[1:]] == [4, 2, 2] and all(part.isdigit() for part in parts[1:]):
        return parts[0]
    return bare


# --- the model of an attempt: the task's own preferences first, else the tier for its size ------------------
#
# An agent's models are those it registered, else those of its type; for an agent with neither only the tier is known. A
# model that cools off after a rate limit is skipped where another may replace it. This is advice to the holder: a claim
# waits only where all models that the agent could use cool off.

# Where a tier's model cools off: prefer a more expensive one to a weaker one, and a weaker one to waiting.
_INSTEAD = {SMALL: (MIDDLE, TOP), MIDDLE: (TOP, SMALL), TOP: (MIDDLE, SMALL)}
FALLBACK_AFTER = 2  # failed attempts until the fallback models take over


class Wanted(msgspec.Struct, frozen=True):
    """What routing uses of a task at one attempt."""

    priority: int
    type: str
    tags: Sequence[str] = ()
    complexity: float | None = None
    tokens: int | None = None  # expected
    models: tuple[str, ...] = ()  # preferred, best first
    fallbacks: tuple[str, ...] = ()
    failed: int = 0  # attempts that failed before


class User(msgspec.Struct, frozen=True):
    """What routing uses of an agent."""

    type: str = "generic"
    models: tuple[str, ...] = ()


class Route(msgspec.Struct, frozen=True):
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
        reason = f"{tier} tier: {why}; {first} is rate limited, and so are its peers"
        return Route(first, tier, reason, waits=True, by_rule=True)
    place = tiers.place_of(model)
    reason = f"{tier} tier: {why}"
    if model != first:
        reason += f"; {first} is rate limited"
    elif place is not None and place.tier != tier:
        reason += f"; {model} is the closest model the agent has"
    return Route(model, place.tier if place else None, reason, by_rule=True)


# Where no model is in trouble the answer follows from the arguments alone, and most tasks of a project are alike.
free_route = lru_cache(maxsize=1024)(partial(route, is_limited=lambda _: False))


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
    if wanted.failed >= FALLBACK_AFTER and wanted.fallbacks:
        preferred, reason = (
            _usable(tiers, wanted.fallbacks, user),
            f"the task's fallback after {wanted.failed} failures",
        )
        usable = preferred
    else:
        preferred, reason = _usable(tiers, wanted.models, user), "preferred by the task"
        usable = preferred + (_usable(tiers, wanted.fallbacks, user) if wanted.models else [])
    if not usable:
        return None
    model = next((name for name in usable if not is_limited(name)), None)
    if model is None:
        return Route(usable[0], _tier(tiers, usable[0]), f"{reason}, but {usable[0]} is rate limited", waits=True)
    if model == usable[0] and preferred:
        return Route(model, _tier(tiers, model), reason)
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


def models_for(task: Task, attempt: int) -> tuple[str, ...]:
    """Which models the attempt should use: the fallbacks once two attempts have failed."""
    if attempt > FALLBACK_AFTER and task.fallback_models:
        return task.fallback_models
    return task.models


def model_limited(model: Model, now: int, retry_after: int | None) -> Model:
    troubles = model.troubles + 1
    until = now + (retry_after if retry_after is not None else cool_off(troubles))
    return replace(model, troubles=troubles, cool_until=max(until, model.cool_until or 0))


def is_forgiven(model: Model, now: int) -> bool:
    """Whether its failures are so old that they no longer matter."""
    return (model.cool_until or 0) + LONGEST_COOL_OFF < now


# --- estimates: as given in the task, from like tasks, or by its complexity, in this order ------------------
#
# Like tasks have the same type and size. The last few finished tasks of each such pair are kept (`LikeTasks`), and once
# there are enough of them their median is the next one's estimate. Tokens are counted once: cached ones were counted
# when they were first read.

A_POINT = 1000  # tokens per point of complexity …
TESTS, BUFFER, PHASE = 1.2, 1.3, 1.15  # … and the factors on top of it
ENOUGH = 5  # finished tasks until their median counts
KEPT = limits.FINISHED_KEPT
MOST_SIZES = limits.ESTIMATE_SIZES
NEAR = 0.2  # an estimate within 20 % of the actual usage was good

GIVEN, LIKE, COMPLEXITY, NOTHING = "said", "like tasks", "complexity", "nothing"
Typical = Mapping[str, tuple[int, int | None]]  # as in Project


class Expected(msgspec.Struct, frozen=True):
    tokens: int | None
    cost: int | None  # nano-dollars of like tasks; None where unknown
    source: str


_UNKNOWN = Expected(None, None, NOTHING)


def expected(type: str, constraints: Mapping[str, Any], typical: Typical) -> Expected:
    """The estimate of a task, and its basis."""
    if not constraints and not typical:
        return _UNKNOWN
    tokens, cost = typical.get(like(type, size_of(constraints)), (None, None))
    given = constraints.get("estimated_tokens")
    if given is not None:
        return Expected(given, None, GIVEN)
    if tokens is not None:
        return Expected(tokens, cost, LIKE)
    complexity = constraints.get("complexity")
    if complexity is not None:
        return Expected(by_complexity(complexity), None, COMPLEXITY)
    return Expected(None, None, NOTHING)


def by_complexity(points: float) -> int:
    return max(1, round(points * A_POINT * TESTS * BUFFER * PHASE))


def split(tokens: int, hundredths: Mapping[str, int]) -> dict[str, int]:
    """This many tokens split by price class; none is lost in rounding."""
    parts = {kind: tokens * share // 100 for kind, share in hundredths.items()}
    last = next(reversed(parts))
    return parts | {last: parts[last] + tokens - sum(parts.values())}


def size_of(constraints: Mapping[str, Any]) -> str:
    """The size class: points of complexity, rounded up; `?` for a task of unknown size."""
    points = constraints.get("complexity")
    if points is None:
        tokens = constraints.get("estimated_tokens")
        if tokens is None:
            return "?"
        points = tokens / by_complexity(1)
    return f"{limits.ESTIMATE_SIZE}+" if points > limits.ESTIMATE_SIZE else str(max(1, -int(-points // 1)))


def like(type: str, size: str) -> str:
    """The id of the history of such tasks; no type has a `|`."""
    return f"{type}|{size}"


# --- learning -----------------------------------------------------------------------------------------------


def tokens_of(usage: Usage) -> int:
    return usage.fresh + usage.written + usage.output


def learnt(row: LikeTasks, finished: Finished) -> LikeTasks:
    """The row with one more task; a task already in it keeps its estimate and is counted once."""
    before = next((f for f in row.finished if f.task == finished.task), None)
    if before is not None:
        finished = replace(finished, estimate=before.estimate)
    others = tuple(f for f in row.finished if f is not before)
    return replace(row, finished=(*others, finished)[-KEPT:])


def typical_of(row: LikeTasks) -> tuple[int, int | None] | None:
    """Median tokens and cost, once there are enough."""
    if len(row.finished) < ENOUGH:
        return None
    costs = [f.cost for f in row.finished if f.cost is not None]
    return median([f.tokens for f in row.finished]), median(costs) if len(costs) >= ENOUGH else None


def median(values: Sequence[int]) -> int:
    """Of at least one; between the two in the middle of an even number."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) // 2


# --- how good estimates were ----------------------------------------------------------------------------------


class Goodness(msgspec.Struct, frozen=True):
    """Shares are of one: an error of 0.2 is 20 % of the actual usage."""

    tasks: int  # that had an estimate
    median_error: float | None
    within: float | None  # the share of them whose error was at most NEAR


def goodness(finished: Sequence[Finished]) -> Goodness:
    errors = [abs(f.estimate - f.tokens) / f.tokens for f in finished if f.estimate is not None and f.tokens > 0]
    if not errors:
        return Goodness(0, None, None)
    middle = median([round(error * 1_000_000) for error in errors]) / 1_000_000
    return Goodness(len(errors), middle, sum(error <= NEAR for error in errors) / len(errors))
