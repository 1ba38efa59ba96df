"""API keys: their format, and what a key allows; sessions of the dashboard that a key opened.

`tnr_<tenant>_<id>_<secret>`: the id is public and names the row in that tenant; the secret is 32 random bytes, shown
once. It is kept as a plain SHA-256: 256 random bits cannot be guessed, so a slow hash would only slow down every
request. Keys from before tenants, `tnr_<id>_<secret>`, belong to the home tenant.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from tenure.core import ids, limits
from tenure.core.commands import Principal
from tenure.core.errors import NotAllowed
from tenure.core.records import ApiKey, Member, WebSession
from tenure.core.roles import level_of
from tenure.core.tenant_records import HOME

ID_BYTES = 8
SECRET_BYTES = 32
_TOKENS = "jwt:"  # no key's id begins so
_SIGNED_IN = "user:"
_SPELLED = re.compile(r"tnr_(?:([a-z0-9-]{1,40})_)?([0-9a-z]{13})_([0-9a-z]{52})")


class Given(NamedTuple):
    """A key as presented."""

    tenant: str
    id: str
    secret: str


def new_id(random: bytes) -> str:
    return ids.encode_base32(random).lower()


def new_secret(random: bytes) -> str:
    return ids.encode_base32(random).lower()


def spelled(tenant: str, id: str, secret: str) -> str:
    return f"tnr_{tenant}_{id}_{secret}"


def parse_key(text: str) -> Given | None:
    """The parts of a key, or None where it is malformed."""
    match = _SPELLED.fullmatch(text)
    return Given(match[1] or HOME, match[2], match[3]) if match else None


def of_token(subject: str) -> str:
    """What stands in the place of a key's id for the bearer of a JWT."""
    return _TOKENS + subject


def is_of_token(key: str) -> bool:
    return key.startswith(_TOKENS)


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def author_of(principal: Principal) -> str:
    """What a key made by this principal keeps of it: as a user if it signed in, else the owner of this machine."""
    return principal.name if principal.key is None else _SIGNED_IN + (principal.maker or principal.user or "")


def maker_of(key: ApiKey) -> str | None:
    """The person who signed in and made the key in the name of another; None: there is none, or it was made here."""
    person = key.created_by.removeprefix(_SIGNED_IN)
    if person in (key.created_by, key.user) or is_service(key.role, key.name, key.user):
        return None
    return person


def people_of(key: ApiKey) -> frozenset[str]:
    """Whose the work of this key is: its user's, and its maker's; of a service the person's who made it."""
    made_by = key.created_by.partition(":")[2] if is_service(key.role, key.name, key.user) else maker_of(key)
    return frozenset(name for name in (key.user, made_by) if name)


def is_service(role: str, name: str, user: str | None) -> bool:
    """Whether the key is of no person: one for agents that is named after itself."""
    return level_of(role) <= level_of("agent") and user in (None, name)


def check_in_name_of(principal: Principal, member: Member | None, role: str, name: str, user: str) -> None:
    """Who signed in makes a key in the name of another only for a member; a key that another made makes none."""
    if principal.key is None or user == principal.user or is_service(role, name, user):
        return
    if principal.maker is not None:
        raise NotAllowed(
            f"your own key was made by {principal.maker}: it makes no key in the name of {user[:80]}",
            "sign in with a token, or ask the owner of the server's machine to rotate your key",
        )
    if member is None or member.left_at is not None:
        raise NotAllowed(
            f"{user[:80]} is not a member of this tenant, and you are {principal.user}",
            f"invite them first, or make the key in your own name: user {principal.user}",
        )


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


# --- sign-ins to the dashboard: random tokens of which the store keeps a digest, each with a limited lifetime


LIFETIME = limits.SIGN_IN_LIFETIME
TOKEN_BYTES = 32
_TOKEN = re.compile(r"[0-9a-f]{64}")


def session_id(token: str) -> str | None:
    """The id of a token's row; None for a malformed token."""
    return hashlib.sha256(token.encode()).hexdigest() if _TOKEN.fullmatch(token) else None


def session_begun(token: str, key: ApiKey, now: int) -> WebSession:
    """A session for the bearer of this key; it ends with the key at the latest."""
    id = session_id(token)
    assert id is not None
    until = now + LIFETIME if key.expires_at is None else min(now + LIFETIME, key.expires_at)
    return WebSession(
        project="", id=id, key=key.id, key_digest=key.digest, created_at=now, expires_at=until,
    )  # fmt: skip


def is_good_session(session: WebSession, key: ApiKey, now: int) -> bool:
    """Whether the session and its key are valid, and the key's secret is the one used at sign-in."""
    is_same = session.key == key.id and hmac.compare_digest(session.key_digest, key.digest)
    return is_same and now < session.expires_at and is_live(key, now)
