"""AES-256-GCM: data keys wrapped by the master key, values sealed by data keys.

A wrapped key is `1` (one byte: the form), the master key's id (8 bytes), a nonce (12), the ciphertext with its tag
(48). Associated data is a JSON array, so that no two places share one encoding:

    ["tenure data key", TENANT, PROJECT, KEY ID]        of a wrapped key
    ["tenure sealed", TENANT, PROJECT, OWNER, PATH]     of a sealed value

Nonces are arguments, 12 random bytes each: a data key may seal four thousand million values before two of them would
be likely to meet.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core.errors import SecretUnreadable
from tenure.core.messaging_records import DataKey
from tenure.core.sealed import HINT, KEY_BYTES, NONCE_BYTES, TAG_BYTES, Place, Sealed

if TYPE_CHECKING:
    from tenure.sealing.master_key import KeySource, MasterKey

FORM = b"\x01"
_ID_END = 1 + 8
_NONCE_END = _ID_END + NONCE_BYTES
_WRAPPED_BYTES = _NONCE_END + KEY_BYTES + TAG_BYTES
_REMEMBERED = 1000  # unwrapped data keys in memory; a project has a few


class Cipher:
    """Implements `core.sealed.Sealer` with the keys of one source. Safe to share between threads."""

    def __init__(self, source: KeySource) -> None:
        self.source = source
        self._unwrapped: dict[tuple[str, str, str, bytes], bytes] = {}

    def wrap(self, tenant: str, row: DataKey, key: bytes, nonce: bytes) -> DataKey:
        master = self.source.keys(make=True).current
        return msgspec.structs.replace(row, wrapped=_wrapped(tenant, row, key, master, nonce))

    def rewrap(self, tenant: str, row: DataKey, nonce: bytes) -> DataKey:
        if _master_id(row) == self.source.keys().current.id:
            return row
        return self.wrap(tenant, row, self._key(tenant, row), nonce)

    def seal(self, place: Place, value: bytes, key: DataKey, digest_key: DataKey, nonce: bytes) -> Sealed:
        text = _aead(self._key(place.tenant, key)).encrypt(nonce, value, _of_value(place))
        digest = self.digest(place.tenant, value, digest_key)
        return Sealed(key=key.id, nonce=nonce, text=text, digest=digest)

    def open(self, place: Place, sealed: Sealed, key: DataKey, digest_key: DataKey) -> bytes:
        value = _decrypted(self._key(place.tenant, key), sealed.nonce, sealed.text, _of_value(place))
        # The tag does not cover the digest, and yet the digest decides whether a secret has changed.
        if value is None or not hmac.compare_digest(self.digest(place.tenant, value, digest_key), sealed.digest):
            raise SecretUnreadable(
                f"{place.path} of {place.owner} is damaged, or was moved here from another place", HINT
            )
        return value

    def digest(self, tenant: str, value: bytes, digest_key: DataKey) -> bytes:
        return hmac.digest(self._key(tenant, digest_key), value, "sha256")

    def _key(self, tenant: str, row: DataKey) -> bytes:
        found = (tenant, row.project, row.id, row.wrapped)
        key = self._unwrapped.get(found)
        if key is None:
            key = self._unwrap(tenant, row)
            if len(self._unwrapped) >= _REMEMBERED:
                self._unwrapped.clear()
            self._unwrapped[found] = key
        return key

    def _unwrap(self, tenant: str, row: DataKey) -> bytes:
        if len(row.wrapped) != _WRAPPED_BYTES or row.wrapped[:1] != FORM:
            raise SecretUnreadable(f"the data key {row.id} of {row.project} is damaged", _RESTORE)
        keys, wanted = self.source.keys(), _master_id(row)
        master = keys.named(wanted)
        if master is None:  # a rotation may have put it into the file since
            keys = self.source.again()
            master = keys.named(wanted)
        if master is None:
            raise SecretUnreadable(
                f"the secrets of {row.project} are sealed under the master key {wanted}; "
                f"{keys.origin} has {', '.join(one.id for one in keys.keys)}",
                "give that master key too, after the current one; if it is lost: `tenure secret rotate --lost`",
            )
        nonce, text = row.wrapped[_ID_END:_NONCE_END], row.wrapped[_NONCE_END:]
        key = _decrypted(master.key, nonce, text, _of_key(tenant, row))
        if key is None:
            raise SecretUnreadable(
                f"the data key {row.id} of {row.project} is damaged, or belongs to another project", _RESTORE
            )
        return key


_RESTORE = "bring back the store from a backup"


def _wrapped(tenant: str, row: DataKey, key: bytes, master: MasterKey, nonce: bytes) -> bytes:
    text = _aead(master.key).encrypt(nonce, key, _of_key(tenant, row))
    return FORM + bytes.fromhex(master.id) + nonce + bytes(text)


def _master_id(row: DataKey) -> str:
    return row.wrapped[1:_ID_END].hex()


def _of_key(tenant: str, row: DataKey) -> bytes:
    return msgspec.json.encode(["tenure data key", tenant, row.project, row.id])


def _of_value(place: Place) -> bytes:
    return msgspec.json.encode(["tenure sealed", *place])


def _aead(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # half a second cold: only who has secrets pays

    return AESGCM(key)


def _decrypted(key: bytes, nonce: bytes, text: bytes, associated: bytes) -> bytes | None:
    """None where the tag does not fit."""
    from cryptography.exceptions import InvalidTag

    try:
        return bytes(_aead(key).decrypt(nonce, text, associated))
    except InvalidTag:
        return None
