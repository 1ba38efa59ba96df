"""The rows of API keys and dashboard sessions; `keys.py` has their rules."""

from __future__ import annotations

from tenure.core.row import Row


class ApiKey(Row, frozen=True, kw_only=True):
    """An API key, with project ""; its id is the public part. Only a digest of the secret is kept."""

    name: str
    role: str
    user: str | None = None
    agent: str | None = None  # of an agent's key: the one agent that it may act for
    projects: tuple[str, ...] = ()  # empty: all
    digest: bytes = b""
    previous: bytes = b""  # the digest before the last rotation
    previous_until: int | None = None
    created_at: int
    created_by: str
    rotated_at: int | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    request_id: str | None = None  # of its creation or last rotation
    request_hash: str | None = None
    capabilities: tuple[str, ...] = ()  # beyond its role, as in `checker`
    used_at: int | None = None  # when it was last used, to the minute


class WebSession(Row, frozen=True, kw_only=True):
    """A sign-in to the dashboard, with project "". Its id is the digest of the browser's token."""

    key: str  # the API key used; the session ends with it
    key_digest: bytes  # the digest of its secret at sign-in: a rotation ends the session
    created_at: int
    expires_at: int
