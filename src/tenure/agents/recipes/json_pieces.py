"""Pieces of JSON settings: an MCP entry, and groups of hooks among other people's hooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.agents.recipes import json_text
from tenure.agents.recipes.pieces import ACTIVE, EDITED, HOOKS, MCP, MISSING, OUTDATED, UNREADABLE, standing

# tenure by name, by path, or as a module of an interpreter.
_STARTED = re.compile(r"""^(?:'[^']*'|"[^"]*"|[^\s'"]+)(?:\s+-m\s+tenure)?\s+(hook\b.*)$""")
_NAMED = re.compile(r"""(?:^|[/'"\s])tenure(?:['"]|\s)""")


def hook_words(command: Any) -> str | None:
    """The arguments of `tenure hook` in this command; None where it is another program."""
    if not isinstance(command, str):
        return None
    found = _STARTED.match(command)
    return found[1] if found and _NAMED.search(command) else None


def _text_or_empty(text: str | None) -> str:
    return text if text and text.strip("\ufeff \t\r\n") else "{}\n"


@dataclass(frozen=True)
class McpEntry:
    """A server in a table of servers. `value` is the whole entry; `frame`: members that the agent itself would add to
    the file, and does not where they are there."""

    path: str
    keys: tuple[str, ...]
    value: Mapping[str, Any]
    frame: tuple[tuple[str, Any], ...] = ()
    what: str = MCP
    is_wanted: bool = True

    def state(self, text: str | None) -> str:
        if text is None:
            return MISSING
        here = json_text.read_loosely(_text_or_empty(text))
        if here is None:
            return UNREADABLE
        found = standing(here, self.keys, self.value)
        return OUTDATED if found == ACTIVE and self._lacking(here) and json_text.is_strict(text) else found

    def steps(self, text: str | None) -> list[str]:
        if text is None:
            return [json_text.new({**dict(self.frame), **self._nested()})]
        texts = [_text_or_empty(text)]
        for name, value in self._lacking(json_text.read(texts[0])):
            texts.append(json_text.put_member(texts[-1], (name,), value))
        texts.append(json_text.put_member(texts[-1], self.keys, dict(self.value)))
        return texts[1:]

    def take(self, text: str) -> str | None:
        """A member of the frame stays beside others: it may have been there before."""
        text = json_text.take_member(text, self.keys)
        return None if json_text.read(text) in ({}, dict(self.frame)) else text

    def _lacking(self, here: Any) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.frame if isinstance(here, dict) and name not in here]

    def _nested(self) -> Mapping[str, Any]:
        value: Mapping[str, Any] = dict(self.value)
        for key in reversed(self.keys):
            value = {key: value}
        return value


@dataclass(frozen=True)
class HookGroups:
    """Groups of hooks by event: the array of each event gets one more item. `frame`: other content of a new file."""

    path: str
    groups: Mapping[str, Mapping[str, Any]]
    frame: tuple[tuple[str, Any], ...] = ()
    what: str = HOOKS
    is_wanted: bool = True

    def state(self, text: str | None) -> str:
        if text is None:
            return MISSING
        here = json_text.read_loosely(_text_or_empty(text))
        if here is None:
            return UNREADABLE
        found = _ours(here)
        if not found:
            return MISSING
        wanted = [(event, dict(group)) for event, group in self.groups.items()]
        if sorted(found, key=str) == sorted(wanted, key=str):
            return ACTIVE
        known = [(event, _neutral(group)) for event, group in wanted]
        return OUTDATED if all((event, _neutral(group)) in known for event, group in found) else EDITED

    def steps(self, text: str | None) -> list[str]:
        if text is None:
            hooks = {event: [dict(group)] for event, group in self.groups.items()}
            return [json_text.new({**dict(self.frame), "hooks": hooks})]
        texts = [_text_or_empty(text)]
        for event, group in self.groups.items():
            texts.append(json_text.put_item(texts[-1], ("hooks", event), dict(group)))
        return texts[1:]

    def take(self, text: str) -> str | None:
        for event, _ in _ours(json_text.read(text)):
            text = json_text.take_items(text, ("hooks", event), is_ours)
        left = json_text.read(text)
        return None if left in ({}, dict(self.frame)) else text


def is_ours(group: Any) -> bool:
    """Is it a group, or a single hook, that only runs `tenure hook`?"""
    if not isinstance(group, dict):
        return False
    hooks = group.get("hooks", [group])
    return (
        bool(hooks)
        and isinstance(hooks, list)
        and all(isinstance(h, dict) and hook_words(h.get("command", h.get("bash"))) is not None for h in hooks)
    )


def _ours(settings: Any) -> list[tuple[str, dict[str, Any]]]:
    events = settings.get("hooks") if isinstance(settings, dict) else None
    if not isinstance(events, dict):
        return []
    return [(event, g) for event, groups in events.items() if isinstance(groups, list) for g in groups if is_ours(g)]


def _neutral(value: Any) -> Any:
    """A group without the command that starts tenure."""
    if isinstance(value, dict):
        return {
            key: hook_words(part) if key in ("command", "bash") and hook_words(part) else _neutral(part)
            for key, part in value.items()
        }
    return [_neutral(part) for part in value] if isinstance(value, list) else value
