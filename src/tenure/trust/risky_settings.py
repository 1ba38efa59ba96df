"""Risky settings: a file in the tree may set them only if the user trusts it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

# They start a program, open a port, or name a destination or an identity.
RISKY = (
    "commands", "judges", "spawners", "hooks.on_*", "run.agent", "log.file", "serve", "url", "key", "artifacts",
    "sinks", "notify", "webhooks", "programs", "gateway", "tenant", "signing_key", "homes",
)  # fmt: skip
SECRET = ("key", "serve.jwt_secret", "gateway.secret")
# Their values may have a password or another secret after the host.
URLS = ("sinks.*.url", "notify.*.url")


def shown_url(url: str) -> str:
    """A URL as it may be printed: without login, path and options."""
    scheme, colon, rest = url.partition("://")
    authority = rest.partition("/")[0].partition("?")[0]
    return f"{scheme}://{authority.rpartition('@')[2]}" if colon else "…"


def shown(key: str, value: Any) -> Any:
    """The value of a setting as it may be printed."""
    if key in SECRET:
        return None if value is None else "…"
    return shown_url(value) if isinstance(value, str) and any(fnmatchcase(key, one) for one in URLS) else value


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
