"""The first process of a machine of `tests/servers/machine.py`: makes the interpreter readable, and becomes a user.

Runs as root in new namespaces: `boot.py UID PATHS WORD…`. A folder that only root may enter hides the interpreter or
the sources from other users. Here an empty folder lies over it, with nothing in it but the paths that are needed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

MS_BIND, MS_REC = 4096, 16384
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    given = (source.encode(), bytes(target), kind.encode() if kind else None, flags, options.encode() or None)
    if _libc.mount(*given):
        raise OSError(ctypes.get_errno(), f"mount {source} at {target}")


def hidden_above(path: Path) -> Path | None:
    """The first folder above the path that others may not enter."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)


def show(paths: list[Path]) -> None:
    """Let every user read these paths, under their own names."""
    below: dict[Path, list[tuple[int, Path]]] = {}
    for path in sorted(set(paths)):
        folder = hidden_above(path)
        if folder is not None:
            below.setdefault(folder, []).append((os.open(path, os.O_PATH), path))
    for folder, wanted in below.items():
        mount("tmpfs", folder, "tmpfs", 0, "mode=755")
        for handle, path in wanted:
            if not path.exists():
                path.mkdir(parents=True)
                mount(f"/proc/self/fd/{handle}", path, None, MS_BIND | MS_REC)
            os.close(handle)


def boot(uid: int, paths: list[Path], words: list[str]) -> None:
    show(paths)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os.execv(words[0], words)
    try:
        while True:
            os.wait()  # whatever lost its parent belongs to the first process
    except ChildProcessError:
        return


if __name__ == "__main__":
    boot(int(sys.argv[1]), [Path(path) for path in sys.argv[2].split(os.pathsep)], sys.argv[3:])
