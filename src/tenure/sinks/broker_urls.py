"""The URL of a broker: hosts, login and options. Whatever names it to people shows no password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from tenure.core.errors import InvalidInput

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

    def flag(self, name: str) -> bool:
        text = self.options.get(name, "false")
        if text not in ("true", "false"):
            raise InvalidInput(f"{self.shown}: the option {name} is {text[:40]!r}; it must be true or false")
        return text == "true"


def parse(url: str, known: tuple[str, ...]) -> Address:
    """`known`: the options of the scheme besides `prefix`. Raises InvalidInput, which never has the URL's password."""
    scheme, _, _ = url.partition("://")
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidInput(f"a {scheme[:40]}:// URL is not valid", _example(scheme)) from None
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    if not hosts or not all(_is_host(host) for host in hosts.split(",")):
        raise InvalidInput(f"a {scheme[:40]}:// URL needs a host", _example(scheme))
    address = Address(
        scheme, tuple(hosts.split(",")), unquote(user) or None, unquote(password) or None,
        unquote(parts.path.lstrip("/")), dict(pairs),
    )  # fmt: skip
    for name in address.options:
        if name not in ("prefix", *known):
            names = ", ".join(("prefix", *known))
            raise InvalidInput(f"{address.shown}: there is no option {name[:40]!r}", f"There are: {names}.")
    if address.prefix and not _PREFIX.fullmatch(address.prefix):
        raise InvalidInput(
            f"{address.shown}: the prefix {address.prefix[:40]!r} is not valid",
            "A prefix has up to 40 letters, digits, `_` and `-`.",
        )
    return address


def _is_host(text: str) -> bool:
    found = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/@]+)(?::([0-9]{1,5}))?", text)
    return found is not None and (found[1] is None or 0 < int(found[1]) < 65536)


def _example(scheme: str) -> str:
    return f"As in {scheme[:40]}://user:password@host:port/?prefix=team."
