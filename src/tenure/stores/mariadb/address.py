"""The URL of a store: the server's address and a few settings of ours.

    mariadb://user:password@host:3306,other:3306/database?pool=10&ssl_ca=/etc/ssl/ca.pem

Several hosts are the nodes of one Galera cluster: the first that answers is used, by all processes in the same order.
`pool` is the most connections of a process, `socket` the path of the server's socket instead of a host. Beyond this
machine the connection is encrypted, and the server's certificate verified, its name included: by the system's
authorities, or those in the file `ssl_ca`. `allow_insecure=1` does without. A password may be in `MYSQL_PWD`.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.loopback import is_loopback
from tenure.core.urls import split_url

EXAMPLE = "A store's URL looks like mariadb://user@host/database"
PORT = 3306
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_POOL = 10
_KNOWN = frozenset({"pool", "socket", "ssl_ca", "allow_insecure"})


class Address(NamedTuple):
    shown: str  # the URL without its password
    hosts: tuple[tuple[str, int], ...]
    socket: str | None
    user: str
    password: str
    database: str
    pool: int
    ssl_ca: str | None
    is_encrypted: bool  # and the server's certificate verified
    is_insecure: bool  # neither, beyond this machine

    @property
    def is_cluster(self) -> bool:
        return len(self.hosts) > 1


_PASSING = ("Can't connect", "Lost connection", "Too many connections", "is shutting down")


def may_come_back(url: str, why: str) -> bool:
    """Whether it is worth trying again after opening the store failed with `why`.

    Not where a server answers and refuses, nor where the host is unknown.
    """
    return any(text in why for text in _PASSING) and "Name or service not known" not in why


def parse(url: str) -> Address:
    """Raises InvalidInput where the URL is not valid."""
    try:
        parts = split_url(url)
        login, at, named = parts.netloc.rpartition("@")
        hosts = tuple(_host(text) for text in named.split(","))
        given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise InvalidInput(f"this is not a valid URL of a MariaDB store: {error}", EXAMPLE) from None
    database = unquote(parts.path.removeprefix("/"))
    if not _NAME.fullmatch(database):
        raise InvalidInput(f"the database must be at most 64 letters, digits and _ (got {database!r})", EXAMPLE)
    pool = given.get("pool", str(_POOL))
    if not (pool.isdecimal() and 1 <= int(pool) <= limits.POOL):
        raise InvalidInput(f"pool must be a number of connections from 1 to {limits.POOL} (got {pool!r})", EXAMPLE)
    insecure = given.get("allow_insecure", "0")
    if insecure not in ("0", "1"):
        raise InvalidInput(f"allow_insecure must be 1 or 0 (got {insecure!r})", EXAMPLE)
    if unknown := sorted(given.keys() - _KNOWN):
        raise InvalidInput(f"a MariaDB store has no setting {unknown[0]!r}", f"There are: {', '.join(sorted(_KNOWN))}.")
    name, _, secret = login.partition(":")
    user, password = unquote(name), unquote(secret) or os.environ.get("MYSQL_PWD", "")
    shown = parts._replace(netloc=f"{name}{at}{named}", query=urlencode(given, safe="/:"))
    ca, socket = given.get("ssl_ca"), given.get("socket")
    is_here = socket is not None or all(is_loopback(host) for host, _ in hosts)
    is_encrypted = ca is not None or not (is_here or insecure == "1")
    return Address(
        shown.geturl(), hosts, socket, user or "tenure", password, database, int(pool), ca, is_encrypted,
        is_insecure=not (is_here or is_encrypted),
    )  # fmt: skip


def _host(text: str) -> tuple[str, int]:
    """Raises ValueError."""
    parts = urlsplit(f"//{text}")
    return parts.hostname or "127.0.0.1", parts.port or PORT
