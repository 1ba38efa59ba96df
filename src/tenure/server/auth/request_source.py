"""The headers of a request and where it comes from, as reported by a trusted proxy if there is one.

Works on the ASGI scope. Headers that decide something may occur only once: of two, a proxy may have checked one and
this server the other.
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


class RequestSource(NamedTuple):
    """`address`, `scheme` and `host` as the client used them; `is_local`: from this host, without a proxy."""

    method: str
    headers: Mapping[bytes, bytes]
    address: str | None
    scheme: str
    host: str
    is_local: bool

    def header(self, name: bytes) -> str | None:
        """A header's text; InvalidInput if it is not UTF-8."""
        value = self.headers.get(name)
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"the header {name.decode()} is not UTF-8") from None

    @property
    def is_private(self) -> bool:
        """Whether nobody between can read the request."""
        return self.scheme == "https" or self.is_local

    @property
    def is_reading(self) -> bool:
        return self.method in ("GET", "HEAD", "OPTIONS")


def source_of(scope: Mapping[str, Any], proxies: Iterable[Network] = ()) -> RequestSource:
    """The source of an ASGI scope's request."""
    peer = scope.get("client")
    return request_source(scope["headers"], peer[0] if peer else None, scope["scheme"], scope["method"], proxies)


def request_source(
    headers: Iterable[tuple[bytes, bytes]],
    peer: str | None,
    scheme: str,
    method: str = "GET",
    proxies: Iterable[Network] = (),
) -> RequestSource:
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
    is_proxied = any(name in found for name in _FORWARDING)
    proxies = tuple(proxies)
    if not is_proxied or not is_in(peer, proxies):
        return RequestSource(method, found, peer, scheme, host, is_loopback(peer) and not is_proxied)
    address = _last_untrusted(_listed(found.get(b"x-forwarded-for")), proxies) or peer
    protocols = _listed(found.get(b"x-forwarded-proto"))
    hosts = _listed(found.get(b"x-forwarded-host"))
    return RequestSource(
        method, found, address, protocols[-1].lower() if protocols else scheme, hosts[-1] if hosts else host, False
    )


def _listed(value: bytes | None) -> list[str]:
    return [part.strip() for part in (value or b"").decode("latin-1").split(",") if part.strip()]


def _last_untrusted(addresses: list[str], proxies: tuple[Network, ...]) -> str | None:
    """Each proxy appends its peer's address: the last one that is not a trusted proxy is the client's."""
    for text in reversed(addresses):
        address = plain_address(text)
        if address is None or not is_in(address, proxies):
            return address
    return None


def is_in(address: str | None, networks: tuple[Network, ...]) -> bool:
    """Whether the address is in one of the networks."""
    return address is not None and any(ip_address(address) in network for network in networks)


@lru_cache(1024)
def plain_address(text: str | None) -> str | None:
    """The normalised address, an IPv4-mapped IPv6 address as IPv4; None if it is invalid."""
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
    """The name or address in a Host header, without its port; "" if it is malformed."""
    if not _HOST.fullmatch(host):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


@lru_cache(1024)
def is_loopback_name(name: str) -> bool:
    """Whether it is a loopback address, or a name that no DNS server can redirect."""
    name = name.lower().rstrip(".")
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)
