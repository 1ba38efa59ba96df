"""Signed submissions: what a signature covers, and the form of keys.

A session that has registered an Ed25519 public key signs each result that it submits. The signature covers a JSON
array, so that no two submissions share one text:

    ["tenure.submit.v1", TENANT, PROJECT, TASK, GENERATION, EPOCH, DATA, SUMMARY, ARTIFACTS, REQUEST ID]

TASK is the short key in the receipt, EPOCH the first eight hex digits of its token; the request id is "" without one.
DATA, SUMMARY and ARTIFACTS are SHA-256 in hex, over the deterministic JSON of the data as a JSON parser reads it (keys
sorted by code point, no spaces, UTF-8), of the summary, and of a list of [name, digest] of the artifacts that the
result passes on, sorted by name. Nothing here computes a signature: see `sealing/signing.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.core.errors import InvalidInput

FORM = "tenure.submit.v1"
KEY_DIGITS, SIGNATURE_DIGITS = 64, 128
_HEX = frozenset("0123456789abcdef")


def message(
    *,
    tenant: str,
    project: str,
    task: str,
    generation: int,
    epoch: str,
    data: Any,
    summary: str,
    artifacts: Mapping[str, str],
    request_id: str | None,
) -> bytes:
    """The text that the signature covers. `artifacts` maps names to digests."""
    covered = (data, summary, sorted(artifacts.items()))
    digests = [hashlib.sha256(_deterministic(value)).hexdigest() for value in covered]
    return msgspec.json.encode([FORM, tenant, project, task, generation, epoch, *digests, request_id or ""])


def _deterministic(value: Any) -> bytes:
    """The JSON of a value, the same for all who read it from JSON: a key may have been a number before."""
    return msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(value)), order="deterministic")


def check_public_key(text: str) -> str:
    if len(text) != KEY_DIGITS or set(text) - _HEX:
        raise InvalidInput("public_key must be an Ed25519 public key, 64 hex digits in lower case")
    weakness = weakness_of(text)
    if weakness:
        raise InvalidInput(f"public_key {weakness}", WEAK_HINT)
    return text


_PRIME = 2**255 - 19
_D = -121665 * pow(121666, -1, _PRIME) % _PRIME  # of the curve: -x² + y² = 1 + d·x²·y²
# The heights of the eight points of small order; the last is that of order 8, and its negative.
_OF_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL = frozenset({0, 1, _PRIME - 1, _OF_8, _PRIME - _OF_8})


def weakness_of(public_key: str) -> str:
    """Why a signature of this Ed25519 key proves nothing; empty for a good one.

    The libraries accept such keys. For a point of small order one fixed signature fits every text, or one text in a
    few; a point that is written in two ways has two names.
    """
    try:
        number = int.from_bytes(bytes.fromhex(public_key), "little")
    except ValueError:
        number = -1
    if len(public_key) != KEY_DIGITS or number < 0:
        return "is not an Ed25519 public key"
    height = number & (1 << 255) - 1
    if height % _PRIME in _SMALL:
        return "is a point of small order: anybody can sign for it"
    if height >= _PRIME:
        return "is not in its canonical form: the same point has another name"
    above, below = height * height - 1, _D * height * height + 1
    if pow(above * below, (_PRIME - 1) // 2, _PRIME) != 1:
        return "is not a point of the curve: nobody can sign for it"
    return ""


WEAK_HINT = "make a key with `tenure join --key FILE`, or with another program that makes Ed25519 keys"


def is_signature(text: str) -> bool:
    return len(text) == SIGNATURE_DIGITS and not set(text) - _HEX


def fingerprint(public_key: str) -> str:
    """A short name of a key, for people."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]
