"""Where a store's server is: on this machine, or elsewhere, where it must prove who it is."""

from __future__ import annotations

import ipaddress


def is_here(host: str) -> bool:
    """Whether the host is this machine: a socket, or an address of loopback."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
