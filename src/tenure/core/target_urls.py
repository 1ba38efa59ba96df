"""URLs that messages are sent to, as far as their text shows; addresses are judged when one is used."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from tenure.core import limits
from tenure.core.errors import InvalidInput

LONGEST_URL = limits.SEND_URL
_PORTS = {"https": 443, "http": 80}
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")


class Target(NamedTuple):
    """A checked URL."""

    scheme: str
    host: str
    port: int
    path: str  # with the query

    @property
    def shown(self) -> str:
        """What may be printed of it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def authority(self) -> str:
        return self.shown.partition("://")[2]


def checked_url(url: str, *, allow_http: bool = False, what: str = "url") -> Target:
    """The parts of a URL that may be sent to, as far as the text shows; its addresses are judged when it is used."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if len(url) > LONGEST_URL or not _PRINTABLE.fullmatch(url) or parts.scheme not in _PORTS or not host or port == 0:
        raise InvalidInput(
            f"{what} is not a valid URL", f"as in https://host/path, of at most {LONGEST_URL} characters"
        )
    if parts.scheme == "http" and not allow_http:
        raise InvalidInput(f"{what} must begin with https://", "the setting webhooks.allow_http allows http")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"{what} may not have a user name or a password", "deliveries are signed with the secret")
    if parts.fragment:
        raise InvalidInput(f"{what} may not have a fragment", "leave out what follows #")
    if ":" in host:
        host = host.partition("%")[0]  # a zone names an interface of this machine
        from ipaddress import ip_address  # costs 5 ms, and few URLs have an address

        try:
            ip_address(host)
        except ValueError:
            raise InvalidInput(f"{what} has an invalid address", "as in https://[2001:db8::1]/path") from None
    elif not _HOST.fullmatch(host):
        raise InvalidInput(f"{what} has an invalid name", "write an international name in its xn-- form")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], path)
