"""A server's URL, taken apart and judged: is it one that a key may be sent to?"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from tenure.core.errors import InvalidInput

LOOPBACK = frozenset({"localhost", "::1"})


class Address(NamedTuple):
    host: str
    port: int
    is_secure: bool
    path: str  # before the API's own, without a slash at its end
    url: str  # as it may be printed


def address_of(url: str, key: str | None) -> Address:
    """InvalidInput where it is none, or where the key would cross a network for everybody to read."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if not parts.hostname or port == -1 or parts.query or parts.fragment:
        raise InvalidInput(f"{url[:200]!r} is not a server's URL", "it looks like https://tenure.example.com")
    if parts.username is not None:
        raise InvalidInput("a server's URL has no user or password in it", "pass the key as `key`, or in TENURE_KEY")
    is_secure = parts.scheme == "https"
    if key is not None and not is_secure and not is_here(parts.hostname):
        raise InvalidInput(
            f"{url[:200]}: a key is not sent over plain HTTP to another host, where everybody on the way could read it",
            "use https://, or a tunnel to this host's loopback",
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InvalidInput("the key has characters that no key has", "take it over as it was shown")
    path = parts.path.rstrip("/")
    return Address(parts.hostname, port or (443 if is_secure else 80), is_secure, path, url.rstrip("/"))


def is_here(host: str) -> bool:
    """Whether the name is one of this machine's loopback."""
    return host in LOOPBACK or host.startswith("127.")
