"""The token of a server's start on this machine: a 0600 file in the user's state folder, one for each address.

`tenure serve` on loopback writes it; clients of the same user read it by themselves. It proves nothing but that one may
read this user's files, which is what opening the store's file would take as well.
"""
# ruff: noqa: PTH105, PTH108, PTH118, PTH120, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from tenure.user_state import make_private_folder, user_state

PREFIX = "tnl_"
_SPELLED = re.compile(PREFIX + "[0-9a-f]{64}")
_LOCALHOST = ("127.0.0.1", "::1")


def is_local_token(text: str) -> bool:
    return _SPELLED.fullmatch(text) is not None


def token_file(environ: Mapping[str, str], host: str, port: int) -> str:
    """Where the token of the server at this address stands."""
    return os.path.join(user_state(environ), "servers", f"{host.replace(':', '_')}-{port}")


def write_token(path: str, token: str) -> None:
    """Put a token there, for this user alone; what stood there before is replaced as a whole."""
    make_private_folder(os.path.dirname(path))
    new = f"{path}.{os.getpid()}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    os.replace(new, path)


def remove_token(path: str, token: str) -> None:
    """Take it away, unless another server has put its own there since."""
    if _read(path) == token:
        os.unlink(path)


def find_token(environ: Mapping[str, str], host: str, port: int) -> str | None:
    """The token for the server at this address; None where this user has none."""
    hosts = _LOCALHOST if host == "localhost" else (host,)
    return next((token for one in hosts if (token := _read(token_file(environ, one, port)))), None)


class Authority:
    """What a client sends to be known: its key, or the token of the server's start on this machine.

    A server that was started again has a new token, so it is read again when the one before is refused.
    """

    def __init__(self, host: str, port: int, key: str | None, *, is_here: bool) -> None:
        self._where = (host, port) if key is None and is_here else None
        self._shown = key or self._found()

    def _found(self) -> str | None:
        return find_token(os.environ, *self._where) if self._where is not None else None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._shown}"} if self._shown else {}

    def is_renewed(self) -> bool:
        """Whether there is another token now than the one that was refused; it is sent from now on."""
        found = self._found()
        if found is None or found == self._shown:
            return False
        self._shown = found
        return True


def _read(path: str) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii", errors="replace") as file:
            about = os.fstat(file.fileno())
            # A file that others can write or have made would send what we say to a server of theirs.
            if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
                return None
            text = file.read(200).strip()
    except OSError:
        return None
    return text if is_local_token(text) else None
