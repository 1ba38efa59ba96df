"""The parsed output of an agent: its last message, its usage and its failure, the same for every CLI."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from tenure.core.commands import Totals
from tenure.core.money import parse_usd, usd_text

TAIL = 4000  # characters of errors that a failure quotes


class Failure(NamedTuple):
    error_class: str  # of core.retry.CLASSES
    message: str
    retry_after: float | None = None
    model: str | None = None


class AgentOutput(NamedTuple):
    text: str = ""  # the agent's last message
    data: Any = None  # a structured result; without one `text` is the result
    summary: str = ""
    failure: Failure | None = None
    is_whole: bool = False  # the agent marked this as its result; its output was not cut off
    session: str | None = None  # the agent's own session, to continue it by hand
    notes: tuple[str, ...] = ()  # warnings for a person, such as denied tools


class Exit(NamedTuple):
    code: int  # negative: the signal
    errors: str  # the end of stderr


class Reader(Protocol):
    """Gets the lines of one agent's stdout as they come."""

    def feed(self, line: str) -> None: ...

    def usage(self) -> tuple[Totals, ...]:
        """Totals since the start, as far as they are known."""

    def finish(self, exit: Exit) -> AgentOutput: ...


class EventReader:
    """For agents that print one JSON event a line; other lines are ignored."""

    def __init__(self) -> None:
        self._meter = Meter()
        self._model: str | None = None
        self._session: str | None = None

    def feed(self, line: str) -> None:
        event = event_of(line)
        if event is not None:
            self._event(event)

    def usage(self) -> tuple[Totals, ...]:
        return self._meter.totals()

    def _event(self, event: dict[str, Any]) -> None:
        raise NotImplementedError


class Meter:
    """Totals per model. `fresh` is uncached input, also where the agent counts it differently."""

    def __init__(self) -> None:
        self._models: dict[str, Totals] = {}

    def set(self, model: str, **totals: Any) -> None:
        name = named(model)
        self._models[name] = Totals(model=name, **totals)

    def add(self, model: str, *, cost: float | None = None, **tokens: int) -> None:
        name = named(model)
        old = self._models.get(name, Totals(model=name))
        sums: dict[str, Any] = {part: getattr(old, part) + count for part, count in tokens.items()}
        if cost is not None:
            sums["cost_usd"] = usd(float(old.cost_usd or 0) + cost)
        self._models[name] = msgspec.structs.replace(old, **sums)

    def took(self, milliseconds: Any) -> None:
        """The total duration of model calls, counted for the model with the most output."""
        if isinstance(milliseconds, (int, float)) and self._models:
            most = max(self._models.values(), key=lambda t: t.output)
            self._models[most.model] = msgspec.structs.replace(most, duration=max(0.0, milliseconds / 1000))

    def totals(self) -> tuple[Totals, ...]:
        return tuple(t for t in self._models.values() if t.fresh or t.cached or t.written or t.output)


def named(model: str) -> str:
    """A model's name in the form that usage accepts."""
    return re.sub(r"[,|\s]+", "-", model)[:200] or "unknown"


def usd(cost: float) -> str:
    return f"{cost:.9f}".rstrip("0").rstrip(".")


def event_of(line: str) -> dict[str, Any] | None:
    """The JSON object on a line; None for any other line."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        value = msgspec.json.decode(line.encode(errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def count(tokens: Mapping[str, Any], name: str) -> int:
    value = tokens.get(name)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else 0


# --- classes of failure -------------------------------------------------------------------------------------

_STATUS = re.compile(r"\b(?:status(?: code)?:?|API Error:|error|HTTP|code:?)\W{0,3}(\d{3})\b", re.IGNORECASE)
_WORDS = {
    "auth_failure": (
        r"authenticat|unauthori[sz]ed|invalid (?:api|x-api)[ -]?key|not logged in|please (?:log|sign) in|logged out"
        r"|api key (?:not|is) |no api key|credit balance|forbidden"
    ),
    "rate_limit": r"rate.?limit|too many requests|overloaded|quota|resource.?exhausted|usage limit|limit reached",
    "budget_exceeded": r"maximum budget|budget (?:exceeded|exhausted)",
    "upstream_timeout": (
        r"high demand|etimedout|econnre(?:fused|set)|enotfound|eai_again|fetch failed|stream disconnected"
        r"|socket hang up|connection error|network error|timed out|bad gateway|service unavailable"
        r"|internal server error"
    ),
    # A misspelt model must not use up the attempts of every task.
    "environment": r"(?:invalid|unknown) model|model.{0,60}(?:not found|not supported|does not exist|not exist)",
}
_AFTER = re.compile(
    r"(?:retry.?after|retry in|try again in|reset after)\W{0,4}"
    r"(?:(\d+)h)?\s*(?:(\d+)m(?!s))?\s*(\d+(?:\.\d+)?)?\s*(ms|s)?",
    re.IGNORECASE,
)

_RESET = re.compile(r"limit reached\|(\d{10})\b")  # an instant, as Claude Code reports a subscription's limit


def of_status(status: int) -> str | None:
    """The error class of an HTTP status; None where the status does not determine one."""
    if status in (401, 403):
        return "auth_failure"
    if status in (429, 529):
        return "rate_limit"
    if status == 404:
        return "environment"  # an unknown model or address
    if status == 408 or status >= 500:
        return "upstream_timeout"
    return None


def class_of(message: str, default: str = "task") -> str:
    """The error class of a message; a status in it takes precedence over its words."""
    for status in _STATUS.findall(message):
        found = of_status(int(status))
        if found is not None:
            return found
    lowered = message.lower()
    return next((name for name, words in _WORDS.items() if re.search(words, lowered)), default)


def retry_after_of(message: str, now: float | None = None) -> float | None:
    """Seconds that a message asks to wait, or None; `now` in seconds since 1970."""
    reset = _RESET.search(message)
    if reset is not None:
        return max(0.0, float(reset[1]) - (time.time() if now is None else now))
    for hours, minutes, seconds, unit in _AFTER.findall(message):
        if hours or minutes or seconds:
            rest = float(seconds or 0) / (1000 if unit.lower() == "ms" else 1)
            return int(hours or 0) * 3600 + int(minutes or 0) * 60 + rest
    return None


def failed(message: str, default: str = "task", *, status: object = None, model: str | None = None) -> Failure:
    """A failure from a message, and from an HTTP status where the agent gives one."""
    name = (of_status(status) if isinstance(status, int) else None) or class_of(message, default)
    after = retry_after_of(message) if name == "rate_limit" else None
    return Failure(name, message.strip()[-TAIL:], after, model if name == "rate_limit" else None)


_TOKENS = ("fresh", "cached", "written", "output")


def _pair(totals: Totals) -> tuple[str, str]:
    return totals.model, totals.operation


class ClaimUsage:
    def __init__(self) -> None:
        self._before: dict[tuple[str, str], Totals] = {}  # reported under earlier generations
        self._reported: dict[tuple[str, str], Totals] = {}  # reported in total

    def due(self, totals: tuple[Totals, ...]) -> tuple[Totals, ...]:
        """The totals since the agent's start that were not reported yet, as totals of the current claim."""
        return tuple(self._own(t) for t in totals if self._reported.get(_pair(t)) != t)

    def own(self, totals: tuple[Totals, ...]) -> tuple[Totals, ...]:
        """All totals, as totals of the current claim."""
        return tuple(self._own(t) for t in totals)

    def reported(self, totals: tuple[Totals, ...]) -> None:
        self._reported |= {_pair(t): t for t in totals}

    def moved(self) -> None:
        """The agent continues under another generation."""
        self._before = dict(self._reported)

    def _own(self, totals: Totals) -> Totals:
        before = self._before.get(_pair(totals))
        if before is None:
            return totals
        changes: dict[str, object] = {n: max(0, getattr(totals, n) - getattr(before, n)) for n in _TOKENS}
        changes["duration"] = max(0.0, totals.duration - before.duration)
        if totals.cost_usd is not None:
            spent = parse_usd(totals.cost_usd) - parse_usd(before.cost_usd or "0")
            changes["cost_usd"] = usd_text(max(0, spent))
        return msgspec.structs.replace(totals, **changes)
