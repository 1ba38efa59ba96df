"""The rows of API keys and dashboard sessions; `keys.py` has their rules."""

from __future__ import annotations

from tenure.core.row import Row


class ApiKey(Row, frozen=True, kw_only=True):
    """A key to the store, of project ""; its id is the public part. Of the secret only a digest is kept."""

    name: str
    role: str
    user: str | None = None
    agent: str | None = None  # of an agent's key: the one agent that it may speak for
    projects: tuple[str, ...] = ()  # empty: all
    digest: bytes = b""
    previous: bytes = b""  # the digest before the last rotation
    previous_until: int | None = None
    created_at: int
    created_by: str
    rotated_at: int | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    request_id: str | None = None  # by which it was made or last rotated
    request_hash: str | None = None
    capabilities: tuple[str, ...] = ()  # beyond its role, as in `checker`
    used_at: int | None = None  # when it last signed somebody in, to the minute


class WebSession(Row, frozen=True, kw_only=True):
    """A sign-in to the dashboard, of project "". Its id is the digest of the token that the browser keeps."""

    key: str  # the API key that was shown; the session ends with it
    key_digest: bytes  # the digest of the key's secret then: a rotation ends the session
    created_at: int
    expires_at: int
