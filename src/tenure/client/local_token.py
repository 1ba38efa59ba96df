"""The token of a server on this machine: a 0600 file in the user's state folder, one for each address.

`tenure serve` on loopback writes it at each start; clients of the same user read it. It proves only that its bearer may
read this user's files, which is enough to open the store's file too.

The second line names the server's process. Where that has ended, also by SIGKILL, the token is sent to nobody: whoever
listens at the address now is somebody else.
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
    """The path of the token of the server at this address."""
    return os.path.join(user_state(environ), "servers", f"{host.replace(':', '_')}-{port}")


def write_token(path: str, token: str) -> None:
    """Write this process's token, which only this user may read; replaces a previous one atomically."""
    from tenure import process_table  # few commands talk to a server here

    process = process_table.look_up(os.getpid())
    start = process.start if process is not None else 0
    make_private_folder(os.path.dirname(path))
    new = f"{path}.{os.getpid()}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{token}\n{os.getpid()} {start} {process_table.boot_id()}\n")
    os.replace(new, path)


def remove_token(path: str, token: str) -> None:
    """Delete the token, unless another server has written its own since."""
    if _read(path)[0] == token:
        os.unlink(path)


def find_token(environ: Mapping[str, str], host: str, port: int) -> str | None:
    """The token for the server at this address; None where this user has no such token."""
    hosts = _LOCALHOST if host == "localhost" else (host,)
    found = (_read(token_file(environ, one, port)) for one in hosts)
    return next((token for token, process in found if token and _runs(process)), None)


def _runs(process: str) -> bool:
    """Whether the server's process runs, among the processes that this one can see."""
    from tenure import process_table

    pid, _, rest = process.partition(" ")
    start, _, boot = rest.partition(" ")
    if not (pid.isdecimal() and start.isdecimal()) or boot != process_table.boot_id():
        return False
    found = process_table.look_up(int(pid))
    return found is not None and found.start == int(start)


def _read(path: str) -> tuple[str | None, str]:
    """The token, and the process whose token it is."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii", errors="replace") as file:
            about = os.fstat(file.fileno())
            # A file that others wrote could make us trust their server.
            if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
                return None, ""
            text, _, process = file.read(400).strip().partition("\n")
    except OSError:
        return None, ""
    return (text, process) if is_local_token(text) else (None, "")
