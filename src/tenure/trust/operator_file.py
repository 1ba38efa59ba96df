"""Whether the file that TENURE_CONFIG names is an operator's: it counts without trust, and nothing else does.

Every file of a cloned repository is the user's, and a committed `.envrc` could name one. So a git work tree is out of
the question, also where it is root's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from tenure.trust.grants import Untrusted

ROOT = 0


def own_folder(environ: Mapping[str, str]) -> str:
    """The folder of this user's configuration: `XDG_CONFIG_HOME`, or `~/.config`."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.abspath(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"))


def check_operators(path: str, found: os.stat_result, environ: Mapping[str, str]) -> None:
    """Raise Untrusted unless the file at `path`, whose status as it was read is `found`, is an operator's."""
    why = _why_not(path, found, own_folder(environ))
    if why is not None:
        raise Untrusted(
            f"TENURE_CONFIG names {path}, which does not count: {why}",
            hint="It must be root's and writable by root alone, or lie below "
            f"{own_folder(environ)} with mode 0600, and never in a git work tree.",
        )


def _why_not(path: str, found: os.stat_result, folder: str) -> str | None:
    real = os.path.realpath(path)
    tree = _work_tree(path) or _work_tree(real)
    if tree is not None:
        return f"it lies in the git work tree {tree}"
    mode = stat.S_IMODE(found.st_mode)
    is_open = f"it has mode {mode:04o}, and only 0600 is closed to others"
    if found.st_uid == os.geteuid() and real.startswith(os.path.join(os.path.realpath(folder), "")):
        return is_open if mode & 0o077 else None
    if found.st_uid != ROOT:
        return f"it is not root's and does not lie below {folder}"
    return f"it is root's, but others may write it (mode {mode:04o})" if mode & 0o022 else None


def _work_tree(path: str) -> str | None:
    folder = os.path.dirname(path)
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)
    return folder
