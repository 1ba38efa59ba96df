"""Instants: microseconds in rows, RFC 3339 in UTC for people and other programs."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, lru_cache

_INSTANTS = frozenset(
    {
        "deadline", "not_before", "time", "until", "since", "down_since", "at", "now", "last_seen", "last_activity",
        "created_from",
    }
)  # fmt: skip
_ENDINGS = ("_at", "_until")


@cache  # there are few names: those of fields
def is_instant(name: str) -> bool:
    return name in _INSTANTS or name.endswith(_ENDINGS)


@lru_cache(4096)  # the answers of a batch share most instants
def format_instant(instant: int) -> str:
    second, micros = divmod(instant, 1_000_000)
    return f"{_second(second)}.{micros:06}Z"


@lru_cache(4096)  # the others fall into few seconds
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def parse_instant(text: str) -> int:
    """The microseconds of an RFC 3339 text; ValueError where it is not valid, or has no zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text[:80]!r} has no time zone: end it with Z")
    return round(moment.timestamp() * 1e6)


def lasting(seconds: float) -> str:
    """A duration in one or two units: `0.4 s`, `12 s`, `5 min`, `3 h 20 min`, `2 d 4 h`."""
    if seconds < 0:
        return "-" + lasting(-seconds)
    if seconds < 1:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "0 s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if hours < 1:
        return f"{minutes} min {whole % 60} s" if minutes < 10 and whole % 60 else f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{days} d {hours % 24} h" if hours % 24 and days < 10 else f"{days} d"
