"""bwrap around a command: the system read-only, `/tmp` and `/run` its own, no network unless allowed, keys not seen.

Only the folder of the work can be written to, and in it not what steers other tools. All processes are in a namespace
that ends with its first, so that even a keeper that is killed leaves nothing.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# What a home holds that no test needs; hidden where it is there.
SECRETS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
    ".claude", ".codex", ".gemini", ".config/gh", ".config/gcloud", ".config/github-copilot", ".local/state/tenure",
)  # fmt: skip
ITS_OWN = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 sockets and files of others are not seen
STEERING = (".git", ".tenure")  # in the folder itself: hooks, config and the store


@cache
def trouble() -> str | None:
    """Why bwrap cannot be used here; None where it can. Found out once."""
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    probe = [
        program,
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
        "--",
        "/bin/sh",
        "-c",
        ":",
    ]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run: {error}"
    return None if done.returncode == 0 else f"bwrap does not run: {done.stderr.strip()[:200]}"


def wrapped(argv: Sequence[str], folder: Path, at: Path, *, network: bool) -> list[str]:
    """The command in its sandbox; `folder` can be written to, and it is started `at` that place in it."""
    bwrap = [
        "bwrap", "--die-with-parent", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
    ]  # fmt: skip
    for its_own in ITS_OWN:
        if Path(its_own).is_dir():
            bwrap += ["--tmpfs", its_own]
    if network:
        bwrap += ["--share-net"]
        resolver = Path("/etc/resolv.conf").resolve()
        if resolver.is_relative_to("/run") and resolver.is_file():  # names are found through it
            bwrap += ["--ro-bind", str(resolver), str(resolver)]
    bwrap += _hidden(Path.home())
    bwrap += ["--bind", str(folder), str(folder)]
    for name in STEERING:
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
