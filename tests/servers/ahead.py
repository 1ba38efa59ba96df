"""Installs in the background what a run of all tests needs on a bare Debian, while its first tests run.

Ten single runs of apt take minutes, and each would block a test. The test that needs a program reports its failure.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from tests.agents.install import EVERY_RUN, NotInstalled, installed
from tests.servers.processes import PACKAGES, found, install, installing, is_root

# In the order in which tests ask for them; each group is one run of apt.
_GROUPS = (
    ("git", "bwrap", "curl", "faketime", "ps", "ssh-keygen", "strace"),
    ("postgres", "pgbouncer"),
    ("chromium-headless-shell",),
    ("promtool", "systemd-analyze"),
)


def install_ahead() -> None:
    for action in (_packages, _agent):
        threading.Thread(target=action, daemon=True).start()


def _packages() -> None:
    for group in _GROUPS if is_root() else ():
        with installing():
            missing = [PACKAGES[program] for program in group if not found(program)]
            if missing:
                install(*missing)


def _agent() -> None:
    with suppress(NotInstalled):
        installed(EVERY_RUN)
