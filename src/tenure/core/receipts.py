"""Receipts: what a claim returns to its holder, and the only proof of the claim.

Text `B-003@7:TOKEN`; TOKEN is Crockford base32 of the store epoch (4 bytes) and the claim's nonce (16 bytes).
Standalone reservations have receipts of the same shape, named by the reservation's id.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tenure.core.errors import InvalidInput
from tenure.core.ids import decode_base32, encode_base32
from tenure.core.records import Claim, Task

EPOCH_BYTES = 4
NONCE_BYTES = 16
_SHAPE = re.compile(r"([A-Za-z0-9_:-]{1,400}?)@([0-9]{1,18}):([0-9A-Za-z]+)")


class Receipt(NamedTuple):
    name: str  # short key of the task, or id of the reservation
    generation: int
    epoch: str
    nonce: bytes

    def __str__(self) -> str:
        token = encode_base32(bytes.fromhex(self.epoch) + self.nonce)
        return f"{self.name}@{self.generation}:{token}"


def parse_receipt(text: str) -> Receipt:
    match = _SHAPE.fullmatch(text)
    token = decode_base32(match.group(3), EPOCH_BYTES + NONCE_BYTES) if match else None
    if match is None or token is None:
        raise InvalidInput(
            "malformed receipt; expected B-003@7:TOKEN", "pass the text that `claim` returned, unchanged"
        )
    return Receipt(match.group(1), int(match.group(2)), token[:EPOCH_BYTES].hex(), token[EPOCH_BYTES:])


def receipt_of(task: Task, claim: Claim) -> str:
    return str(Receipt(task.ref, claim.generation, claim.epoch, claim.nonce))


def is_genuine(receipt: Receipt, claim: Claim | None) -> bool:
    """Whether the receipt was issued for this claim, whatever has happened to the claim since."""
    import hmac  # imports hashlib, a fifth of the startup time: only for presented receipts

    return claim is not None and claim.epoch == receipt.epoch and hmac.compare_digest(claim.nonce, receipt.nonce)
