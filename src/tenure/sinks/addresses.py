"""Which network addresses a message may be sent to. Pure.

A user chooses the URL of a webhook, and the server sends to it: without a check, the user could reach what only the
server can, such as a cloud's metadata service. So only addresses of the public internet are allowed, and networks that
the owner of the deployment names. The check is on the address of the connection, never on the name.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import inet_aton

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")
_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a carrier's NAT; one cloud's metadata
            "127.0.0.0/8",
            "168.63.129.16/32",  # one cloud's metadata, on a public address
            "169.254.0.0/16",  # link-local; most clouds' metadata
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments; one cloud's metadata
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",  # measurements
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, among them Teredo
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_V6_PUBLIC = IPv6Network("2000::/3")  # everything assigned; the rest is loopback, link-local, private or reserved


def judged(address: Address) -> Address:
    """The address that is meant: IPv4 inside IPv6 is the IPv4 address, and a zone does not count."""
    if isinstance(address, IPv4Address):
        return address
    bare = IPv6Address(int(address))
    if bare.ipv4_mapped is not None:
        return bare.ipv4_mapped
    if bare in _NAT64:
        return IPv4Address(int(bare) & 0xFFFF_FFFF)
    if bare in _6TO4:
        return IPv4Address(int(bare) >> 80 & 0xFFFF_FFFF)
    return bare


def is_public(address: Address) -> bool:
    meant = judged(address)
    if isinstance(meant, IPv4Address):
        return not any(meant in network for network in _V4)
    return meant in _V6_PUBLIC and not any(meant in network for network in _V6)


def is_allowed(address: Address, networks: Iterable[Network] = ()) -> bool:
    """Public, or in a network that the deployment's owner has allowed."""
    return is_public(address) or any(_is_in(judged(address), network) for network in networks)


def _is_in(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def literal(host: str) -> Address | None:
    """The address that the text of a host is, in any form that a resolver reads without asking a name server."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return IPv4Address("127.0.0.1")
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(inet_aton(host))  # also 127.1, 0x7f000001 and 2130706433
    except (OSError, ValueError):
        return None


def parsed(text: str) -> Address:
    """ValueError where it is not an address."""
    return ip_address(text)


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """ValueError where one is not a network."""
    return tuple(ip_network(text) for text in texts)
