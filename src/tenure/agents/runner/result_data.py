"""What of an agent's last words is its result: in the form that the task's contract asks for.

A contract that looks at the data itself would find our own wrapping there, and refuse it. Such data is handed in as it
was said, and what else is to be known stands in the summary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.core.validation import BEFORE, NONE, validator_of

_FENCED = re.compile(r"^```[a-zA-Z]*[ \t]*\n(.*?)\n```[ \t]*$", re.DOTALL | re.MULTILINE)


def is_judged(task: Mapping[str, Any]) -> bool:
    """Does the contract look at the data itself?"""
    return validator_of(task.get("output") or {}) in BEFORE


def is_checked_later(task: Mapping[str, Any]) -> bool:
    """May a verdict that comes by itself, after the submission, give the attempt up?"""
    return validator_of(task.get("output") or {}) not in (NONE, *BEFORE)


def said(task: Mapping[str, Any], text: str) -> Any:
    """The data in a last message: its JSON where a schema is asked for and there is any, else the text."""
    return _json(text) if validator_of(task.get("output") or {}) == "json-schema" else text


def _json(text: str) -> Any:
    """Of the whole message, or of the last block in it: models like to wrap what they say."""
    for part in (text, *reversed(_FENCED.findall(text))):
        try:
            return msgspec.json.decode(part)
        except msgspec.DecodeError:
            continue
    return text


def ending(task: Mapping[str, Any]) -> str:
    """What an agent is told of its last message."""
    name = validator_of(task.get("output") or {})
    if name == "json-schema":
        return "it must be JSON of the kind that is asked for above, and nothing else"
    if name == "regex":
        return "it is checked as it is asked for above"
    return "say in it what you did, and what the next one must know"
