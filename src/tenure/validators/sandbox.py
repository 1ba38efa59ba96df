"""bwrap around a command: a read-only system, private `/tmp` and `/run`, no network unless allowed, keys hidden.

Only the folder of the work is writable, except for the settings of other tools in it. All processes are in a pid
namespace that ends with its first process.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# Files of a home that no test needs; hidden where they exist.
SECRETS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".claude", ".codex", ".gemini", ".config/gh", ".config/gcloud", ".config/github-copilot", ".local/state/tenure",
)  # fmt: skip
PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 hides sockets and files of others
SYSTEM = ("--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
READ_ONLY = (".git", ".tenure")  # in the folder itself: hooks, config and the store


@cache
def trouble() -> str | None:
    """Why bwrap cannot be used here; None where it can. Tried once."""
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    probe = [program, *SYSTEM, "--", "/bin/sh", "-c", ":"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=10, check=False, env={})
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run: {error}"
    return None if done.returncode == 0 else f"bwrap does not run: {done.stderr.strip()[:200]}"


def wrapped(argv: Sequence[str], folder: Path, at: Path, *, network: bool) -> list[str]:
    """The command in its sandbox; `folder` is writable, and the command starts in the folder `at`."""
    bwrap = ["bwrap", "--die-with-parent", *SYSTEM]
    for private in PRIVATE:
        if Path(private).is_dir():
            bwrap += ["--tmpfs", private]
    if network:
        bwrap += ["--share-net"]
        resolver = Path("/etc/resolv.conf").resolve()
        if resolver.is_relative_to("/run") and resolver.is_file():  # needed to resolve names
            bwrap += ["--ro-bind", str(resolver), str(resolver)]
    bwrap += _hidden(Path.home())
    bwrap += ["--bind", str(folder), str(folder)]
    for name in READ_ONLY:
        if (folder / name).exists():
            bwrap += ["--ro-bind", str(folder / name), str(folder / name)]
    return [*bwrap, "--chdir", str(at), "--", *argv]


def _hidden(home: Path) -> list[str]:
    options = []
    for name in SECRETS:
        path = home / name
        if path.is_symlink():
            path = path.resolve()
        if path.is_dir():
            options += ["--tmpfs", str(path)]
        elif path.is_file():
            options += ["--ro-bind", "/dev/null", str(path)]
    return options
