"""Which hosts are this machine: a store's server on any other one must prove who it is."""

from __future__ import annotations

import ipaddress


def is_here(host: str) -> bool:
    """Whether it is a socket, or an address of loopback."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
