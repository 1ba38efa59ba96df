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
