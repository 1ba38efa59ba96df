"""The URL of a store: the server's address and a few settings of ours.

    valkey://user:password@host:6379,other:6379/0?space=tenure&replicas=1&pool=20

Of several hosts the first that answers as a primary is used: after a failover that is the promoted replica.
`redis://` is the same, `rediss://` and `valkeys://` use TLS, by the certificates in the file `ca` where given. Beyond
this machine the others are refused without `allow_insecure=1`. `space` begins the names of all keys, so that a server
may have several stores; `replicas` is how many replicas must have a commit before it is acknowledged; `pool` is the
most connections of a process.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.loopback import is_loopback
from tenure.core.urls import split_url
from tenure.stores.valkey.errors import PASSING

SCHEMES = {"valkey": False, "redis": False, "valkeys": True, "rediss": True}  # → whether with TLS
EXAMPLE = "A store's URL looks like valkey://host:6379/0?space=tenure"
PORT = 6379
_SPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OPTIONS = {"space": "tenure", "replicas": "0", "pool": "20", "ca": "", "allow_insecure": "0"}


class Address(NamedTuple):
    shown: str  # the URL without its password
    hosts: tuple[tuple[str, int], ...]
    database: int
    user: str | None
    password: str | None
    is_encrypted: bool
    ca: str | None
    space: str
    replicas: int
    pool: int
    is_insecure: bool  # not encrypted, beyond this machine


def may_come_back(url: str, why: str) -> bool:
    """Whether it is worth trying again after opening the store failed with `why`: nobody answers, or not yet.

    Not where a server answers and refuses, nor where the host is unknown.
    """
    return any(text in why for text in PASSING)


def parse(url: str) -> Address:
    """Raises InvalidInput where the URL is not valid."""
    try:
        parts = split_url(url)
        login, at, named = parts.netloc.rpartition("@")
        hosts = tuple(_host(text) for text in named.split(","))
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise InvalidInput(f"this is not a valid URL of a Valkey store: {error}", EXAMPLE) from None
    unknown = sorted(given.keys() - _OPTIONS.keys())
    if unknown:
        raise InvalidInput(f"a Valkey store has no option {unknown[0]!r}", f"There are: {', '.join(_OPTIONS)}.")
    options = {**_OPTIONS, **given}
    if not _SPACE.fullmatch(options["space"]):
        raise InvalidInput(f"space must be 1 to 64 letters, digits, _, . and - (got {options['space']!r})", EXAMPLE)
    is_encrypted = SCHEMES[parts.scheme]
    is_insecure = not (is_encrypted or all(is_loopback(host) for host, _ in hosts))
    if not _number("allow_insecure", options["allow_insecure"], 0, 1) and is_insecure:
        raise InvalidInput(
            f"{parts.scheme}:// beyond this machine is not encrypted, and nobody verifies who the server is",
            "Use valkeys:// or rediss://; allow_insecure=1 in the URL accepts any server.",
        )
    user, _, password = login.partition(":")
    shown = parts._replace(netloc=f"{user}{at}{named}", query=urlencode(given, safe="/:"))
    return Address(
        shown=urlunsplit(shown),
        hosts=hosts,
        database=_number("the database", parts.path.strip("/") or "0", 0, 1_000_000),
        user=unquote(user) or None,
        password=unquote(password) or None,
        is_encrypted=is_encrypted,
        ca=options["ca"] or None,
        space=options["space"],
        replicas=_number("replicas", options["replicas"], 0, limits.VALKEY_REPLICAS),
        pool=_number("pool", options["pool"], 1, limits.POOL),
        is_insecure=is_insecure,
    )


def _host(text: str) -> tuple[str, int]:
    """Raises ValueError."""
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("it must name a host")
    return parts.hostname, parts.port or PORT


def _number(name: str, value: str, least: int, most: int) -> int:
    if not (value.isdecimal() and least <= int(value) <= most):
        raise InvalidInput(f"{name} must be a number from {least} to {most} (got {value!r})", EXAMPLE)
    return int(value)
