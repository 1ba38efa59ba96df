"""The gate before costly reads: few are answered at once, so that the threads and the processor are there for others.

Which reads are costly their declaration says (`Query.is_costly`, `Endpoint.is_costly`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.core import limits
from tenure.core.errors import Overloaded

_AT_ONCE = threading.BoundedSemaphore(limits.COSTLY)  # of this process: each may hold a project in memory
_mine = threading.local()


@contextmanager
def gate() -> Iterator[None]:
    """Raises Overloaded where as many are being answered already; nobody waits here, since that would hold a thread.

    Who is inside may ask again as a part of it.
    """
    if getattr(_mine, "is_inside", False):
        yield
        return
    if not _AT_ONCE.acquire(blocking=False):
        raise Overloaded(
            f"{limits.COSTLY} costly questions are being answered", "nothing was done; send it again in a moment"
        )
    _mine.is_inside = True
    try:
        yield
    finally:
        _mine.is_inside = False
        _AT_ONCE.release()
