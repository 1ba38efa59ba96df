"""The URL of a broker: hosts, login and options. Whatever names it to people shows no password.

Beyond this machine the connection is encrypted, and the broker's certificate verified, its name included: by the
system's authorities, or those in the file `ca`. `allow_insecure=1` does without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from tenure.core.errors import InvalidInput
from tenure.core.loopback import is_loopback
from tenure.core.urls import split_url

# Schemes without TLS → the same with it.
PLAIN = {"nats": "tls", "amqp": "amqps", "redis+stream": "rediss+stream"}
COMMON = ("prefix", "ca", "allow_insecure")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,40}")


class Address(NamedTuple):
    scheme: str
    hosts: tuple[str, ...]  # `host` or `host:port`
    user: str | None
    password: str | None
    path: str  # without its first slash
    options: Mapping[str, str]

    @property
    def shown(self) -> str:
        """For people and logs."""
        return f"{self.scheme}://{','.join(self.hosts)}"

    @property
    def places(self) -> list[tuple[str, int | None]]:
        """Hosts with their ports, if they are given; an IPv6 address without its brackets."""
        found = [urlsplit(f"//{host}") for host in self.hosts]
        return [(parts.hostname or "", parts.port) for parts in found]

    @property
    def is_encrypted(self) -> bool:
        """And the broker's certificate verified."""
        return self.scheme not in PLAIN

    @property
    def is_insecure(self) -> bool:
        """Not encrypted, beyond this machine."""
        return not (self.is_encrypted or all(is_loopback(host) for host, _ in self.places))

    @property
    def ca(self) -> str | None:
        return self.options.get("ca")

    @property
    def prefix(self) -> str:
        return self.options.get("prefix", "")

    def number(self, name: str, otherwise: int, least: int = 1) -> int:
        text = self.options.get(name)
        if text is None:
            return otherwise
        if not text.isascii() or not text.isdigit() or int(text) < least:
            wanted = f"it must be a number of at least {least}"
            raise InvalidInput(f"{self.shown}: the option {name} is {text[:40]!r}; {wanted}")
        return int(text)


def parse(url: str, known: tuple[str, ...]) -> Address:
    """`known`: the options of the scheme besides those of all. Raises InvalidInput, without the URL's password."""
    address = _read(url)
    for name in address.options:
        if name not in (*COMMON, *known):
            names = ", ".join((*COMMON, *known))
            raise InvalidInput(f"{address.shown}: there is no option {name[:40]!r}", f"There are: {names}.")
    if address.prefix and not _PREFIX.fullmatch(address.prefix):
        raise InvalidInput(
            f"{address.shown}: the prefix {address.prefix[:40]!r} is not valid",
            "A prefix has up to 40 letters, digits, `_` and `-`.",
        )
    _check_verified(address)
    return address


def is_insecure(url: str) -> bool:
    """Whether nobody verifies who the broker is, beyond this machine. Of another scheme that is not known: no."""
    return url.partition("://")[0] in PLAIN and _read(url).is_insecure


def _read(url: str) -> Address:
    scheme, _, _ = url.partition("://")
    try:
        parts = split_url(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidInput(f"a {scheme[:40]}:// URL is not valid", _example(scheme)) from None
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    if not hosts or not all(_is_host(host) for host in hosts.split(",")):
        raise InvalidInput(f"a {scheme[:40]}:// URL needs a host", _example(scheme))
    return Address(
        scheme, tuple(hosts.split(",")), unquote(user) or None, unquote(password) or None,
        unquote(parts.path.lstrip("/")), dict(pairs),
    )  # fmt: skip


def _check_verified(address: Address) -> None:
    allowed = address.options.get("allow_insecure", "0")
    if allowed not in ("0", "1"):
        raise InvalidInput(f"{address.shown}: allow_insecure must be 1 or 0 (got {allowed[:40]!r})")
    if address.is_encrypted:
        return
    secure = PLAIN[address.scheme]
    if address.ca is not None:
        raise InvalidInput(
            f"{address.shown}: {address.scheme}:// is not encrypted, so `ca` would verify nothing",
            f"Use {secure}://, or leave out `ca`.",
        )
    if address.is_insecure and allowed == "0":
        raise InvalidInput(
            f"{address.shown}: {address.scheme}:// beyond this machine is not encrypted, and nobody verifies who the "
            "broker is",
            f"Use {secure}://; ca= names your own authorities. allow_insecure=1 in the URL accepts any broker.",
        )


def _is_host(text: str) -> bool:
    found = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/@]+)(?::([0-9]{1,5}))?", text)
    return found is not None and (found[1] is None or 0 < int(found[1]) < 65536)


def _example(scheme: str) -> str:
    return f"As in {scheme[:40]}://user:password@host:port/?prefix=team."
