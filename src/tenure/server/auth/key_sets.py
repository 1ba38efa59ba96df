"""An issuer's public keys, fetched from its JWKS URL and kept.

They are fetched again when they are ten minutes old, or when a token names one that is not among them: at most every
half minute, since anybody can make up a name. While the issuer is away the old ones are good for a day.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jwt

from tenure.core import limits
from tenure.core.errors import AuthUnavailable, NotSignedIn
from tenure.server.auth.looks import MustLook

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
        self._had_at: float | None = None
        self._tried_at: float | None = None
        self._error = ""

    def find(self, id: str | None) -> jwt.PyJWK:
        """The key of that id, or the only one; MustLook where the set has to be fetched first."""
        now = self._monotonic()
        age = float("inf") if self._had_at is None else now - self._had_at
        may_try = self._tried_at is None or now - self._tried_at >= AGAIN
        if may_try and (age >= FRESH or (id is not None and id not in self._keys)):
            raise MustLook(f"keys {self._url}", self._look)
        if age >= OLDEST:
            raise AuthUnavailable(
                f"the keys at {self._url} cannot be had: {self._error}", "nothing was done; send it again"
            )
        key = next(iter(self._keys.values())) if id is None and len(self._keys) == 1 else self._keys.get(id)
        if key is None:
            raise NotSignedIn("the token is signed by a key that its issuer does not have")
        return key

    def _look(self) -> None:
        self._tried_at = self._monotonic()
        try:
            found = jwt.PyJWKSet.from_dict(self._fetch(self._url))
        except Exception as error:  # noqa: BLE001 whatever it is: the old keys stay, and the error is told when they end
            self._error = f"{type(error).__name__}: {error}"[:300]
            return
        # Keys that sign nothing, and secrets, which have no place in a public set.
        good = [key for key in found.keys if key.public_key_use in (None, "sig") and key.key_type != "oct"]
        self._keys = {key.key_id: key for key in good}
        self._had_at = self._tried_at


def fetched(url: str) -> Any:
    """The JSON at the URL; TLS is verified, nothing is followed elsewhere, and it has a bound in time and size."""
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
