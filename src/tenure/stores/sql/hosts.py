"""The addresses of a store's hosts, in the order in which they are tried.

Each address has its own deadline, then the next is tried. One that answered nothing within its deadline is tried last
for a minute by all stores of this process: it costs one deadline once, not one for each call.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence
from typing import NamedTuple

from tenure.core import limits

SILENT = limits.SILENT_HOST
# A refusal comes at once. An attempt that took longer counts as silence, whatever its error: a router reports after
# seconds that a machine is gone.
SLOW = 1.0


class Place(NamedTuple):
    """`address`: one of the host's; None where the host is one itself, or has no address that is known."""

    host: str
    port: int
    address: str | None = None


class SilentHosts:
    """Places that answered nothing, and when. Safe to use from several threads; time is passed in."""

    def __init__(self) -> None:
        self._at: dict[Place, float] = {}
        self._lock = threading.Lock()

    def note(self, place: Place, now: float) -> None:
        with self._lock:
            self._at[place] = now

    def forget(self, place: Place) -> None:
        """It has answered."""
        if place in self._at:
            with self._lock:
                self._at.pop(place, None)

    def last(self, places: Sequence[Place], now: float) -> list[Place]:
        """The places in their order; those that were silent within the last minute behind all others."""
        if not self._at:
            return list(places)
        with self._lock:
            return sorted(places, key=lambda place: now - self._at.get(place, -SILENT - now) < SILENT)


OF_THIS_PROCESS = SilentHosts()


def places_of(host: str, port: int) -> list[Place]:
    """One for each address of the host; one without, where it has none to resolve, or cannot be resolved now."""
    if not host or host.startswith(("/", "@")) or _is_address(host):
        return [Place(host, port)]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return [Place(host, port)]
    return list(dict.fromkeys(Place(host, port, str(where[0])) for *_, where in found)) or [Place(host, port)]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def options() -> dict[int, int]:
    """Of a TCP socket: a server that vanishes is noticed after `limits.UNANSWERED` seconds, or twice that while we
    only wait. Those that this platform has.
    """
    seconds = int(limits.UNANSWERED)
    named = {
        "TCP_USER_TIMEOUT": seconds * 1000, "TCP_KEEPIDLE": seconds, "TCP_KEEPINTVL": seconds // 2, "TCP_KEEPCNT": 2,
    }  # fmt: skip
    return {getattr(socket, name): value for name, value in named.items() if hasattr(socket, name)}


def opened(place: Place, timeout: float) -> socket.socket:
    """A TCP connection. Raises OSError."""
    made = socket.create_connection((place.address or place.host, place.port), timeout)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in options().items():
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
