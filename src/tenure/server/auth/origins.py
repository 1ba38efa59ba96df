"""Checks against web pages of other sites: the names of this server, and the site that sent a request.

A browser sends requests of any page to any host, including loopback, with our cookie if it has one. It always sends the
name by which it reached us (Host), and for writes the site of the page (Origin, Sec-Fetch-Site).
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from tenure.core.errors import InvalidInput, NotAllowed
from tenure.server.auth.policy import Policy
from tenure.server.auth.request_source import RequestSource, is_loopback_name, name_in

_PORTS = {"http": 80, "https": 443}


def check_host(source: RequestSource, policy: Policy) -> None:
    """Refuse a Host that is not a name of this server: it may be DNS rebinding."""
    if not source.host:
        raise InvalidInput("the header Host is missing", "send the name of this server in Host")
    name = name_in(source.host)
    if is_loopback_name(name) or name in policy.hosts:
        return
    # If everybody must sign in, pages of other names have no cookie; and nobody else can own a name without a dot.
    if not policy.is_open and (not policy.hosts or "." not in name or _is_address(name)):
        return
    raise NotAllowed(f"Host {source.host[:80]!r} is not a name of this server", "add it to serve.hosts if it is one")


def check_origin(source: RequestSource, *, is_by_cookie: bool = False) -> None:
    """Refuse requests of pages of other sites. A write with a cookie must have an Origin."""
    site = source.headers.get(b"sec-fetch-site", b"")
    is_followed_link = source.is_reading and source.headers.get(b"sec-fetch-mode") == b"navigate"
    if site in (b"cross-site", b"same-site") and not is_followed_link:
        raise NotAllowed(f"a page of another site sent this request ({site.decode()})")
    origin = source.header(b"origin")
    if origin is not None and not _is_ours(origin, source):
        raise NotAllowed(f"Origin {origin[:80]!r} is not this server", "pages of other sites may not send requests")
    if is_by_cookie and not source.is_reading and origin is None and site != b"same-origin":
        raise NotAllowed("a write with a cookie needs the header Origin", "send Origin, or use a key")


def _is_ours(origin: str, source: RequestSource) -> bool:
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"{source.scheme}://{source.host}")
        return bool(ours.hostname) and (theirs.scheme, theirs.hostname, _port(theirs.port, theirs.scheme)) == (
            ours.scheme,
            ours.hostname,
            _port(ours.port, ours.scheme),
        )
    except ValueError:  # the port is not a number
        return False


def _port(port: int | None, scheme: str) -> int | None:
    return port if port is not None else _PORTS.get(scheme)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
