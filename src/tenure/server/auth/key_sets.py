"""An issuer's public keys, fetched from its JWKS URL and cached.

They are fetched again after ten minutes, or when a token names an unknown key: at most every half minute, since anybody
can invent a name. While the issuer is unavailable the cached keys are valid for a day.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jwt

from tenure.core import limits
from tenure.core.errors import AuthUnavailable, NotSignedIn
from tenure.server.auth.lookups import NeedsLookup

FRESH = limits.JWKS_FRESH
AGAIN = 30.0
OLDEST = limits.JWKS_OLDEST
TIMEOUT = limits.JWKS_TIMEOUT
LARGEST = limits.JWKS_BYTES

Fetch = Callable[[str], Any]


class KeySet:
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
        httpx2.Client(timeout=TIMEOUT, follow_redirects=False, trust_env=False) as client,
        client.stream("GET", url, headers={"accept": "application/json"}) as answer,
    ):
        answer.raise_for_status()
        body = b""
        for part in answer.iter_bytes():
            body += part
            if len(body) > LARGEST:
                raise ValueError(f"more than {LARGEST} bytes")
    return msgspec.json.decode(body)
