"""JWTs: whose they are, as far as issuer, audience, time and signature bear it out.

Which algorithms are good follows from what is set up, never from the token: a shared secret takes HS256, a key set
takes those with a public key, and nothing takes `none`.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jwt

from tenure.core import ids, limits, roles
from tenure.core.errors import InvalidInput, NotSignedIn
from tenure.server.auth.key_sets import Fetch, KeySet
from tenure.server.auth.policy import Jwt

BY_SECRET = ("HS256",)
BY_PUBLIC_KEY = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY = limits.JWT_LEEWAY
LARGEST = limits.JWT_CHARACTERS
LONGEST_SUBJECT = limits.JWT_SUBJECT
KEPT = limits.TOKEN_CACHE
MOST = limits.TOKENS_CACHED


class Claims(NamedTuple):
    subject: str
    role: str
    agent: str | None = None
    projects: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    expires: float = 0.0  # by the host's clock, in seconds


class _Entry(NamedTuple):
    claims: Claims
    until: float  # by the host's clock, as the token's own times are
    at: float


class Tokens:
    """Lives in one event loop or thread."""

    def __init__(
        self, settings: Jwt, *, fetch: Fetch | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._keys = KeySet(settings.jwks, fetch=fetch, monotonic=monotonic) if settings.jwks is not None else None
        self._verified: OrderedDict[bytes, _Entry] = OrderedDict()

    def is_verified(self, token: str) -> bool:
        """Whether it was good a moment ago."""
        return _name(token) in self._verified

    def read(self, token: str) -> Claims:
        """What the token says; NotSignedIn where it is not good, MustLook where its key must be fetched first."""
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
        if len(token) > LARGEST:
            raise NotSignedIn(f"a token of {len(token)} characters; at most {LARGEST}")
        try:
            key: Any = settings.secret
            if self._keys is not None:
                key = self._keys.find(jwt.get_unverified_header(token).get("kid"))
            return jwt.decode(
                token, key, algorithms=list(BY_SECRET if self._keys is None else BY_PUBLIC_KEY),
                audience=settings.audience, issuer=settings.issuer, leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )  # fmt: skip
        except (jwt.InvalidTokenError, jwt.InvalidKeyError):
            # Which of them is not said: a guesser would learn whether a signature was right.
            raise NotSignedIn("the token's signature, issuer, audience or time is not accepted") from None

    def _check_lifetime(self, content: dict[str, Any]) -> None:
        """A token that was made for years cannot be taken back: it is bounded from when it was made, or from now."""
        longest = self._settings.longest
        begins = content.get("iat", time.time())
        if not isinstance(begins, (int, float)) or content["exp"] - begins > longest + LEEWAY:
            raise NotSignedIn(
                f"the token lives longer than {longest:g} s from its iat", "serve.jwt_longest sets how long one may"
            )

    def _claims(self, content: dict[str, Any]) -> Claims:
        prefix = self._settings.prefix
        role, agent, projects = (content.get(prefix + name) for name in ("role", "agent", "projects"))
        can = content.get(prefix + "capabilities")
        if role not in roles.ROLES:
            raise NotSignedIn(f"the token's claim {prefix}role is {role!r:.60}; one of {', '.join(roles.ROLES)}")
        if agent is not None and not isinstance(agent, str):
            raise NotSignedIn(f"the token's claim {prefix}agent is no text")
        # An empty list would say "nowhere" to whoever wrote it, and must not be taken for everywhere.
        is_list = isinstance(projects, list) and projects and all(isinstance(p, str) for p in projects)
        if projects is not None and not is_list:
            raise NotSignedIn(f"the token's claim {prefix}projects is no list of names")
        if can is not None and not (isinstance(can, list) and all(one in roles.CAPABILITIES for one in can)):
            known = ", ".join(roles.CAPABILITIES)
            raise NotSignedIn(f"the token's claim {prefix}capabilities is {can!r:.60}; a list of: {known}")
        try:
            for name in (*([] if agent is None else [agent]), *(projects or ())):
                ids.check_name(name, "a name in the token")
        except InvalidInput as error:
            raise NotSignedIn(error.message) from None
        if not 1 <= len(content["sub"]) <= LONGEST_SUBJECT:
            raise NotSignedIn(f"the token's sub: 1 to {LONGEST_SUBJECT} characters")
        return Claims(content["sub"], role, agent, tuple(projects or ()), tuple(can or ()), float(content["exp"]))


def _name(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
