"""A visit: the headers of a request and where it comes from, with what a trusted proxy says in their place.

Works on the raw ASGI scope. Headers that decide something must stand there once: of two, a proxy may have looked at
one and we at the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tenure.core.errors import InvalidInput

Network = IPv4Network | IPv6Network

_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]*")
_ONCE = frozenset(
    {
        b"authorization", b"host", b"origin", b"tenure-agent", b"tenure-session", b"tenure-user", b"tenure-role",
        b"sec-fetch-site", b"sec-fetch-mode",
    }
)  # fmt: skip
_FORWARDING = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip")


class Visit(NamedTuple):
    """`address`, `scheme` and `host` are the visitor's own; `is_here` if it came from this host, through no proxy."""

    method: str
    headers: Mapping[bytes, bytes]
    address: str | None
    scheme: str
    host: str
    is_here: bool

    def header(self, name: bytes) -> str | None:
        """A header's text; InvalidInput where it is not UTF-8."""
        value = self.headers.get(name)
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"the header {name.decode()} is not UTF-8") from None

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way can read along."""
        return self.scheme == "https" or self.is_here

    @property
    def is_reading(self) -> bool:
        return self.method in ("GET", "HEAD", "OPTIONS")


def visit_of(scope: Mapping[str, Any], proxies: Iterable[Network] = ()) -> Visit:
    """The visit that an ASGI scope is about."""
    peer = scope.get("client")
    return visit(scope["headers"], peer[0] if peer else None, scope["scheme"], scope["method"], proxies)


def visit(
    headers: Iterable[tuple[bytes, bytes]],
    peer: str | None,
    scheme: str,
    method: str = "GET",
    proxies: Iterable[Network] = (),
) -> Visit:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in found:
            if name in _ONCE:
                raise InvalidInput(f"the header {name.decode('latin-1')} is given twice")
            between = b"; " if name == b"cookie" else b", "
            found[name] += between + value
        else:
            found[name] = value
    peer = plain_address(peer)
    host = found.get(b"host", b"").decode("latin-1")
    is_passed_on = any(name in found for name in _FORWARDING)
    proxies = tuple(proxies)
    if not is_passed_on or not is_in(peer, proxies):
        return Visit(method, found, peer, scheme, host, is_loopback(peer) and not is_passed_on)
    address = _last_stranger(_listed(found.get(b"x-forwarded-for")), proxies) or peer
    protocols = _listed(found.get(b"x-forwarded-proto"))
    hosts = _listed(found.get(b"x-forwarded-host"))
    return Visit(
        method, found, address, protocols[-1].lower() if protocols else scheme, hosts[-1] if hosts else host, False
    )


def _listed(value: bytes | None) -> list[str]:
    return [part.strip() for part in (value or b"").decode("latin-1").split(",") if part.strip()]


def _last_stranger(addresses: list[str], proxies: tuple[Network, ...]) -> str | None:
    """Each proxy adds whom it saw at the end: the last that is no proxy of ours is as far as we can believe."""
    for text in reversed(addresses):
        address = plain_address(text)
        if address is None or not is_in(address, proxies):
            return address
    return None


def is_in(address: str | None, networks: tuple[Network, ...]) -> bool:
    """Whether a plain address lies in one of these."""
    return address is not None and any(ip_address(address) in network for network in networks)


@lru_cache(1024)
def plain_address(text: str | None) -> str | None:
    """The address as one spelling, an IPv4 address in IPv6's clothes as IPv4; None for what is none."""
    try:
        address = ip_address((text or "").partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)


@lru_cache(1024)
def is_loopback(address: str | None) -> bool:
    address = plain_address(address)
    return address is not None and ip_address(address).is_loopback


@lru_cache(1024)
def name_in(host: str) -> str:
    """The name or address in a Host header, without its port; "" where it cannot be read."""
    if not _HOST.fullmatch(host):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


@lru_cache(1024)
def is_loopback_name(name: str) -> bool:
    """Names that no name server can send elsewhere, or loopback's addresses."""
    name = name.lower().rstrip(".")
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)
