"""Edits JSON as text: inserts or removes a value, and keeps every other byte.

Other tools' settings are the user's files, with their own order, indentation and blank lines. So they are not parsed
and rewritten; a new member is one insertion at the end of its object, and its removal is the same cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenure.agents.recipes.pieces import CannotMerge

_TOO_DEEP = "is nested too deep to be edited"
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ATOM = re.compile(r"[^ \t\r\n,\]}]+")
# Comments and trailing commas, or a string, which hides both.
_LOOSE = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[\]}])', re.DOTALL)


class Node(NamedTuple):
    """A value and its position. `parts`: an object's members or an array's items, with the start of each."""

    start: int
    end: int
    kind: str  # object, array, or atom
    parts: tuple[tuple[str | None, int, Node], ...] = ()

    def member(self, name: str) -> Node | None:
        if self.kind != "object":
            return None
        # of two members with one name the last counts, as in every parser
        return next((node for key, _, node in reversed(self.parts) if key == name), None)


# --- reads ------------------------------------------------------------------------------------------------


def read(text: str) -> Any:
    """The value of strict JSON; CannotMerge otherwise."""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise CannotMerge(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        why = "is not valid JSON" if read_loosely(text) is None else "has comments or trailing commas"
        raise CannotMerge(f"{why} (line {error.lineno}, column {error.colno}), so it cannot be edited safely") from None


def is_strict(text: str) -> bool:
    """Whether it can be edited: JSON without comments and trailing commas."""
    try:
        read(text)
    except CannotMerge:
        return False
    return True


def read_loosely(text: str) -> Any:
    """The value of JSON with comments and trailing commas, for reading only; None where it is not valid."""
    try:
        return json.loads(_LOOSE.sub(lambda found: found[1] or "", text.removeprefix("\ufeff")))
    except (json.JSONDecodeError, RecursionError):
        return None


def _tree(text: str) -> Node:
    if not isinstance(read(text), dict):
        raise CannotMerge("is not a JSON object, so it cannot be edited safely")
    try:
        return _node(text, _skip(text, 1 if text.startswith("\ufeff") else 0))
    except RecursionError:
        raise CannotMerge(_TOO_DEEP) from None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it also matches the empty text
    return found.end()


def _node(text: str, at: int) -> Node:
    """The value that starts at `at`; the text must be JSON."""
    if text[at] not in "{[":
        found = _STRING.match(text, at) or _ATOM.match(text, at)
        assert found is not None
        return Node(at, found.end(), "atom")
    is_object = text[at] == "{"
    parts = []
    here = _skip(text, at + 1)
    while text[here] not in "]}":
        begin, name = here, None
        if is_object:
            found = _STRING.match(text, here)
            assert found is not None
            name = json.loads(found[0])
            here = _skip(text, _skip(text, found.end()) + 1)  # past the colon
        node = _node(text, here)
        parts.append((name, begin, node))
        here = _skip(text, node.end)
        if text[here] == ",":
            here = _skip(text, here + 1)
    return Node(at, here + 1, "object" if is_object else "array", tuple(parts))


# --- insertions ---------------------------------------------------------------------------------------------


def new(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def put_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at `path`, where nothing is yet; missing objects on the path are created."""
    node = _tree(text)
    for depth, name in enumerate(path):
        below = node.member(name)
        if below is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, node, name, value)
        if below.kind != "object":
            raise CannotMerge(f"has {'.'.join(path[: depth + 1])}, which is not an object", path)
        node = below
    raise CannotMerge(f"has {'.'.join(path)} already", path)


def put_item(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at the end of the array at `path`, which is created if missing."""
    node: Node | None = _tree(text)
    for name in path:
        node = node.member(name) if node is not None else None
    if node is None:
        return put_member(text, path, [value])
    if node.kind != "array":
        raise CannotMerge(f"has {'.'.join(path)}, which is not an array", path)
    return _insert(text, node, None, value)


def _insert(text: str, container: Node, name: str | None, value: Any) -> str:
    """One insertion after the last part, with the layout of the parts before it."""
    line = "\r\n" if "\r\n" in text else "\n"
    label = "" if name is None else json.dumps(name, ensure_ascii=False) + ": "
    if container.parts:
        first, at = container.parts[0][1], container.parts[-1][2].end
        if "\n" not in text[container.start : first]:
            return text[:at] + ", " + label + json.dumps(value, ensure_ascii=False) + text[at:]
        indent = _indent_at(text, first)
        return text[:at] + "," + line + indent + label + _laid_out(text, value, indent) + text[at:]
    at = container.start + 1
    if "\n" not in text[:at] and text[: container.start].strip("\ufeff \t\r"):
        return text[:at] + label + json.dumps(value, ensure_ascii=False) + text[at:]  # within a single line
    outer = _indent_at(text, container.start)
    indent = outer + _unit(text)
    close = "" if "\n" in text[at : container.end] else line + outer
    return text[:at] + line + indent + label + _laid_out(text, value, indent) + close + text[at:]


def _laid_out(text: str, value: Any, indent: str) -> str:
    line = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", line + indent)


def _indent_at(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, begin)
    return found[0] if found else ""


def _unit(text: str) -> str:
    """The indentation of one level, from the first indented line."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


# --- removals ---------------------------------------------------------------------------------------------


def take_member(text: str, path: Sequence[str]) -> str:
    """The text without the value at `path`, and without objects around it that become empty."""
    trail = [_tree(text)]
    for name in path:
        below = trail[-1].member(name)
        if below is None:
            return text
        trail.append(below)
    depth = len(path)
    while depth > 1 and len(trail[depth - 1].parts) == 1:
        depth -= 1
    container = trail[depth - 1]
    number = max(n for n, (key, _, _) in enumerate(container.parts) if key == path[depth - 1])
    return _cut(text, container, number)


def take_items(text: str, path: Sequence[str], is_ours: Callable[[Any], bool]) -> str:
    """The text without those items of the array at `path`; without the array if it becomes empty."""
    while True:
        node: Node | None = _tree(text)
        for name in path:
            node = node.member(name) if node is not None else None
        if node is None or node.kind != "array":
            return text
        ours = [n for n, (_, _, item) in enumerate(node.parts) if is_ours(json.loads(text[item.start : item.end]))]
        if not ours:
            return text
        if len(node.parts) == 1:
            return take_member(text, path)
        text = _cut(text, node, ours[-1])


def _cut(text: str, container: Node, number: int) -> str:
    _, begin, node = container.parts[number]
    if number > 0:
        return text[: container.parts[number - 1][2].end] + text[node.end :]
    if len(container.parts) > 1:
        return text[:begin] + text[container.parts[1][1] :]
    return text[: container.start + 1] + text[container.end - 1 :]
