"""A moment of a project's past, as people write it: an instant, or the sequence of an event."""

from __future__ import annotations

from typing import NamedTuple

from tenure.core.errors import InvalidInput

_LONGEST = 18  # digits of a sequence
_HINT = "as in 2026-03-01T18:00:00Z, or the sequence of an event, which `log` shows"


class Moment(NamedTuple):
    """Right after the event with this sequence; or at this instant, with all events up to it. One of them is set."""

    text: str
    sequence: int | None = None
    instant: int | None = None


def parse_moment(text: str) -> Moment:
    """The moment that the text names; InvalidInput where it is neither an RFC 3339 time nor a sequence."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        if len(text) > _LONGEST or int(text) < 1:
            raise InvalidInput(f"at {text[:40]!r} is not the sequence of an event", _HINT)
        return Moment(text, sequence=int(text))
    from tenure.core.written_times import parse_instant

    try:
        found = parse_instant(text, "at", 0)
    except InvalidInput as error:
        raise InvalidInput(error.message, _HINT) from None
    if found.after is not None:
        raise InvalidInput(f"at {text[:40]!r} is a duration, not a time", _HINT)
    return Moment(text, instant=found.instant)
