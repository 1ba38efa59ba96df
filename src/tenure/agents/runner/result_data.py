"""The result in an agent's last message, in the form that the task's contract requires.

Where a contract checks the data itself, the message is submitted without a wrapper, and the summary holds the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.core.validation import BEFORE, NONE, validator_of

_FENCED = re.compile(r"^```[a-zA-Z]*[ \t]*\n(.*?)\n```[ \t]*$", re.DOTALL | re.MULTILINE)


def is_judged(task: Mapping[str, Any]) -> bool:
    """Does the contract check the data itself?"""
    return validator_of(task.get("output") or {}) in BEFORE


def is_checked_later(task: Mapping[str, Any]) -> bool:
    """Can a verdict after the submit fail the attempt?"""
    return validator_of(task.get("output") or {}) not in (NONE, *BEFORE)


def said(task: Mapping[str, Any], text: str) -> Any:
    """The data in a last message: its JSON where the contract has a schema and there is JSON, else the text."""
    return _json(text) if validator_of(task.get("output") or {}) == "json-schema" else text


def _json(text: str) -> Any:
    """From the whole message, or from its last fenced block."""
    for part in (text, *reversed(_FENCED.findall(text))):
        try:
            return msgspec.json.decode(part)
        except msgspec.DecodeError:
            continue
    return text


def ending(task: Mapping[str, Any]) -> str:
    """The sentence of the prompt about the last message."""
    name = validator_of(task.get("output") or {})
    if name == "json-schema":
        return "it must be JSON of the kind described above, and nothing else"
    if name == "regex":
        return "it is checked as described above"
    return "say what you did, and what the next agent must know"
