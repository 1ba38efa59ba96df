"""JSON as a tree with line numbers. Not with the YAML reader, which treats surrogate pairs and tabs differently."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right

from tenure.core import limits
from tenure.plans.nodes import (
    NODE_WEIGHT,
    Builder,
    Findings,
    Mapping,
    Node,
    Scalar,
    Sequence,
    SourcePosition,
    Unreadable,
)

_DECODER = json.JSONDecoder()  # for its strings alone, which it scans in C
_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
LONGEST_NUMBER = limits.PLAN_NUMBER


class Text:
    """A text and where its lines begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, at: int) -> SourcePosition:
        line = bisect_right(self.starts, at)
        return SourcePosition(line, at - self.starts[line - 1] + 1)


def read_tree(source: str, findings: Findings) -> Node:
    """The one value of the text; Unreadable where it is not valid JSON."""
    text = Text(source)
    builder = Builder(findings)
    at = _value_or_end(text, builder, _skip(source, 0))
    while builder.open:
        at = _step(text, builder, at)
    if at < len(source):
        raise _wrong(text, at, "more text after the end of the value")
    assert builder.root is not None
    return builder.root


def _skip(source: str, at: int) -> int:
    match = _SPACE.match(source, at)
    return match.end() if match else at


def _wrong(text: Text, at: int, what: str) -> Unreadable:
    found = f"found {text.text[at]!r}" if at < len(text.text) else "the text ends here"
    return Unreadable(text.place(at), "SYNTAX", f"not JSON: {what}; {found}")


def _step(text: Text, builder: Builder, at: int) -> int:
    """One member or item of the innermost open container, or its end."""
    source, holder = text.text, builder.open[-1]
    closing = "}" if isinstance(holder, Mapping) else "]"
    is_first = not (holder.entries if isinstance(holder, Mapping) else holder.items)
    if source.startswith(closing, at) and is_first:
        builder.put(builder.end())
        return _after(text, builder, at + 1)
    if isinstance(holder, Mapping):
        if not source.startswith('"', at):
            raise _wrong(text, at, "a name in double quotes is expected")
        key, end = _string(text, at)
        colon = _skip(source, end)
        if not source.startswith(":", colon):
            raise _wrong(text, colon, "a ':' is expected after the name")
        builder.key(key, text.place(at))
        at = _skip(source, colon + 1)
    return _value_or_end(text, builder, at)


def _value_or_end(text: Text, builder: Builder, at: int) -> int:
    source = text.text
    start = source[at : at + 1]
    place = text.place(at)
    if start == "{":
        builder.begin(Mapping(place=place, entries={}))
        return _skip(source, at + 1)
    if start == "[":
        builder.begin(Sequence(place=place, items=[]))
        return _skip(source, at + 1)
    if start == '"':
        value, end = _string(text, at)
        builder.put(Scalar(place=place, value=value, text=value, weight=NODE_WEIGHT + len(value)))
        return _after(text, builder, end)
    number = _NUMBER.match(source, at)
    if number:
        written = number.group()
        if len(written) > LONGEST_NUMBER:
            raise Unreadable(place, "TOO_LARGE", f"a number of {len(written)} digits")
        is_whole = number.group(1) is None and number.group(2) is None
        value_ = int(written) if is_whole else float(written)
        if not math.isfinite(value_):
            raise Unreadable(place, "INVALID_INPUT", f"{written}: too large a number")
        builder.put(Scalar(place=place, value=value_, text=written))
        return _after(text, builder, number.end())
    for word, meaning in _WORDS.items():
        if source.startswith(word, at):
            builder.put(Scalar(place=place, value=meaning, text=word))
            return _after(text, builder, at + len(word))
    raise _wrong(text, at, "a value is expected")


def _string(text: Text, at: int) -> tuple[str, int]:
    try:
        value, end = _DECODER.raw_decode(text.text, at)
    except json.JSONDecodeError as error:
        raise Unreadable(text.place(error.pos), "SYNTAX", f"not JSON: {error.msg}") from None
    return str(value), end


def _after(text: Text, builder: Builder, at: int) -> int:
    """Reads behind a finished value: a comma before the next one, or the ends of open containers."""
    source = text.text
    at = _skip(source, at)
    while builder.open:
        closing = "}" if isinstance(builder.open[-1], Mapping) else "]"
        if source.startswith(",", at):
            comma = at
            at = _skip(source, at + 1)
            if source.startswith(closing, at):
                raise _wrong(text, comma, "no comma may stand before the end")
            return at
        if not source.startswith(closing, at):
            raise _wrong(text, at, f"',' or {closing!r} is expected")
        builder.put(builder.end())
        at = _skip(source, at + 1)
    return at
