"""The dashboard's session: a cookie that names the key somebody signed in with, for half a day.

It is signed with the key's digest, which every server on the store has and nobody else; so it is good on each of them,
and ends with the key: revoked, expired, or rotated and past its grace.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from tenure.core import keys
from tenure.core.records import ApiKey

LIFETIME = 12 * 3600  # seconds
_SPELLED = re.compile(r"([0-9a-z]{13})\.([0-9]{1,12})\.([0-9a-f]{64})")
_PURPOSE = b"tenure: signed in until\0"


def name_for(scheme: str) -> str:
    """With TLS a browser keeps this name for the very host that set it."""
    return "__Host-tenure" if scheme == "https" else "tenure"


def cookie_of(key: ApiKey, now: int, scheme: str) -> str:
    """The value of Set-Cookie for somebody who has just shown this key."""
    until = now // 1_000_000 + LIFETIME
    return _set(f"{key.id}.{until}.{_signature(key.digest, key.id, until)}", LIFETIME, scheme)


def cleared(scheme: str) -> str:
    """The value of Set-Cookie that signs out."""
    return _set("", 0, scheme)


def _set(value: str, seconds: int, scheme: str) -> str:
    secure = "; Secure" if scheme == "https" else ""
    return f"{name_for(scheme)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def found_in(header: str, scheme: str) -> str | None:
    """Our cookie among those that a browser sent."""
    # http.cookies gives up at the first cookie that it dislikes, and loopback's are shared by all its ports.
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == name_for(scheme) and value:
            return value
    return None


def key_id_in(value: str) -> str | None:
    """The key that the cookie names; None for what is no cookie of ours."""
    match = _SPELLED.fullmatch(value)
    return match[1] if match else None


def is_good(value: str, key: ApiKey, now: int) -> bool:
    """Whether the cookie was given for this key, and neither of the two is over."""
    match = _SPELLED.fullmatch(value)
    if match is None or match[1] != key.id:
        return False
    until, signature = int(match[2]), match[3]
    if until * 1_000_000 <= now:
        return False
    found = False
    for digest in keys.digests_at(key, now):
        found |= hmac.compare_digest(_signature(digest, key.id, until), signature)
    return found


def _signature(digest: bytes, id: str, until: int) -> str:
    return hmac.new(digest, _PURPOSE + f"{id}.{until}".encode(), hashlib.sha256).hexdigest()
