"""Risky settings: a file in the tree may set them only if the user trusts it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

# They start a program, open a port, or name a destination or an identity.
RISKY = ("commands", "judges", "spawners", "hooks.on_*", "run.agent", "serve", "url", "key", "artifacts")
SECRET = ("key", "serve.jwt_secret")


def section_of(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The risky part of a configuration, in the same shape."""
    section: dict[str, Any] = {}
    for pattern in RISKY:
        section |= _picked(parsed, *pattern.split("."))
    return section


def is_risky(key: str) -> bool:
    """Whether a file needs trust for the setting of this name, written with dots."""
    return any(fnmatchcase(key, pattern) or fnmatchcase(key, f"{pattern}.*") for pattern in RISKY)


def _picked(table: Mapping[str, Any], step: str, *rest: str) -> dict[str, Any]:
    """The selected part of a table, in the same shape, without empty values."""
    found = {key: value for key, value in table.items() if fnmatchcase(key, step)}
    if rest:
        found = {key: _picked(value, *rest) if isinstance(value, dict) else None for key, value in found.items()}
    return {key: value for key, value in found.items() if value}
