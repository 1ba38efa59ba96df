"""Installs in the background what a run of all tests needs on a bare Debian, while its first tests run.

Ten single runs of apt take minutes, and each would block a test. The test that needs a program reports its failure.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from tests.agents.install import EVERY_RUN, NotInstalled, installed
from tests.servers.processes import PACKAGES, found, install, installing, is_root

# In the order in which tests ask for them; each group is one run of apt.
_GROUPS = (
    ("git", "bwrap", "curl", "faketime", "ps", "ssh-keygen", "strace"),
    ("postgres", "pgbouncer"),
    ("mariadbd",),
    ("chromium-headless-shell",),
    ("promtool", "systemd-analyze"),
)
_ROOT = Path(__file__).resolve().parents[2]
_started: list[subprocess.Popen[bytes]] = []  # kept: Python warns of one that is forgotten while it runs


def install_ahead() -> None:
    """In a process of its own, because a process with threads must not be forked."""
    command = [sys.executable, "-m", "tests.servers.ahead"]
    _started.append(subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def _packages() -> None:
    for group in _GROUPS if is_root() else ():
        with installing():
            missing = [PACKAGES[program] for program in group if not found(program)]
            if missing:
                install(*missing)


def _agent() -> None:
    with suppress(NotInstalled):
        installed(EVERY_RUN)


if __name__ == "__main__":
    agent = threading.Thread(target=_agent)
    agent.start()
    _packages()
    agent.join()
