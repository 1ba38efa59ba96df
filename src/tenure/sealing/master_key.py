"""The master key: where it comes from, and the error where there is none.

| source | |
| --- | --- |
| `TENURE_MASTER_KEY` | the key itself |
| `TENURE_MASTER_KEY_FILE` | a file that only this user can read |
| `TENURE_MASTER_KEY_COMMAND` | a command that prints it, as that of a key service; no shell |
| none, embedded store | `master.key` in the user's state folder, made with the first secret |

A key is 32 bytes, as base64 or as 64 hex digits. A source may have several, separated by white space or commas: the
first seals, the others still unwrap. So a master key is replaced without a moment in which nothing opens: put the new
one before the old one, wrap the data keys again, take the old one away.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import threading
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tenure.config import BadConfig
from tenure.core import limits
from tenure.core.child_environments import ChildKind, for_child
from tenure.core.errors import SecretsOff
from tenure.core.safe_text import shell_word
from tenure.core.sealed import KEY_BYTES, MASTER_KEY
from tenure.user_state import make_private_folder, sync_folder, user_state

VALUE, FILE, COMMAND = VARIABLES = (MASTER_KEY, f"{MASTER_KEY}_FILE", f"{MASTER_KEY}_COMMAND")
EMBEDDED = "master.key"  # in the user's state folder
MOST = limits.MASTER_KEYS
FILE_BYTES = MOST * 100
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_HOW = f"set {VALUE}, {FILE} or {COMMAND} to a key of {KEY_BYTES} bytes, as `openssl rand -base64 {KEY_BYTES}` prints"


class MasterKey(NamedTuple):
    id: str  # says which key it is, and nothing about its bytes
    key: bytes


class MasterKeys(NamedTuple):
    """The current key and those before it, which only unwrap."""

    keys: tuple[MasterKey, ...]
    origin: str

    @property
    def current(self) -> MasterKey:
        return self.keys[0]

    def named(self, id: str) -> MasterKey | None:
        return next((one for one in self.keys if one.id == id), None)


class KeySource:
    """Reads the master keys when they are first needed, and keeps them. Safe to share between threads.

    `is_embedded`: the store is this user's own file, so a key file may be made for it; `say` gets a sentence about it.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        is_embedded: bool = False,
        random: Callable[[int], bytes] = os.urandom,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._environ, self._is_embedded, self._random, self._say = environ, is_embedded, random, say
        self._mutex = threading.Lock()
        self._keys: MasterKeys | None = None

    def keys(self, *, make: bool = False) -> MasterKeys:
        """Raises SecretsOff where there is no key, BadConfig where the configured value is not one.

        `make`: an embedded store's missing key is made. Never to open something: a new key opens nothing.
        """
        with self._mutex:
            if self._keys is None:
                self._keys = self._found(make)
            return self._keys

    def again(self) -> MasterKeys:
        """The keys, read again where they are in a file: somebody may have put another one into it."""
        with self._mutex:
            if self._keys is None or not {VALUE, COMMAND}.intersection(self._given()):
                self._keys = self._found(make=False)
            return self._keys

    def renew(self) -> str | None:
        """Put a new key before the others in the file of an embedded store; returns its path.

        None where there is no key yet, or it is not ours to make. Keys before it stay: other stores of this user may
        need them.
        """
        path = str(Path(user_state(self._environ), EMBEDDED))
        if self._given() or not self._is_embedded or not os.path.lexists(path):
            return None
        with self._mutex:
            self._keys = None
            _prepended(path, self._random(KEY_BYTES))
        return path

    def _given(self) -> list[str]:
        return [name for name in VARIABLES if self._environ.get(name)]

    def _found(self, make: bool) -> MasterKeys:
        given = self._given()
        if len(given) > 1:
            raise BadConfig(f"{' and '.join(given)} are both set", "set one of them: which key seals must be certain")
        if given == [VALUE]:
            return _parsed(self._environ[VALUE], VALUE)
        if given == [FILE]:
            return _from_file(self._environ[FILE])
        if given == [COMMAND]:
            return _from_command(self._environ[COMMAND], self._environ)
        if not self._is_embedded:
            raise SecretsOff("there is no master key, so secrets can be neither sealed nor opened", _HOW)
        return self._embedded(make)

    def _embedded(self, make: bool) -> MasterKeys:
        # Not `writable_state`: its last resort is the temporary folder, where the key would be lost with a reboot.
        path = str(Path(user_state(self._environ), EMBEDDED))
        if not os.path.lexists(path):
            if not make:
                raise SecretsOff(f"the master key {path} is missing, so sealed values cannot be opened", _BACKUP)
            if _made(path, self._random(KEY_BYTES)):
                self._say(f"made the master key {path}: back it up, since without it no sealed value can be opened")
        return _from_file(path)


_BACKUP = "put the file back from your backup"


def id_of(key: bytes) -> str:
    """A short name of a key: rows say under which master key they are wrapped."""
    return hashlib.sha256(b"tenure master key\0" + key).hexdigest()[:16]


def _parsed(text: str, origin: str) -> MasterKeys:
    words = text.replace(",", " ").split()
    if not words:
        raise SecretsOff(f"{origin} is empty", _HOW)
    if len(words) > MOST:
        raise BadConfig(f"{origin} has {len(words)} keys; at most {MOST} may be given", "remove those no longer in use")
    keys = tuple(dict.fromkeys(_key(word, origin) for word in words))
    return MasterKeys(tuple(MasterKey(id_of(key), key) for key in keys), origin)


def _key(word: str, origin: str) -> bytes:
    """No message repeats any part of the word."""
    try:
        key = bytes.fromhex(word) if _HEX.fullmatch(word) else b64decode(word, validate=True)
    except (NotBase64, ValueError):
        raise BadConfig(f"{origin} is neither base64 nor hex", _HOW) from None
    if len(key) != KEY_BYTES:
        raise BadConfig(f"{origin} has a key of {len(key)} bytes; it must have {KEY_BYTES}", _HOW)
    return key


def _from_file(path: str) -> MasterKeys:
    try:
        # Not blocking: a named pipe would wait for a writer before it could be refused.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise SecretsOff(f"the master key {path} cannot be read: {error.strerror}", f"check {FILE}") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise BadConfig(f"the master key {path} is not a file", f"name a file in {FILE}")
        if found.st_mode & 0o077:
            raise BadConfig(
                f"the master key {path} can be read or written by others (mode {stat.S_IMODE(found.st_mode):04o})",
                f"`chmod 600 {shell_word(path)}`, and replace the key if others may have read it",
            )
        if found.st_uid not in (os.getuid(), 0):
            raise BadConfig(f"the master key {path} belongs to another user", "use your own file")
        content = os.read(handle, FILE_BYTES)
    finally:
        os.close(handle)
    return _parsed(content.decode("ascii", "replace"), path)


def _from_command(text: str, environ: Mapping[str, str]) -> MasterKeys:
    from tenure.processes.bounded_run import NotRun, run

    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise BadConfig(f"{COMMAND} is not a command: {error}", "quote its arguments as a shell wants them") from None
    if not argv:
        raise BadConfig(f"{COMMAND} is empty", _HOW)
    try:
        done = run(
            argv, cwd="/", env=for_child(ChildKind.PROGRAM, environ), seconds=limits.MASTER_KEY_TIMEOUT,
            keep_stderr=False,
        )  # fmt: skip
    except NotRun as error:
        raise SecretsOff(f"the master key's command did not run: {error.message}", f"check {COMMAND}") from None
    if done.limit is not None or done.exit != 0:
        why = f"did not end within {limits.MASTER_KEY_TIMEOUT:g} s" if done.limit else f"ended with {done.exit}"
        raise SecretsOff(f"the master key's command {argv[0]} {why}", "run it by hand to see why")
    return _parsed(done.output.decode("ascii", "replace"), f"the output of {argv[0]}")


def _prepended(path: str, key: bytes) -> None:
    """Write the file again with one more key, whole or not at all; two at the same time come one after the other."""
    folder, new = str(Path(path).parent), Path(f"{path}.{os.getpid()}-{threading.get_ident()}")
    handle = _locked(path)
    try:
        keys = _from_file(path).keys
        if len(keys) >= MOST:
            raise BadConfig(f"the master key {path} has {MOST} keys, the most it may have", "remove those not in use")
        text = "".join(f"{one.hex()}\n" for one in (key, *(known.key for known in keys)))
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync_folder(folder)
    except OSError as error:
        raise SecretsOff(f"no master key can be written to {path}: {error.strerror}", _HOW) from None
    finally:
        os.close(handle)
        with suppress(OSError):
            new.unlink()


def _locked(path: str) -> int:
    """The file, locked; opened again where another process has replaced it meanwhile."""
    import fcntl

    while True:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), Path(path).stat()):
                return handle
        os.close(handle)


def _made(path: str, key: bytes) -> bool:
    """Create the key file, whole or not at all; False where another process was first."""
    folder = str(Path(path).parent)
    new = Path(f"{path}.{os.getpid()}-{threading.get_ident()}")
    try:
        make_private_folder(folder)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(key.hex().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(new, path)  # unlike a rename it never replaces a key that is there
        except FileExistsError:
            return False
        sync_folder(folder)
    except OSError as error:
        raise SecretsOff(f"no master key can be made in {folder}: {error.strerror}", _HOW) from None
    finally:
        with suppress(OSError):
            new.unlink()
    return True
