"""What tokens cost: a price table, and exact sums of money.

The table ships as data (`data/prices.json`) and is passed in; a user's prices override it. A model that is not in it
has no price, and the answer shows that: money is never guessed. A cost reported by the agent takes precedence; the
table is for agents that report only tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.money import parse_usd

MILLION = 1_000_000
KINDS = ("fresh", "cached", "written", "output")
# Makers of models: a bare name is searched there.
BARE = (
    "anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "zai", "minimax", "meta", "cohere",
    "perplexity", "cursor",
)  # fmt: skip
ALSO = {
    "amazon-bedrock": "aws", "bedrock": "aws", "copilot": "github-copilot", "gemini": "google",
    "google-vertex": "google", "moonshot": "moonshotai", "vertex": "google", "vertex_ai": "google", "xai": "x-ai",
    "z-ai": "zai",
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A host with ids in its own format: `us.anthropic.claude-…-v1:0`.
_BEDROCK = re.compile(r"(?:[a-z-]+\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|minimax|mistral|openai|qwen)\.")
_REMARK = re.compile(r"\[[^\]]*\]$")  # Claude Code's `claude-opus-4-6[1m]`


class Rate(NamedTuple):
    """Nano-dollars per million tokens of each kind. `about`: longer prompts or busy hours may cost more."""

    fresh: int
    cached: int
    written: int
    output: int
    about: bool = False

    def cost(self, *, fresh: int = 0, cached: int = 0, written: int = 0, output: int = 0) -> int:
        """Nano-dollars, rounded once, halves up."""
        total = fresh * self.fresh + cached * self.cached + written * self.written + output * self.output
        return (total + MILLION // 2) // MILLION


class Priced(NamedTuple):
    """A model of the table under its own name, with its price at the requested time."""

    provider: str
    model: str
    rate: Rate


class _Rate(msgspec.Struct, frozen=True):
    fresh: int = 0
    cached: int | None = None
    written: int | None = None
    output: int = 0
    about: bool = False
    since: str = ""  # a day, in UTC


class _Model(msgspec.Struct, frozen=True):
    id: str
    match: dict[str, Any]
    rates: tuple[_Rate, ...]


class _Provider(msgspec.Struct, frozen=True):
    id: str
    models: tuple[_Model, ...]


class _Table(msgspec.Struct, frozen=True):
    source: str
    providers: tuple[_Provider, ...]


class Prices:
    """A price table, with a user's prices first."""

    def __init__(self, table: bytes, own: Mapping[str, Any] | None = None) -> None:
        """`own`: by model, dollars per million tokens as texts: `{"my-model": {"fresh": "3", "output": "15"}}`.

        A name that ends in `*` is a prefix; the longest match is taken.
        """
        decoded = msgspec.json.decode(table, type=_Table)
        self.source = decoded.source
        self._providers = {provider.id: provider for provider in decoded.providers}
        self._own = {name.lower(): _own_rate(name, given) for name, given in (own or {}).items()}

    def find(self, model: str, at: int) -> Priced | None:
        """The price of a model at an instant (microseconds UTC), by an agent's name for it; None: unknown."""
        name = _REMARK.sub("", model.strip().lower())
        if not name or len(name) > limits.MODEL_NAME:
            return None
        own = self._find_own(name)
        if own is not None:
            return own
        day = (_EPOCH + timedelta(microseconds=at)).date().isoformat()
        for provider, rest in _places(name, self._providers):
            for known in self._providers[provider].models:
                if _fits(known.match, rest):
                    rate = _rate_on(known.rates, day)
                    return None if rate is None else Priced(provider, known.id, rate)
        return None

    def models(self) -> list[tuple[str, str]]:
        """Provider and name of every model in the table."""
        return [(provider.id, model.id) for provider in self._providers.values() for model in provider.models]

    def _find_own(self, name: str) -> Priced | None:
        if name in self._own:
            return Priced("own", name, self._own[name])
        begins = [own for own in self._own if own.endswith("*") and name.startswith(own[:-1])]
        best = max(begins, key=len, default=None)
        return None if best is None else Priced("own", best, self._own[best])


def _places(name: str, providers: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Where to search a model, and by which name: at the provider in its name, else at the makers."""
    if _BEDROCK.match(name) and "aws" in providers:
        yield "aws", name
    for separator in ("/", ":"):
        first, found, rest = name.partition(separator)
        first = ALSO.get(first, first)
        if found and rest and first in providers:
            yield first, rest
    if "/" in name and "openrouter" in providers:
        yield "openrouter", name
    last = name.rpartition("/")[2]  # `models/gemini-…`, and the deployments of some gateways
    for provider in BARE:
        if provider in providers:
            yield provider, last


def _fits(match: Mapping[str, Any], name: str) -> bool:
    [(kind, wanted)] = match.items()
    if kind == "any":
        return any(_fits(each, name) for each in wanted)
    if kind == "all":
        return all(_fits(each, name) for each in wanted)
    if kind == "equals":
        return bool(name == wanted)
    if kind == "starts":
        return name.startswith(wanted)
    if kind == "ends":
        return name.endswith(wanted)
    if kind == "contains":
        return wanted in name
    return kind == "regex" and _compiled(wanted).search(name) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)  # of the shipped table, never of a user


def _rate_on(rates: Iterable[_Rate], day: str) -> Rate | None:
    """The last price that had begun by that day."""
    found = None
    for rate in rates:
        if rate.since <= day:
            found = rate
    if found is None:
        return None
    # Without their own price, cached and written tokens cost as much as fresh ones.
    cached = found.fresh if found.cached is None else found.cached
    written = found.fresh if found.written is None else found.written
    return Rate(found.fresh, cached, written, found.output, found.about)


def _own_rate(name: str, given: Any) -> Rate:
    where = f"prices.{name[:60]}"
    if not isinstance(given, Mapping) or not given.keys() <= set(KINDS) or not {"fresh", "output"} <= given.keys():
        raise InvalidInput(
            f"{where}: needs dollars per million tokens: fresh and output, and cached and written where they differ"
        )
    amounts = {}
    for kind, amount in given.items():
        if not isinstance(amount, str):
            raise InvalidInput(f"{where}.{kind}: {amount!r:.40} is not a text", 'write it as in "0.25": money is exact')
        amounts[kind] = parse_usd(amount, f"{where}.{kind}")
    fresh = amounts["fresh"]
    return Rate(fresh, amounts.get("cached", fresh), amounts.get("written", fresh), amounts["output"])
