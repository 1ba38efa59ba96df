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
    return text


def is_signature(text: str) -> bool:
    return len(text) == SIGNATURE_DIGITS and not set(text) - _HEX


def fingerprint(public_key: str) -> str:
    """A short name of a key, for people."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]
