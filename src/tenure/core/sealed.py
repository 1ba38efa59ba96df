"""Sealed values: their form, and which key seals. Pure; the cipher is an argument (`tenure.sealing`).

A secret is sealed before a command reaches its handler, so that rows, events, archive, exports and sinks only ever have
the sealed form: `{"$sealed": {key, nonce, text, digest}}`, in a column of bytes the same as JSON. `digest` is an HMAC
of the plain value under the project's digest key, which no rotation changes: plans, edits and repeats compare digests,
and nobody opens a secret to find out whether it is still the same.

A sealed value opens only in its place: tenant, project, owning row and path are authenticated with it. A copy to
another place must be opened and sealed again.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput, SecretUnreadable, TooLarge
from tenure.core.messaging_records import DataKey

SEALED = "$sealed"
MASTER_KEY = "TENURE_MASTER_KEY"  # the variables that begin so give the master key
DIGEST_KEY = "digest"  # the id of a project's digest key
KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
DIGEST_BYTES = 32
LARGEST = limits.SECRET_BYTES


class Place(NamedTuple):
    """Where a sealed value belongs; it opens nowhere else."""

    tenant: str
    project: str
    owner: str  # the row: its table and id, as in `webhook:ci`
    path: str  # in that row, as in `secret`


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    key: str  # the id of the data key
    nonce: bytes
    text: bytes  # the ciphertext with its tag
    digest: bytes


class Sealer(Protocol):
    """The cipher under the master key. Raises SecretsOff where there is no master key."""

    def wrap(self, tenant: str, row: DataKey, key: bytes, nonce: bytes) -> DataKey:
        """The row with the key in it, wrapped by the current master key."""

    def rewrap(self, tenant: str, row: DataKey, nonce: bytes) -> DataKey:
        """The row under the current master key; the same row where it is already. Raises SecretUnreadable."""

    def seal(self, place: Place, value: bytes, key: DataKey, digest_key: DataKey, nonce: bytes) -> Sealed:
        """Raises SecretUnreadable where a key cannot be unwrapped."""

    def open(self, place: Place, sealed: Sealed, key: DataKey, digest_key: DataKey) -> bytes:
        """Raises SecretUnreadable: another master key, another place, or a changed value."""

    def digest(self, tenant: str, value: bytes, digest_key: DataKey) -> bytes: ...


# --- one project's secrets in one transaction ---------------------------------------------------------------


class ProjectSeals:
    """Seals and opens the values of one project with the data keys that a transaction has read.

    `made` collects the rows that the caller must save with the sealed value: the first secret of a project makes its
    keys. `token` gives random bytes.
    """

    def __init__(
        self,
        sealer: Sealer,
        tenant: str,
        project: str,
        rows: Iterable[DataKey],
        token: Callable[[int], bytes],
        now: int,
    ) -> None:
        self._sealer, self._tenant, self._project = sealer, tenant, project
        self._rows = {row.id: row for row in rows}
        self._token, self._now = token, now
        self.made: list[DataKey] = []

    @property
    def rows(self) -> list[DataKey]:
        return list(self._rows.values())

    def seal(self, owner: str, path: str, value: bytes) -> Sealed:
        if len(value) > LARGEST:
            raise TooLarge(f"{path} may have at most {LARGEST} bytes as a secret (got {len(value)})")
        key, digest_key = current_key(self._rows.values()) or self.rotate(), self._digest_key()
        return self._sealer.seal(self._place(owner, path), value, key, digest_key, self._token(NONCE_BYTES))

    def open(self, owner: str, path: str, sealed: Sealed) -> bytes:
        key, digest_key = self._rows.get(sealed.key), self._rows.get(DIGEST_KEY)
        if key is None or digest_key is None:
            raise SecretUnreadable(
                f"{path} of {owner} is sealed with the key {sealed.key[:60]}, which this store does not have",
                "set the secret again",
            )
        return self._sealer.open(self._place(owner, path), sealed, key, digest_key)

    def check(self) -> None:
        """Raises SecretsOff or SecretUnreadable where a key of the project cannot be unwrapped."""
        for row in self._rows.values():
            self._sealer.digest(self._tenant, b"", row)

    def is_same(self, sealed: Sealed | None, value: bytes) -> bool:
        """Whether the sealed value is this one; opens nothing."""
        digest_key = self._rows.get(DIGEST_KEY)
        if sealed is None or digest_key is None:
            return False
        return hmac.compare_digest(sealed.digest, self._sealer.digest(self._tenant, value, digest_key))

    def rotate(self) -> DataKey:
        """A new data key, which seals from now on; older ones only open.

        Raises SecretUnreadable under a master key that does not open the digest key: it would be the wrong one.
        """
        if DIGEST_KEY in self._rows:
            self._sealer.digest(self._tenant, b"", self._rows[DIGEST_KEY])
        for row in list(self._rows.values()):
            if row.id != DIGEST_KEY and row.retired_at is None:
                self._keep(msgspec.structs.replace(row, retired_at=self._now))
        return self._new(f"key_{self._token(10).hex()}")

    def lost(self) -> list[DataKey]:
        """The keys that no master key here unwraps; without the digest key all of them, since nothing opens then."""
        found = []
        for row in self._rows.values():
            try:
                self._sealer.digest(self._tenant, b"", row)
            except SecretUnreadable:
                found.append(row)
        return self.rows if any(row.id == DIGEST_KEY for row in found) else found

    def has_key_of(self, sealed: Sealed) -> bool:
        """Whether the value may be opened by somebody: its data key was not given up."""
        return sealed.key in self._rows and DIGEST_KEY in self._rows

    def rewrap(self) -> int:
        """How many keys were wrapped again, because another master key is current. No sealed value changes."""
        count = 0
        for row in list(self._rows.values()):
            after = self._sealer.rewrap(self._tenant, row, self._token(NONCE_BYTES))
            if after != row:
                self._keep(after)
                count += 1
        return count

    def _digest_key(self) -> DataKey:
        return self._rows.get(DIGEST_KEY) or self._new(DIGEST_KEY)

    def _new(self, id: str) -> DataKey:
        bare = DataKey(project=self._project, id=id, wrapped=b"", created_at=self._now)
        row = self._sealer.wrap(self._tenant, bare, self._token(KEY_BYTES), self._token(NONCE_BYTES))
        self._keep(row)
        return row

    def _keep(self, row: DataKey) -> None:
        self._rows[row.id] = row
        self.made = [other for other in self.made if other.id != row.id] + [row]

    def _place(self, owner: str, path: str) -> Place:
        return Place(self._tenant, self._project, owner, path)


def current_key(rows: Iterable[DataKey]) -> DataKey | None:
    """The data key that seals: the newest that is not retired."""
    live = [row for row in rows if row.id != DIGEST_KEY and row.retired_at is None]
    return max(live, key=lambda row: (row.created_at, row.id), default=None)


# --- the form -----------------------------------------------------------------------------------------------


def as_value(sealed: Sealed) -> dict[str, Any]:
    """As it stands in JSON."""
    parts = {name: b64encode(getattr(sealed, name)).decode() for name in ("nonce", "text", "digest")}
    return {SEALED: {"key": sealed.key, **parts}}


def as_bytes(sealed: Sealed) -> bytes:
    """As it stands in a column of bytes."""
    return msgspec.json.encode(as_value(sealed))


def has_form(stored: bytes) -> bool:
    """Whether a column of bytes has a sealed value: some rows are from before there were any."""
    return stored.startswith(b'{"$sealed":')


def is_sealed(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and SEALED in value


def from_value(value: Any) -> Sealed:
    """Raises SecretUnreadable where it does not have the form."""
    found = value[SEALED] if is_sealed(value) else None
    try:
        if not isinstance(found, Mapping) or set(found) != {"key", "nonce", "text", "digest"}:
            raise ValueError
        nonce, text, digest = (b64decode(found[name], validate=True) for name in ("nonce", "text", "digest"))
        is_whole = len(nonce) == NONCE_BYTES and len(text) >= TAG_BYTES and len(digest) == DIGEST_BYTES
        if not is_whole or not isinstance(found["key"], str):
            raise ValueError
    except (NotBase64, ValueError, TypeError):
        raise SecretUnreadable("a sealed value is damaged: it does not have the form of one", HINT) from None
    return Sealed(key=found["key"], nonce=nonce, text=text, digest=digest)


def from_bytes(stored: bytes) -> Sealed:
    try:
        return from_value(msgspec.json.decode(stored))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SecretUnreadable("a sealed value is damaged: it is not JSON", HINT) from None


HINT = "set the secret again, or bring back the store from a backup"


def refuse_sealed(value: Any, where: str) -> None:
    """Sealed values are ours to write: a caller's would move a secret to a place of their choice."""
    todo = [(value, where)]
    while todo:
        found, path = todo.pop()
        if isinstance(found, Mapping):
            if SEALED in found:
                raise InvalidInput(
                    f"{path} has {SEALED!r}, which no input may have", "give the plain value as a secret"
                )
            todo += [(inner, f"{path}.{str(name)[:60]}") for name, inner in found.items()]
        elif isinstance(found, (list, tuple)):
            todo += [(inner, f"{path}.{number}") for number, inner in enumerate(found)]
