"""The sealer of a process: made with the first secret, so that no other command pays for the imports."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.core.messaging_records import DataKey
    from tenure.core.sealed import Place, Sealed, Sealer


class LateCipher:
    """A Sealer under the master key of this process's environment; `say` gets a sentence where a key was made."""

    def __init__(self, *, is_embedded: bool, say: Callable[[str], None]) -> None:
        self._is_embedded, self._say = is_embedded, say

    @cached_property
    def _cipher(self) -> Sealer:
        from tenure.sealing.cipher import Cipher
        from tenure.sealing.master_key import KeySource

        return Cipher(KeySource(os.environ, is_embedded=self._is_embedded, say=self._say))

    def wrap(self, tenant: str, row: DataKey, key: bytes, nonce: bytes) -> DataKey:
        return self._cipher.wrap(tenant, row, key, nonce)

    def rewrap(self, tenant: str, row: DataKey, nonce: bytes) -> DataKey:
        return self._cipher.rewrap(tenant, row, nonce)

    def seal(self, place: Place, value: bytes, key: DataKey, digest_key: DataKey, nonce: bytes) -> Sealed:
        return self._cipher.seal(place, value, key, digest_key, nonce)

    def open(self, place: Place, sealed: Sealed, key: DataKey, digest_key: DataKey) -> bytes:
        return self._cipher.open(place, sealed, key, digest_key)

    def digest(self, tenant: str, value: bytes, digest_key: DataKey) -> bytes:
        return self._cipher.digest(tenant, value, digest_key)
