"""A process that holds secrets of ours is closed to other processes of its user.

An agent runs as the user who started it, and the kernel lets a process read the environment and the memory of another
one of its user. On Linux a process may refuse that (`PR_SET_DUMPABLE`): then only root reads `/proc/PID/environ`, `mem`
and `fd` or attaches a debugger, and a crash leaves no core file. A child that starts a program is readable again. Its
pid, its start and its command line stay visible, so the process table goes on to know it. Elsewhere nothing happens.
"""

from __future__ import annotations

import sys

PR_SET_DUMPABLE = 4


def keep_private() -> None:
    if sys.platform == "linux":
        import ctypes  # few commands need it

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
