"""The shape of `data/tiers.json`, for users' overrides."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tenure.core.decoders import converted
from tenure.core.errors import InvalidInput

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Part = Annotated[int, Meta(ge=0, le=100)]
HINT = "the how-to page `Use cheaper models first` has an example"


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"use": "for"}):
    use: str = ""
    strengths: tuple[str, ...] = ()


class TiersShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    small: Tier
    middle: Tier
    top: Tier


class RulesShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    top_above_complexity: float
    small_below_tokens: int
    boilerplate: tuple[Name, ...]


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fresh: Part = 0
    cached: Part = 0
    written: Part = 0
    output: Part = 0


class PositionShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: Name  # its name in the price table
    like: tuple[Name, ...] = ()  # words in the names of this tier's models
    called: dict[str, Name] = {}  # its name for agents of a type


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    begins: Annotated[tuple[Name, ...], Meta(min_length=1)]  # how the names of its models begin
    small: PositionShape
    middle: PositionShape
    top: PositionShape
    agents: tuple[Name, ...] = ()  # types of agents that work with it


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tiers: TiersShape
    rules: RulesShape
    split: Split
    families: dict[Name, Family]


def checked(whole: dict[str, Any]) -> dict[str, Any]:
    """The table itself; raises InvalidInput that names the faulty field."""
    try:
        table = converted(whole, Table)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error), HINT) from None
    if sum(msgspec.structs.astuple(table.split)) != 100:
        raise InvalidInput("split must be hundredths of a task's tokens, 100 in total", HINT)
    return whole
