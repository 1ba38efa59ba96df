"""Sign-ins to the dashboard: random tokens of which the store keeps a digest, each with a limited lifetime."""

from __future__ import annotations

import hashlib
import hmac
import re

from tenure.core import keys, limits
from tenure.core.records import ApiKey, WebSession

LIFETIME = limits.SIGN_IN_LIFETIME
TOKEN_BYTES = 32
_SPELLED = re.compile(r"[0-9a-f]{64}")


def session_id(token: str) -> str | None:
    """The id of a token's row; None for a malformed token."""
    return hashlib.sha256(token.encode()).hexdigest() if _SPELLED.fullmatch(token) else None


def begun(token: str, key: ApiKey, now: int) -> WebSession:
    """A session for the bearer of this key; it ends with the key at the latest."""
    id = session_id(token)
    assert id is not None
    until = now + LIFETIME if key.expires_at is None else min(now + LIFETIME, key.expires_at)
    return WebSession(
        project="", id=id, key=key.id, key_digest=key.digest, created_at=now, expires_at=until,
    )  # fmt: skip


def is_good(session: WebSession, key: ApiKey, now: int) -> bool:
    """Whether the session and its key are valid, and the key's secret is the one used at sign-in."""
    is_same = session.key == key.id and hmac.compare_digest(session.key_digest, key.digest)
    return is_same and now < session.expires_at and keys.is_live(key, now)
