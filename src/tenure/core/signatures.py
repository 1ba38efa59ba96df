"""Signatures of deliveries: Standard Webhooks, in and out, and GitHub's own, in.

| | signed | the delivery's id |
| --- | --- | --- |
| standard | id, time and body; at most five minutes off | `webhook-id` |
| github | the body alone, so an intercepted delivery can be replayed under another id | `X-GitHub-Delivery` |

Every valid secret is tried with every given signature, in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from tenure.core import limits
from tenure.core.errors import InvalidInput

STANDARD, GITHUB = "standard", "github"
FORMS = (STANDARD, GITHUB)
SECRET_BYTES = 32
PREFIX = "whsec_"
LARGEST_BODY = limits.WEBHOOK_BYTES
# The request headers that are read; all others are dropped.
HEADERS = (
    "webhook-id", "webhook-timestamp", "webhook-signature", "x-hub-signature-256", "x-github-delivery",
    "x-github-event",
)  # fmt: skip

_ID = re.compile(r"[\x21-\x7e]{1,128}")
_TIME = re.compile(r"[0-9]{1,12}")
_HEX = re.compile(r"sha256=([0-9a-fA-F]{64})")


class SignedDelivery(NamedTuple):
    """A delivery with a valid signature."""

    id: str
    event: str | None = None  # GitHub's event name, which the signature does not cover


# --- secrets ------------------------------------------------------------------------------------------------


def key_of(form: str, secret: str) -> bytes:
    """The signing key, from the secret as exchanged."""
    if form == GITHUB:
        if not 16 <= len(secret) <= 200 or not secret.isprintable():
            raise InvalidInput("secret must be 16 to 200 printable characters", "leave it out to have one generated")
        return secret.encode()
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except (NotBase64, ValueError):
        key = b""
    if not 24 <= len(key) <= 64:
        raise InvalidInput(f"secret must be {PREFIX} and 24 to 64 bytes in base64", "leave it out to generate one")
    return key


def key_for(form: str, given: str | None, token: Callable[[int], bytes]) -> bytes:
    """The key of the given secret, or a generated one; GitHub's secrets are text."""
    if given is not None:
        return key_of(form, given)
    random = token(SECRET_BYTES)
    return random.hex().encode() if form == GITHUB else random


def spelled(form: str, key: bytes) -> str:
    return key.decode() if form == GITHUB else PREFIX + b64encode(key).decode()


class Rotating(Protocol):
    """A row with a secret that is rotated: a trigger's as it is, a webhook's sealed."""

    @property
    def secret(self) -> bytes: ...
    @property
    def previous(self) -> bytes: ...
    @property
    def previous_until(self) -> int | None: ...


def keys_at(row: Rotating, now: int) -> tuple[bytes, ...]:
    """The valid keys, as the row has them: two during a rotation's grace period."""
    has_grace = row.previous_until is not None and now < row.previous_until and row.previous
    found = (row.secret, row.previous) if has_grace else (row.secret,)
    return tuple(key for key in found if key)


# --- signatures ---------------------------------------------------------------------------------------------


def is_signed(headers: Mapping[str, str]) -> bool:
    """Whether there is a signature at all: without one the body need not be read."""
    return "webhook-signature" in headers or "x-hub-signature-256" in headers


def verified(
    form: str, keys: Iterable[bytes], headers: Mapping[str, str], body: bytes, now: int
) -> SignedDelivery | None:
    """The delivery, if one of the keys has signed it; None otherwise, whatever is wrong."""
    if form == GITHUB:
        return _by_github(keys, headers, body)
    return _by_standard(keys, headers, body, now)


def _by_standard(keys: Iterable[bytes], headers: Mapping[str, str], body: bytes, now: int) -> SignedDelivery | None:
    id, time = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if (
        not _ID.fullmatch(id)
        or not _TIME.fullmatch(time)
        or abs(int(time) * 1_000_000 - now) > limits.WEBHOOK_TOLERANCE
    ):
        return None
    given = headers.get("webhook-signature", "").split()[: limits.WEBHOOK_SIGNATURES]
    wanted = _standard(keys, id, time, body)
    return SignedDelivery(id) if _any_equal(wanted, [one.encode("utf-8", "replace") for one in given]) else None


def _by_github(keys: Iterable[bytes], headers: Mapping[str, str], body: bytes) -> SignedDelivery | None:
    id, event = headers.get("x-github-delivery", ""), headers.get("x-github-event")
    given = _HEX.fullmatch(headers.get("x-hub-signature-256", ""))
    if given is None or not _ID.fullmatch(id) or (event is not None and not _ID.fullmatch(event)):
        return None
    wanted = [hmac.new(key, body, hashlib.sha256).hexdigest().encode() for key in keys]
    return SignedDelivery(id, event) if _any_equal(wanted, [given[1].lower().encode()]) else None


def _any_equal(wanted: Iterable[bytes], given: Iterable[bytes]) -> bool:
    given = list(given)
    found = False
    for one in wanted:
        for other in given:
            found |= hmac.compare_digest(one, other)
    return found


def _standard(keys: Iterable[bytes], id: str, time: str, body: bytes) -> list[bytes]:
    """The one rule of Standard Webhooks, to verify and to send."""
    signed = b"%b.%b.%b" % (id.encode(), time.encode(), body)
    return [b"v1," + b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]


def standard_headers(keys: Iterable[bytes], id: str, body: bytes, now: int) -> dict[str, str]:
    """The headers of a body that is sent now, with one signature for each key."""
    time = str(now // 1_000_000)
    signatures = b" ".join(_standard(keys, id, time, body)).decode()
    return {"webhook-id": id, "webhook-timestamp": time, "webhook-signature": signatures}


def signed_headers(form: str, key: bytes, id: str, body: bytes, now: int) -> dict[str, str]:
    """The headers of a signed body; for tests, and for programs that forward deliveries."""
    if form == GITHUB:
        digest = hmac.new(key, body, hashlib.sha256).hexdigest()
        return {"x-github-delivery": id, "x-hub-signature-256": f"sha256={digest}"}
    return standard_headers((key,), id, body, now)
