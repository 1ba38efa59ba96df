"""Ed25519: keys of sessions that sign their results. `cryptography` is imported with the first key."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Any

from tenure.core.errors import InvalidInput

SEED_BYTES = 32


class SigningKey:
    """A private key. It is never printed, and never leaves the process but for its file."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key: Any = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        return str(self._key.sign(message).hex())

    def __repr__(self) -> str:
        return f"<SigningKey {self.public[:16]}…>"


def is_signed(public_key: str, signature: str, message: bytes) -> bool:
    """Whether the signature is the key's, over this message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_in(path: str, *, create: bool = True, make: Any = os.urandom) -> SigningKey:
    """The key in a file with mode 0600, as 64 hex digits; with `create` the file is created where it is missing.

    `make` gives random bytes for a new key.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if not create:
            raise InvalidInput(
                f"key {path}: there is no such file", "restore it, or run `tenure join --key FILE` with another one"
            ) from None
        return _made(path, make(SEED_BYTES))
    except OSError as error:
        raise InvalidInput(f"key {path}: {error.strerror}") from None
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        os.close(number)
        raise InvalidInput(f"key {path}: is not a file", "name a file; it is created if it is missing")
    with os.fdopen(number, "rb") as file:
        if status.st_mode & 0o077:
            raise InvalidInput(f"key {path}: others may read it", f"chmod 600 {path}")
        text = file.read(200)
    try:
        seed = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise InvalidInput(f"key {path}: is not an Ed25519 key", "64 hex digits; name a new file to make one")
    return SigningKey(seed)


def _made(path: str, seed: bytes) -> SigningKey:
    """Written whole before it has its name: another process may make it at the same time."""
    new = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120 - see below
        number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(seed.hex().encode() + b"\n")
            file.flush()
            os.fsync(number)
        with suppress(FileExistsError):
            os.link(new, path)
        os.unlink(new)  # noqa: PTH108 - `done` imports no pathlib
    except OSError as error:
        raise InvalidInput(f"key {path}: {error.strerror}") from None
    return key_in(path)
