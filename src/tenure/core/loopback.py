"""Which hosts are this machine: a server anywhere else must prove who it is."""

from __future__ import annotations


def is_loopback(host: str) -> bool:
    """Of a name, an address or the path of a socket; none is this machine too.

    Only what no name server can redirect: `127.example.com` is a name like any other.
    """
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    import ipaddress  # costs 5 ms, and few hosts get here

    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
