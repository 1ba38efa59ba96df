"""The user's state folder: what a user keeps on this machine outside every repository.

Receipts, the outbox and trust decisions lie here and not in `.tenure`, because `git clean -xdf` and a replaced store
must not take them away. Some agents run commands in a sandbox that cannot write to the home folder; their files go to
a private folder below the temporary one, and readers look in both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


def user_state(environ: Mapping[str, str]) -> str:
    """`TENURE_STATE`, or `tenure` in `XDG_STATE_HOME` or `~/.local/state`. The folder may not exist yet."""
    if environ.get("TENURE_STATE"):
        return os.path.abspath(environ["TENURE_STATE"])
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state"), "tenure")


def user_states(environ: Mapping[str, str]) -> tuple[str, str]:
    """Where a user's state may lie, the preferred folder first. Readers look in both."""
    return user_state(environ), _sandbox_state(environ)


def store_states(environ: Mapping[str, str], url: str) -> tuple[str, ...]:
    """Where the state that belongs to one store may lie, the preferred folder first. Readers look in all of them."""
    import hashlib  # a fifth of what a bare start costs: only commands that look up a receipt pay for it

    name = os.path.join("stores", hashlib.sha256(url.encode()).hexdigest()[:16])
    return tuple(os.path.join(base, name) for base in user_states(environ))


def writable_store_state(environ: Mapping[str, str], url: str) -> str:
    """The first of `store_states` that can be written, created with mode 0700. Raises OSError where none can."""
    first, second = store_states(environ, url)
    try:
        make_private_folder(first)
        if os.access(first, os.W_OK):
            return first
    except OSError:
        pass
    make_private_folder(second)
    return second


def make_private_folder(path: str) -> None:
    """Create the folder and its missing parents with mode 0700, to outlast a power cut.

    Raises OSError where another user owns it.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            continue
        _sync(os.path.dirname(folder))
    owner = missing[0] if missing else path
    if os.stat(owner).st_uid != os.getuid():
        raise PermissionError(f"{owner} belongs to another user")


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sandbox_state(environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("TMPDIR") or "/tmp", f"tenure-{os.getuid()}")  # noqa: S108 - private, owner checked
