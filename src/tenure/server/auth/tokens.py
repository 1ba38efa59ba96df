"""JWTs: verifies issuer, audience, time and signature, and reads the claims.

The configuration decides which algorithms are valid, never the token: a shared secret allows HS256, a key set allows
those with a public key, and `none` is never allowed.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jwt

from tenure.core import ids, limits, roles
from tenure.core.errors import AuthUnavailable, InvalidInput, NotSignedIn, TenureError
from tenure.core.safe_text import storable
from tenure.server.auth.policy import Jwt
from tenure.server.auth.row_cache import NeedsLookup

BY_SECRET = ("HS256",)
BY_PUBLIC_KEY = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY = limits.JWT_LEEWAY
LATEST = 2.0**53  # seconds: beyond it floats are not exact, and far beyond it they do not exist
KEPT = limits.TOKEN_CACHE
MOST = limits.TOKENS_CACHED


class Claims(NamedTuple):
    subject: str
    role: str | None  # None: it names none, and the membership decides
    agent: str | None = None
    projects: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    expires: float = 0.0  # by the host's clock, in seconds
    tenants: tuple[str, ...] | None = None  # None: the issuer knows no tenants


class _Entry(NamedTuple):
    claims: Claims
    until: float  # by the host's clock, as the token's own times are
    at: float


class Tokens:
    """For one event loop or thread."""

    def __init__(
        self, settings: Jwt, *, fetch: Fetch | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._keys = KeySet(settings.jwks, fetch=fetch, monotonic=monotonic) if settings.jwks is not None else None
        self._verified: OrderedDict[bytes, _Entry] = OrderedDict()

    def read(self, token: str) -> Claims:
        """The claims of the token; NotSignedIn if it is invalid, NeedsLookup if its key must be fetched first."""
        name, now = _name(token), self._monotonic()
        entry = self._verified.get(name)
        if entry is not None and now - entry.at < KEPT and time.time() < entry.until:
            self._verified.move_to_end(name)
            return entry.claims
        self._verified.pop(name, None)
        content = self._decoded(token)
        self._check_lifetime(content)
        claims = self._claims(content)
        self._verified[name] = _Entry(claims, float(content["exp"]) + LEEWAY, now)
        if len(self._verified) > MOST:
            self._verified.popitem(last=False)
        return claims

    def _decoded(self, token: str) -> dict[str, Any]:
        settings = self._settings
        if len(token) > limits.JWT_CHARACTERS:
            raise NotSignedIn(f"the token may have at most {limits.JWT_CHARACTERS} characters (got {len(token)})")
        try:
            key: Any = settings.secret
            if self._keys is not None:
                key = self._keys.find(jwt.get_unverified_header(token).get("kid"))
            return jwt.decode(
                token,
                key,
                algorithms=list(BY_SECRET if self._keys is None else BY_PUBLIC_KEY),
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (NeedsLookup, TenureError):
            raise
        except Exception:  # noqa: BLE001 the library's own errors, and what it makes of forms that it does not expect
            # The message does not say which: a guesser would learn whether a signature was right.
            raise _not_accepted() from None

    def _check_lifetime(self, content: dict[str, Any]) -> None:
        """Bound the lifetime from `iat`, or from now: a token that is valid for years cannot be revoked."""
        longest = self._settings.longest
        # The library takes a text with a number for one.
        if not all(_is_instant(content[name]) for name in ("exp", "iat", "nbf") if name in content):
            raise _not_accepted()
        if content["exp"] - content.get("iat", time.time()) > longest + LEEWAY:
            raise NotSignedIn(
                f"the token is valid for more than {longest:g} s from its iat", "serve.jwt_longest sets the limit"
            )

    def _claims(self, content: dict[str, Any]) -> Claims:
        prefix = self._settings.prefix
        role, agent, projects = (content.get(prefix + name) for name in ("role", "agent", "projects"))
        can = content.get(prefix + "capabilities")
        if role is not None and role not in roles.ROLES:
            raise self.no_role(role)
        if agent is not None and not isinstance(agent, str):
            raise NotSignedIn(f"the token's claim {prefix}agent must be a string")
        # An empty list means "no project" to its author, and must not become "all projects".
        is_list = isinstance(projects, list) and projects and all(isinstance(p, str) for p in projects)
        if projects is not None and not is_list:
            raise NotSignedIn(f"the token's claim {prefix}projects must be a list of names")
        if can is not None and not (isinstance(can, list) and all(one in roles.CAPABILITIES for one in can)):
            known = ", ".join(roles.CAPABILITIES)
            raise NotSignedIn(f"the token's claim {prefix}capabilities must be a list of: {known} (got {can!r:.60})")
        try:
            for name in (*([] if agent is None else [agent]), *(projects or ())):
                ids.check_name(name, "a name in the token")
        except InvalidInput as error:
            raise NotSignedIn(error.message) from None
        subject = content["sub"]
        if not 1 <= len(subject) <= limits.JWT_SUBJECT or storable(subject, len(subject)) != subject:
            raise NotSignedIn(f"the token's sub must have 1 to {limits.JWT_SUBJECT} characters that can be stored")
        return Claims(
            subject, role, agent, tuple(projects or ()), tuple(can or ()), float(content["exp"]),
            self._tenants(content),
        )  # fmt: skip

    def no_role(self, given: object = None) -> NotSignedIn:
        known = ", ".join(roles.ROLES)
        return NotSignedIn(f"the token's claim {self._settings.prefix}role must be one of {known} (got {given!r:.60})")

    def _tenants(self, content: dict[str, Any]) -> tuple[str, ...] | None:
        claim = self._settings.tenant
        if claim is None:
            return None
        named = content.get(claim, ())
        found = [named] if isinstance(named, str) else named
        if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) for name in found):
            raise NotSignedIn(f"the token's claim {claim} must be a name or a list of names")
        return tuple(found)


def _not_accepted() -> NotSignedIn:
    return NotSignedIn("the token's signature, issuer, audience or time is not accepted")


def _is_instant(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LATEST


def _name(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


FRESH = limits.JWKS_FRESH
AGAIN = 30.0
OLDEST = limits.JWKS_OLDEST
LARGEST_SET = limits.JWKS_BYTES

Fetch = Callable[[str], Any]


class KeySet:
    """An issuer's public keys, fetched from its JWKS URL and cached.

    They are fetched again after ten minutes, or when a token names an unknown key: at most every half minute, since
    anybody can invent a name. While the issuer is unavailable the cached keys are valid for a day.
    """

    def __init__(
        self, url: str, *, fetch: Fetch | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._fetch = fetch or fetched
        self._monotonic = monotonic
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._error = ""

    def find(self, id: str | None) -> jwt.PyJWK:
        """The key with that id, or the only key; NeedsLookup if the set must be fetched first."""
        now = self._monotonic()
        age = float("inf") if self._fetched_at is None else now - self._fetched_at
        may_try = self._tried_at is None or now - self._tried_at >= AGAIN
        if may_try and (age >= FRESH or (id is not None and id not in self._keys)):
            raise NeedsLookup(f"keys {self._url}", self._lookup)
        if age >= OLDEST:
            raise AuthUnavailable(
                f"cannot fetch the signing keys from {self._url}: {self._error}", "nothing was done; send it again"
            )
        key = next(iter(self._keys.values())) if id is None and len(self._keys) == 1 else self._keys.get(id)
        if key is None:
            raise NotSignedIn("the token is signed with a key that its issuer does not publish")
        return key

    def _lookup(self) -> None:
        self._tried_at = self._monotonic()
        try:
            found = jwt.PyJWKSet.from_dict(self._fetch(self._url))
        except Exception as error:  # noqa: BLE001 the old keys stay, and the error is reported when they expire
            self._error = f"{type(error).__name__}: {error}"[:300]
            return
        # Without keys for other uses, and without secrets, which do not belong in a public set.
        good = [key for key in found.keys if key.public_key_use in (None, "sig") and key.key_type != "oct"]
        self._keys = {key.key_id: key for key in good}
        self._fetched_at = self._tried_at


def fetched(url: str) -> Any:
    """The JSON at the URL, with verified TLS, no redirects, a timeout and a maximum size."""
    import httpx2
    import msgspec

    with (
        httpx2.Client(timeout=limits.JWKS_TIMEOUT, follow_redirects=False, trust_env=False) as client,
        client.stream("GET", url, headers={"accept": "application/json"}) as answer,
    ):
        answer.raise_for_status()
        body = b""
        for part in answer.iter_bytes():
            body += part
            if len(body) > LARGEST_SET:
                raise ValueError(f"more than {LARGEST_SET} bytes")
    return msgspec.json.decode(body)
