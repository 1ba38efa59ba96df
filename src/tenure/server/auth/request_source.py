"""Where a request comes from: its address, as reported by a trusted proxy if there is one, its site, its cookie.

Works on the ASGI scope. Headers that decide something may occur only once: of two, a proxy may have checked one and
this server the other.

The checks against web pages of other sites: a browser sends requests of any page to any host, including loopback, with
our cookie if it has one. It always sends the name by which it reached us (Host), and for writes the site of the page
(Origin, Sec-Fetch-Site).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tenure.core import limits
from tenure.core.errors import InvalidInput, NotAllowed, TenureError
from tenure.core.keys import LIFETIME
from tenure.core.tenant_records import HOME

if TYPE_CHECKING:
    from tenure.core.commands import Principal
    from tenure.server.auth.policy import Policy

Network = IPv4Network | IPv6Network

_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]*")
_ONCE = frozenset(
    {
        b"authorization", b"host", b"origin", b"tenure-agent", b"tenure-session", b"tenure-user", b"tenure-role",
        b"tenure-tenant", b"sec-fetch-site", b"sec-fetch-mode",
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


# --- the tenant that a request names: in its path, below /t/NAME, or in the header Tenure-Tenant ---

NAMED_TENANT = "tenure.tenant"  # in an ASGI scope: the tenant of its path
CALLER = "tenure.caller"  # and who showed a good credential, where the request is refused all the same
TENANT_PATH = "tenure.tenant_path"  # and the beginning of the path as it was sent


def without_tenant(scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The scope of a request below `/t/NAME`, as it would be without that; every other scope as it is."""
    path: str = scope["path"]
    if not path.startswith("/t/"):
        return scope
    name, slash, rest = path.removeprefix("/t/").partition("/")
    start = f"/t/{name}"
    raw: bytes = scope.get("raw_path") or path.encode()
    # A name has no character that needs to be escaped: one that is escaped names no tenant.
    is_plain = raw.startswith(start.encode()) and bool(slash)
    inner = {"path": f"/{rest}", "raw_path": raw[len(start) :]} if is_plain else {}
    return {**scope, **inner, NAMED_TENANT: name, TENANT_PATH: start}


def tenant_named(source: RequestSource, by_path: str | None) -> str | None:
    """The tenant that the request names; None: the credential decides alone."""
    by_header = source.header(b"tenure-tenant")
    if by_path is not None and by_header not in (None, by_path):
        raise InvalidInput("the path and the header Tenure-Tenant name different tenants", "name one of them")
    return by_header if by_path is None else by_path


def check_private(source: RequestSource) -> None:
    if not source.is_private:
        raise NotAllowed(
            "keys and tokens are not accepted over plain HTTP: others may have read this one",
            "use https and rotate the key; set serve.trusted_proxy to a proxy that terminates TLS",
        )


# --- checks of Host and Origin ---


def check_one_host(headers: Iterable[tuple[bytes, bytes]], version: str | None) -> None:
    """Refuse a request with two Host headers, and one without, but for HTTP/1.0: RFC 9112, section 3.2."""
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1:
        raise InvalidInput("the header Host is given twice", "send it once")
    if version != "1.0" and not (hosts and hosts[0]):
        raise _no_host()


def _no_host() -> InvalidInput:
    return InvalidInput("the header Host is missing", "send the name of this server in Host")


_PORTS = {"http": 80, "https": 443}


def check_host(source: RequestSource, policy: Policy) -> None:
    """Refuse a Host that is not a name of this server: it may be DNS rebinding."""
    if not source.host:
        raise _no_host()
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


# --- the dashboard's cookie: random tokens that name sessions in the store, of one tenant each ---

COOKIE_SECONDS = LIFETIME // 1_000_000
MOST_SESSIONS = limits.COOKIE_SESSIONS


class Session(NamedTuple):
    """A session of the cookie, and the tenant whose row it is."""

    tenant: str
    token: str


def name_for(scheme: str) -> str:
    """With TLS the prefix `__Host-` binds the cookie to the host that set it."""
    return "__Host-tenure" if scheme == "https" else "tenure"


def cookie_of(sessions: Iterable[Session], scheme: str) -> str:
    """The value of Set-Cookie after a sign-in, the newest session first. One of the home tenant is its token alone."""
    values = (one.token if one.tenant == HOME else f"{one.tenant}:{one.token}" for one in sessions)
    return _set(".".join(values), COOKIE_SECONDS, scheme)


def cleared(scheme: str) -> str:
    """The value of Set-Cookie that signs out."""
    return _set("", 0, scheme)


def _set(value: str, seconds: int, scheme: str) -> str:
    secure = "; Secure" if scheme == "https" else ""
    return f"{name_for(scheme)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def sessions_in(header: str | None, scheme: str) -> list[Session]:
    """The sessions of our cookie in a Cookie header."""
    # http.cookies stops at the first invalid cookie, and on loopback all ports share cookies.
    for part in (header or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == name_for(scheme) and value:
            return [_session(one) for one in value.split(".")[:MOST_SESSIONS]]
    return []


def _session(text: str) -> Session:
    tenant, _, token = text.rpartition(":")
    return Session(tenant or HOME, token)


@contextmanager
def caller_in(scope: MutableMapping[str, Any]) -> Iterator[Callable[[Principal], None]]:
    """Where a caller is refused, whose credential it is stands in the scope."""
    callers: list[Principal] = []
    try:
        yield callers.append
    except TenureError:
        if callers:
            scope[CALLER] = callers[-1]
        raise
