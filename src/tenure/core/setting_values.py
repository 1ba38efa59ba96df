"""What a setting may be, and how it is written: in TOML, and as a text (environment, command line)."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.errors import InvalidInput


class Setting(msgspec.Struct, frozen=True):
    type: type
    default: Any
    meaning: str
    words: tuple[str, ...] = ()  # of a text: its only values; of a number: texts that it takes besides


_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


class Seconds(float):
    """A duration: a number of seconds, or a text such as `10m`."""


class Port(int):
    """A TCP port; 0: a free one."""


class Priority(str):
    """A tier, or a number from 0 to 100."""

    __slots__ = ()


KINDS: dict[type, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list",
    Port: "a port from 0 to 65535",
    Seconds: "a number of seconds, or a duration as in 90s, 10m or 2h",
    Priority: "a number from 0 (critical) to 100, or one of critical, high, normal, low, background",
}  # fmt: skip


def from_toml(kind: type, words: tuple[str, ...], given: Any) -> Any:
    """The value of a setting, as TOML gives it; InvalidInput states what it must be.

    Of a text, `words` are its only values; a number takes them besides.
    """
    if kind is Priority:
        from tenure.core.priority import parse_priority  # few settings need it; keeps startup fast

        try:
            parse_priority(given)
        except (InvalidInput, TypeError):
            raise InvalidInput(f"must be {KINDS[kind]}") from None
        return given
    if isinstance(given, str):
        duration = _duration(given) if kind is Seconds else None
        if duration is not None:
            return duration
        if given in words or (kind is str and not words):
            return given
    elif isinstance(given, bool) or kind is bool:
        if isinstance(given, kind):
            return given
    elif isinstance(given, int | float) and issubclass(kind, float):
        return float(given)
    elif kind is Port:
        if isinstance(given, int) and 0 <= given <= 65_535:
            return given
    elif isinstance(given, kind):
        return given
    raise InvalidInput(f"must be {_wanted(kind, words)}")


def from_text(kind: type, words: tuple[str, ...], text: str) -> Any:
    """The value of a setting, written as a text; InvalidInput states what it must be."""
    if kind is bool and text.lower() in _TRUE + _FALSE:
        return text.lower() in _TRUE
    if issubclass(kind, int | float) and kind is not bool:
        try:
            return from_toml(kind, words, int(text) if issubclass(kind, int) else float(text))
        except ValueError:
            pass  # a duration, a word, or nothing
    return from_toml(kind, words, text)


def _duration(text: str) -> float | None:
    from tenure.core.written_times import SECOND, parse_duration  # the same

    found = parse_duration(text)
    return None if found is None else found / SECOND


def _wanted(kind: type, words: tuple[str, ...]) -> str:
    if kind is str and words:
        return f"one of {', '.join(words)}"
    return KINDS[kind] + "".join(f", or {word!r}" for word in words)
