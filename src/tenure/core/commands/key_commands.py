"""API keys, which belong to the store as a whole."""

from __future__ import annotations

from typing import ClassVar

from tenure.core.commands.command import Command, Declaration


class CreateKey(Command, frozen=True, kw_only=True, tag="create_key"):
    """Create an API key. Its secret is only in this answer."""

    declaration: ClassVar = Declaration("api_keys", "admin", "POST", "/keys")

    project: str = ""
    name: str
    role: str = "agent"
    user: str | None = None  # its owner; None: the name
    agent: str | None = None  # of an agent's key: the one agent that it may act for
    projects: tuple[str, ...] = ()  # empty: all
    capabilities: tuple[str, ...] = ()  # beyond the role; `checker`: it may take and judge validations
    expires_in: float | None = None  # seconds; None: never


class RotateKey(Command, frozen=True, kw_only=True, tag="rotate_key"):
    """Create a new secret for a key, with its full lifetime; the previous secret stays valid for `grace` seconds."""

    declaration: ClassVar = Declaration("api_keys", "admin", "POST", "/keys/{key}/rotate")

    project: str = ""
    key: str
    grace: float = 3600.0


class RevokeKey(Command, frozen=True, kw_only=True, tag="revoke_key"):
    """Revoke a key for ever."""

    declaration: ClassVar = Declaration("api_keys", "admin", "POST", "/keys/{key}/revoke")

    project: str = ""
    key: str
