"""Which settings are risky: a file in the tree may give them only with the user's trust."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

# What starts something, opens something, or says where things are sent and under whose name.
RISKY = ("commands", "judges", "spawners", "hooks.on_*", "run.agent", "serve", "url", "key", "artifacts")
SECRET = ("key", "serve.jwt_secret")


def section_of(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The risky part of a configuration, in its own shape."""
    section: dict[str, Any] = {}
    for pattern in RISKY:
        section |= _picked(parsed, *pattern.split("."))
    return section


def is_risky(key: str) -> bool:
    """Whether a setting of this name, written with dots, is one that a file needs trust for."""
    return any(fnmatchcase(key, pattern) or fnmatchcase(key, f"{pattern}.*") for pattern in RISKY)


def _picked(table: Mapping[str, Any], step: str, *rest: str) -> dict[str, Any]:
    """What of a table is meant, in the same shape; what is empty starts nothing."""
    found = {key: value for key, value in table.items() if fnmatchcase(key, step)}
    if rest:
        found = {key: _picked(value, *rest) if isinstance(value, dict) else None for key, value in found.items()}
    return {key: value for key, value in found.items() if value}
