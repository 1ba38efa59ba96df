"""Ed25519: keys of sessions that sign their results. `cryptography` is imported with the first key."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Any

from tenure.core.errors import InvalidInput
from tenure.core.safe_text import shell_word
from tenure.core.signed_results import weakness_of

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
    """Whether the signature is the key's, over this message; never for a key whose signatures prove nothing."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if weakness_of(public_key):
        return False
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
        # Not blocking: a named pipe would wait for a writer before it could be refused.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if not create:
            raise InvalidInput(
                f"key {path}: there is no such file", "restore it, or run `tenure join --key FILE` with another one"
            ) from None
        create_key(path, make)
        return key_in(path, create=False)
    except OSError as error:
        raise InvalidInput(f"key {path}: {error.strerror}") from None
    try:
        mode = os.fstat(number).st_mode
        if not stat.S_ISREG(mode):
            raise InvalidInput(f"key {path}: is not a file", "name a file; one that is missing is created")
        if mode & 0o077:
            raise InvalidInput(f"key {path}: others may read it", f"chmod 600 {shell_word(path)}")
        text = os.read(number, 200)
    finally:
        os.close(number)
    try:
        seed = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise InvalidInput(f"key {path}: is not an Ed25519 key", "64 hex digits; name a new file to make one")
    return SigningKey(seed)


def create_key(path: str, make: Any = os.urandom) -> bool:
    """Create the file of a new key; False where another process was first.

    It is written whole before it has its name.
    """
    new, is_ours = f"{path}.{os.getpid()}", False
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120 - see below
        number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(make(SEED_BYTES).hex().encode() + b"\n")
            file.flush()
            os.fsync(number)
        with suppress(FileExistsError):
            os.link(new, path)
            is_ours = True
        os.unlink(new)  # noqa: PTH108 - `done` imports no pathlib
    except OSError as error:
        raise InvalidInput(f"key {path}: {error.strerror}") from None
    return is_ours
