"""The kinds of values that options take: durations, instants, JSON, text from a file or stdin."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(text: str) -> float:
    """`90`, `90s`, `15m`, `2h`, `3d` as seconds."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text and text[-1] in UNITS else (text, 1)
    try:
        return float(number) * unit
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a duration; as in 90, 90s, 15m, 2h, 3d") from None


def lease(text: str) -> float | str:
    """A duration, or `auto`."""
    return text if text == "auto" else seconds(text)


def pair(text: str) -> tuple[str, str]:
    """`name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def secret(text: str) -> tuple[str, str]:
    """`NAME=VALUE`; the value may be `@FILE`, `-` for stdin, or `env:VARIABLE`. No error repeats the value."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError("a secret is NAME=VALUE, NAME=@FILE, NAME=- or NAME=env:VARIABLE")
    if value.startswith("env:"):
        found = os.environ.get(value[4:])
        if not found:
            raise ArgumentTypeError(f"{name}: the variable {value[4:]} is not set")
        return name, found
    found = contents(value)
    return name, found.removesuffix("\n") if found != value else found  # the last line of a file ends somewhere


class In(float):
    """Seconds from the store's now: this host's clock may be another."""


def instant(text: str) -> int | In:
    """An instant in microseconds: `2026-03-01T12:00Z`, a date; or how far it is from now (`2h`, `3d`)."""
    from datetime import datetime

    if text[:1].isdigit() and text[-1:] in UNITS:
        return In(seconds(text))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not an instant; as in 2026-03-01T12:00Z, 2026-03-01, 2h or 3d") from None
    return round(at.astimezone().timestamp() * 1e6)  # without a zone: the user's own


def at(when: int | In | None, now: Callable[[], int]) -> int | None:
    """The instant; a duration counts from the store's `now`."""
    return now() + round(when * 1e6) if isinstance(when, In) else when


def before(when: int | In | None, now: Callable[[], int]) -> int | None:
    """The instant; a duration counts back from the store's `now`."""
    return now() - round(when * 1e6) if isinstance(when, In) else when


def past(text: str) -> str | int | In:
    """A moment of the past: the sequence of an event, as text; else an instant, or how long ago it was."""
    return text if text.isascii() and text.isdecimal() else instant(text)


def moment(when: str | int | In | None, now: Callable[[], int]) -> str | None:
    """The moment as a query takes it."""
    if when is None or isinstance(when, str):
        return when
    from tenure.core.written_times import spell_instant

    at_ = before(when, now) or 0
    return spell_instant(at_ // 1_000_000 * 1_000_000 if isinstance(when, In) else at_)


def json_value(text: str) -> Any:
    """JSON as it stands, `@FILE`, or `-` for stdin. Anything else is refused: a shell easily drops quotes."""
    import msgspec

    from tenure.core.decoders import check_json
    from tenure.core.errors import InvalidInput

    source = contents(text)
    try:
        check_json(source, "JSON")
    except InvalidInput as error:
        raise ArgumentTypeError(f"{error.message}; {error.hint}") from None
    try:
        return msgspec.json.decode(source)
    except msgspec.DecodeError as error:
        raise ArgumentTypeError(f"not valid JSON: {error}; a text needs its quotes, as in '\"text\"'") from None
    except RecursionError:
        raise ArgumentTypeError("nested too deep; put it into a file and pass its name") from None


def contents(text: str) -> str:
    """The text itself, or what `-` (stdin) or `@FILE` holds. `@@` begins a text with one @; so does @ with spaces."""
    try:
        if text == "-":
            return sys.stdin.read()
        if text.startswith("@@"):
            return text[1:]
        if text.startswith("@") and os.path.exists(text[1:]):
            with open(text[1:], encoding="utf-8") as file:
                return file.read()
    except OSError as error:
        raise ArgumentTypeError(f"{text}: {error.strerror}") from None
    except UnicodeDecodeError:
        what = "what came on stdin" if text == "-" else text[1:]
        raise ArgumentTypeError(f"{what} is not UTF-8 text; save it as UTF-8") from None
    if text.startswith("@") and len(text) > 1 and not any(map(str.isspace, text)):
        raise ArgumentTypeError(f"there is no file {text[1:]}; @{text} is that text itself")
    return text


def retry_policy(text: str) -> dict[str, Any]:
    """A retry policy: the name of a strategy, or the whole as a JSON object."""
    if text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a way to retry; --max-attempts {text} limits the attempts")
    policy = json_value(text) if text[:1] in ("{", "@", "-") else {"strategy": text}
    if not isinstance(policy, dict):
        raise ArgumentTypeError(f"{text!r} is not a retry policy; as in exponential, or a JSON object")
    return policy


_SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "test-pass": ("command", str), "regex": ("pattern", contents), "json-schema": ("schema", json_value),
    "llm-judge": ("rubric", contents),
}  # fmt: skip


def contract(text: str) -> dict[str, Any]:
    """An output contract: the validator's name, and after `=` the one setting that it needs."""
    name, has_setting, rest = text.partition("=")
    settings: dict[str, Any] = {}
    if has_setting and name in _SETTINGS:
        setting, read = _SETTINGS[name]
        settings = {setting: read(rest)}
    elif has_setting:
        settings = json_value(rest)
    return {"validation": name} | ({"settings": settings} if settings else {})


def port(text: str) -> int:
    """A TCP port; 0: a free one."""
    if not text.isdecimal() or int(text) > 65_535:
        raise ArgumentTypeError(f"{text!r:.40} is not a port from 0 to 65535")
    return int(text)


def percent(text: str) -> int:
    try:
        return int(text.removesuffix("%"))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a percentage; as in 40 or 40%") from None


def priority(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text
