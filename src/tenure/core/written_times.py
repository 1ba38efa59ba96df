"""Times and durations as people write them: `2026-03-01T18:00:00Z`, `90s`, `2h 30m`, `3d`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import InvalidInput

SECOND = 1_000_000
_UNITS = {"ms": 1_000, "s": SECOND, "m": 60 * SECOND, "min": 60 * SECOND, "h": 3_600 * SECOND, "d": 86_400 * SECOND,
          "w": 7 * 86_400 * SECOND}  # fmt: skip
_PART = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?\s*(ms|min|s|m|h|d|w)(?![a-z])\s*")
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s*([Zz]|[+-]\d\d:?\d\d)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
LONGEST = limits.PLAN_DURATION
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str) -> int | None:
    """Microseconds of `2h`, `1d 12h`, `1.5h`; None where the text is not a duration."""
    at, total = 0, 0
    text = text.strip()
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        whole, fraction, unit = part.groups()
        total += int(whole) * _UNITS[unit]
        if fraction:
            total += int(fraction) * _UNITS[unit] // 10 ** len(fraction)
        at = part.end()
    return total if text else None


def spell_duration(microseconds: int) -> str:
    """The shortest text that `parse_duration` reads as this number."""
    for unit in ("w", "d", "h", "m", "s", "ms"):
        if microseconds and microseconds % _UNITS[unit] == 0:
            return f"{microseconds // _UNITS[unit]}{unit}"
    if not microseconds:
        return "0s"
    whole, rest = divmod(microseconds, SECOND)
    return f"{whole}.{rest:06d}".rstrip("0") + "s"


class When(NamedTuple):
    """An instant in microseconds UTC; `after` is the distance from now, where it was written as a duration."""

    instant: int
    after: int | None = None


def parse_instant(text: str, what: str, now: int) -> When:
    """An RFC 3339 instant, or a duration from now; InvalidInput for anything else."""
    text = text.strip()
    lasting = parse_duration(text.removeprefix("+").removeprefix("in "))
    if lasting is not None:
        if lasting > LONGEST:
            raise InvalidInput(f"{what} {text[:40]!r}: more than ten years from now")
        return When((now + lasting) // SECOND * SECOND, lasting)
    match = _INSTANT.fullmatch(text)
    if match is None:
        day = _DAY.fullmatch(text)
        hint = f"add the time of day: {text}T18:00:00Z" if day else "as in 2026-03-01T18:00:00Z, or 2h, or 3d"
        raise InvalidInput(f"{what} {text[:40]!r}: not a time", hint)
    year, month, day_, hour, minute, second, fraction, zone = match.groups()
    if zone is None:
        raise InvalidInput(
            f"{what} {text[:40]!r}: the time zone is missing", f"write {text[:40]}Z for UTC, or an offset as in +02:00"
        )
    try:
        offset = UTC if zone in "Zz" else _offset(zone)
        moment = datetime(
            int(year), int(month), int(day_), int(hour), int(minute), int(second or 0),
            int((fraction or "0")[:6].ljust(6, "0")), tzinfo=offset,
        )  # fmt: skip
        since = moment - _EPOCH
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{what} {text[:40]!r}: {error}") from None
    return When(since // timedelta(microseconds=1))


def _offset(zone: str) -> timezone:
    away = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return timezone(-away if zone[0] == "-" else away)


def spell_instant(instant: int) -> str:
    """RFC 3339 in UTC; microseconds only where there are any."""
    moment = _EPOCH + timedelta(microseconds=instant)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return text + (f".{moment.microsecond:06d}Z" if moment.microsecond else "Z")
