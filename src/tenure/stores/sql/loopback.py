"""Which hosts are this machine: a server anywhere else must prove who it is."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Of a name, an address or the path of a socket; none is this machine too."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
