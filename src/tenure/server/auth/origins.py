"""What keeps web pages of others out: the names we answer to, and whose page sent a request.

A browser sends what any page asks it to, to any host, loopback included, with our cookie if it has one. It always says
truly by which name it reached us (Host), and for writes whose page it was (Origin, Sec-Fetch-Site).
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from tenure.core.errors import InvalidInput, NotAllowed
from tenure.server.auth.policy import Policy
from tenure.server.auth.visits import Visit, is_loopback_name, name_in

_PORTS = {"http": 80, "https": 443}


def check_host(visit: Visit, policy: Policy) -> None:
    """A name that leads here but is not ours was made by somebody to get in (DNS rebinding)."""
    if not visit.host:
        raise InvalidInput("the header Host is missing", "every request names the server that it is for")
    name = name_in(visit.host)
    if is_loopback_name(name) or name in policy.hosts:
        return
    # Where everybody signs in, no page of another name has our cookie; and no stranger owns a name without a dot.
    if not policy.is_open and (not policy.hosts or "." not in name or _is_address(name)):
        return
    raise NotAllowed(f"Host {visit.host[:80]!r} is no name of this server", "serve.hosts lists its names")


def check_origin(visit: Visit, *, is_by_cookie: bool = False) -> None:
    """No page of another site may send requests; with a cookie a write must say whose page it is."""
    site = visit.headers.get(b"sec-fetch-site", b"")
    is_followed_link = visit.is_reading and visit.headers.get(b"sec-fetch-mode") == b"navigate"
    if site in (b"cross-site", b"same-site") and not is_followed_link:
        raise NotAllowed(f"a page of another site sent this request ({site.decode()})")
    origin = visit.header(b"origin")
    if origin is not None and not _is_ours(origin, visit):
        raise NotAllowed(f"Origin {origin[:80]!r} is not this server", "requests of other sites' pages are refused")
    if is_by_cookie and not visit.is_reading and origin is None and site != b"same-origin":
        raise NotAllowed("a write by cookie has to say whose page it comes from, with Origin", "or send a key")


def _is_ours(origin: str, visit: Visit) -> bool:
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"{visit.scheme}://{visit.host}")
        return bool(ours.hostname) and (theirs.scheme, theirs.hostname, _port(theirs.port, theirs.scheme)) == (
            ours.scheme,
            ours.hostname,
            _port(ours.port, ours.scheme),
        )
    except ValueError:  # a port that is no number
        return False


def _port(port: int | None, scheme: str) -> int | None:
    return port if port is not None else _PORTS.get(scheme)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
