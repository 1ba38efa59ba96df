"""How many connections a server process keeps open, of the file descriptors that it may have."""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import limits


class Shares(NamedTuple):
    strangers: int  # before a sign-in: the reserve for everybody who comes next
    signed_in: int


def shares(descriptors: int, processes: int = 1) -> Shares:
    """A part is the process's own: for stores, logs and artifacts.

    `processes`: those that share the limit of strangers.
    """
    own = min(max(descriptors // 4, 16), limits.OWN_DESCRIPTORS)
    there = max(8, descriptors - own)
    strangers = max(2, min(limits.CONNECTIONS // processes, there // 4))
    return Shares(strangers, there - strangers)
