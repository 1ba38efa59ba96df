"""YAML as trees with line numbers, one for each document.

Only the parser is ruamel's; the tree is built from its events here. So a file cannot create objects or run code, no
recursion follows its nesting, and the weight of an alias counts before it is expanded. Plain scalars follow the core
schema of YAML 1.2: `yes` and `on` are texts, `010` is ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

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
    is_unset,
)

_NULL = ("", "~", "null", "Null", "NULL")
_BOOL = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
LONGEST_NUMBER = limits.PLAN_NUMBER
MERGE = "<<"

_TAG = "tag:yaml.org,2002:"
_KNOWN_TAGS = frozenset({"", "!", *(_TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))})


def read_trees(source: str, findings: Findings) -> Iterator[Node]:
    """The documents that are not empty; Unreadable where the text is not valid YAML."""
    composer = _Composer(findings)
    for event in _events(source):
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            composer = _Composer(findings)
        elif kind == "DocumentEndEvent":
            root = composer.builder.root
            if root is not None and not is_unset(root):
                yield root
        elif kind in _STEPS:
            _STEPS[kind](composer, event)


def _events(source: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    last = SourcePosition(1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(source):
            last = _place(event)
            yield event
    except MarkedYAMLError as error:
        raise _unreadable(error) from None
    except YAMLError as error:  # a character that YAML does not allow; the error has only its offset
        at = getattr(error, "position", 0)
        before = source[:at]
        place = SourcePosition(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)
        raise Unreadable(place, "SYNTAX", f"not YAML: {getattr(error, 'reason', 'not allowed')}") from None
    except (ArithmeticError, LookupError, ValueError) as error:
        # The scanner fails on some escapes, such as "\UFFFFFFFF", without a proper error.
        raise Unreadable(last, "SYNTAX", f"not YAML: the parser failed after this position ({error})") from None


def _unreadable(error: Any) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    place = SourcePosition(mark.line + 1, mark.column + 1) if mark else SourcePosition(1, 1)
    words = " ".join(part for part in (error.context, error.problem) if part)
    hint = None
    if "'\\t'" in words:
        hint = "indent with spaces, not tabs"
    elif "mapping values are not allowed" in words:
        hint = "put a text that contains ': ' into quotes"
    elif "while scanning an alias" in words or "while scanning an anchor" in words:
        hint = "put a text that begins with * or & into quotes"
    return Unreadable(place, "SYNTAX", f"not YAML: {words}", hint)


class _Composer:
    """Builds the tree of one document."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.builder = Builder(findings)
        self.anchors: dict[str, Node | None] = {}  # None while the node is still open
        self.opened: list[str | None] = []  # anchors of the open containers

    def scalar(self, event: Any) -> None:
        place = _place(event)
        if self.builder.is_key_next():
            self._check_tag(event, place)
            self.builder.key(event.value, place)
            if event.anchor:
                self.anchors[event.anchor] = Scalar(place=place, value=event.value, text=event.value)
            return
        node = Scalar(
            place=place, value=self._value(event, place), text=event.value, weight=NODE_WEIGHT + len(event.value)
        )
        if event.anchor:
            self.anchors[event.anchor] = node
        self.builder.put(node)

    def alias(self, event: Any) -> None:
        place = _place(event)
        if event.anchor not in self.anchors:
            raise Unreadable(
                place, "SYNTAX", f"*{event.anchor[:60]}: there is no anchor &{event.anchor[:60]} before it"
            )
        node = self.anchors[event.anchor]
        if node is None:
            raise Unreadable(place, "SYNTAX", f"*{event.anchor[:60]} is inside the node that it refers to")
        if self.builder.is_key_next():
            raise Unreadable(place, "SYNTAX", "an alias as a key", "write the key out")
        self.builder.put(node)

    def begin_sequence(self, event: Any) -> None:
        self._begin(event, Sequence(place=_place(event), items=[]))

    def begin_mapping(self, event: Any) -> None:
        self._begin(event, Mapping(place=_place(event), entries={}))

    def _begin(self, event: Any, node: Sequence | Mapping) -> None:
        if self.builder.is_key_next():
            raise Unreadable(node.place, "SYNTAX", "a list or mapping as a key", "keys are plain texts")
        self._check_tag(event, node.place)
        if event.anchor:
            self.anchors[event.anchor] = None
        self.opened.append(event.anchor)
        self.builder.begin(node)

    def end(self, event: Any) -> None:
        node = self.builder.end()
        if isinstance(node, Mapping) and MERGE in node.entries:
            self._merge(node)
        anchor = self.opened.pop()
        if anchor:
            self.anchors[anchor] = node
        self.builder.put(node)

    def _merge(self, node: Mapping) -> None:
        """`<<: *other` adds the entries of another mapping that this one lacks."""
        place, others = node.entries.pop(MERGE)
        for other in others.items if isinstance(others, Sequence) else [others]:
            if not isinstance(other, Mapping):
                self.findings.add(place, "WRONG_TYPE", "<<: only mappings can be merged")
                continue
            for key, entry in other.entries.items():
                node.entries.setdefault(key, entry)

    def _check_tag(self, event: Any, place: SourcePosition) -> bool:
        tag = str(event.tag or "")
        if tag in _KNOWN_TAGS:
            return True
        name = tag.replace(_TAG, "!!")
        self.findings.add(place, "TAG", f"{name[:80]}: tags are not supported", "leave the tag out")
        return False

    def _value(self, event: Any, place: SourcePosition) -> str | int | float | bool | None:
        text: str = event.value
        is_known = self._check_tag(event, place)
        tag = str(event.tag or "")
        is_plain = event.style is None or event.style == ""
        if not is_known or tag in ("!", _TAG + "str") or not (is_plain or tag):
            return text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _NO_NUMBER.fullmatch(text):
            self.findings.add(place, "INVALID_INPUT", f"{text}: not a finite number", "put it into quotes")
            return text
        is_whole = _INT.fullmatch(text)
        if is_whole or _FLOAT.fullmatch(text):
            if len(text) > LONGEST_NUMBER:
                self.findings.add(place, "TOO_LARGE", f"a number of {len(text)} digits", "put it into quotes")
                return text
            number = _whole(text) if is_whole else float(text)
            if math.isfinite(number):
                return number
            self.findings.add(place, "INVALID_INPUT", f"{text}: too large a number", "put it into quotes")
        return text


_STEPS = {
    "ScalarEvent": _Composer.scalar,
    "AliasEvent": _Composer.alias,
    "SequenceStartEvent": _Composer.begin_sequence,
    "MappingStartEvent": _Composer.begin_mapping,
    "SequenceEndEvent": _Composer.end,
    "MappingEndEvent": _Composer.end,
}


def _whole(text: str) -> int:
    if text.startswith("0o"):
        return int(text[2:], 8)
    return int(text, 16) if text.startswith("0x") else int(text)


def _place(event: Any) -> SourcePosition:
    return SourcePosition(event.start_mark.line + 1, event.start_mark.column + 1)
