"""The token of a server on this machine: a 0600 file in the user's state folder, one for each address.

`tenure serve` on loopback writes it at each start; clients of the same user read it. It proves only that its bearer may
read this user's files, which is enough to open the store's file too.

A second file beside it names the server's process. Where that has ended, also by SIGKILL, the token is sent to nobody:
another program may listen at the address now.
"""
# ruff: noqa: PTH105, PTH108, PTH118, PTH120, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress

from tenure.user_state import make_private_folder, user_state

PREFIX = "tnl_"
PROCESS = ".process"  # the end of the name of the second file
_SPELLED = re.compile(PREFIX + "[0-9a-f]{64}")
_LOCALHOST = ("127.0.0.1", "::1")


def is_local_token(text: str) -> bool:
    return _SPELLED.fullmatch(text) is not None


def token_file(environ: Mapping[str, str], host: str, port: int) -> str:
    """The path of the token of the server at this address."""
    return os.path.join(user_state(environ), "servers", f"{host.replace(':', '_')}-{port}")


def write_token(path: str, token: str) -> None:
    """Write this process's token, which only this user may read; replaces a previous one atomically."""
    from tenure import process_table  # few commands talk to a server here

    make_private_folder(os.path.dirname(path))
    process = process_table.look_up(os.getpid())
    start = process.start if process is not None else 0
    _write(path + PROCESS, f"{os.getpid()} {start} {process_table.boot_id()}")
    _write(path, token)


def _write(path: str, text: str) -> None:
    new = f"{path}.{os.getpid()}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    os.replace(new, path)


def remove_token(path: str, token: str) -> None:
    """Delete the token, unless another server has written its own since."""
    if _read(path) == token:
        os.unlink(path)
        with suppress(FileNotFoundError):
            os.unlink(path + PROCESS)


def find_token(environ: Mapping[str, str], host: str, port: int) -> str | None:
    """The token for the server at this address; None where this user has no such token."""
    hosts = _LOCALHOST if host == "localhost" else (host,)
    paths = (token_file(environ, one, port) for one in hosts)
    found = ((_read(path), path) for path in paths)
    return next((token for token, path in found if is_local_token(token) and _runs(_read(path + PROCESS))), None)


def _runs(process: str) -> bool:
    """Whether the server's process runs, among the processes that this one can see."""
    from tenure import process_table

    pid, _, rest = process.partition(" ")
    start, _, boot = rest.partition(" ")
    if not (pid.isdecimal() and start.isdecimal()) or boot != process_table.boot_id():
        return False
    found = process_table.look_up(int(pid))
    return found is not None and found.start == int(start)


def _read(path: str) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii", errors="replace") as file:
            about = os.fstat(file.fileno())
            # A file that others wrote could make us trust their server.
            if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
                return ""
            return file.read(200).strip()
    except OSError:
        return ""
