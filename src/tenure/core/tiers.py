"""Tiers of models as data: small, middle and top, a model of each for every family, and the rules that choose.

A *family* is one maker's models. The table ships as data (`data/tiers.json`) and is passed in, overridden by a user's
values. It is read as plain values, since every claim names a model and startup must stay fast; a user's file is checked
against `tiers_shape.py` first, and so is the shipped one, by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits

SMALL, MIDDLE, TOP = TIERS = ("small", "middle", "top")
MOST_REMEMBERED = limits.MODELS_CACHED


class TierPosition(NamedTuple):
    family: str
    tier: str


class Offered(NamedTuple):
    """One model of the table."""

    family: str
    tier: str
    model: str


class Rules(NamedTuple):
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
            if len(self._placed) >= MOST_REMEMBERED:
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


@lru_cache(maxsize=MOST_REMEMBERED)
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
