"""API keys: their format, and what a key allows.

`tnr_<id>_<secret>`: the id is public and names the row; the secret is 32 random bytes, shown once. It is kept as a
plain SHA-256: 256 random bits cannot be guessed, so a slow hash would only slow down every request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from tenure.core import ids
from tenure.core.errors import NotAllowed
from tenure.core.records import ApiKey
from tenure.core.roles import level_of

ID_BYTES = 8
SECRET_BYTES = 32
_SPELLED = re.compile(r"tnr_([0-9a-z]{13})_([0-9a-z]{52})")


class Given(NamedTuple):
    """A key as presented."""

    id: str
    secret: str


def new_id(random: bytes) -> str:
    return ids.encode_base32(random).lower()


def new_secret(random: bytes) -> str:
    return ids.encode_base32(random).lower()


def spelled(id: str, secret: str) -> str:
    return f"tnr_{id}_{secret}"


def parse_key(text: str) -> Given | None:
    """The two parts of a key, or None where it is malformed."""
    match = _SPELLED.fullmatch(text)
    return Given(*match.groups()) if match else None


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def is_live(key: ApiKey, now: int) -> bool:
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)


def digests_at(key: ApiKey, now: int) -> tuple[bytes, ...]:
    """The digests of the secrets that are valid now: none of an ended key, two during a rotation's grace period."""
    if not is_live(key, now):
        return ()
    has_grace = key.previous_until is not None and now < key.previous_until
    return (key.digest, key.previous) if has_grace else (key.digest,)


def opens(key: ApiKey, secret: str, now: int) -> bool:
    """Whether the secret is the key's, compared in constant time."""
    presented = digest_of(secret)
    found = False
    for digest in digests_at(key, now):
        found |= hmac.compare_digest(presented, digest)
    return found


def status(key: ApiKey, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "live" if is_live(key, now) else "expired"


def check_project(role: str, projects: tuple[str, ...], wanted: str, where: tuple[str, ...]) -> None:
    """Nobody grants or revokes more than they have: neither a higher role nor other projects."""
    if level_of(wanted) > level_of(role):
        raise NotAllowed(f"a key with role {wanted} needs the role {wanted}; you are {role}")
    if not is_within(projects, where):
        raise NotAllowed(
            f"the key would be valid in {'more projects' if where else 'every project'};"
            f" yours is valid in {', '.join(projects)}",
            "name its projects",
        )


def is_within(projects: tuple[str, ...], where: tuple[str, ...]) -> bool:
    """Whether a key for `where` is valid in nothing beyond `projects`; an empty list is everywhere."""
    return not projects or (bool(where) and set(where) <= set(projects))
