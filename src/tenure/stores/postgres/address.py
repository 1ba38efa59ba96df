"""The URL of a store: the server's address and a few settings of ours.

    postgresql://user@host:5432/database?schema=tenure&pool=10&direct=host:5433

`schema` is the schema with the tables (`tenure` unless given), `pool` the most connections of a process, `direct` the
server's host and port where the URL leads to a pooler: the listener for notifications connects there. Everything else
is passed to libpq.
"""

from __future__ import annotations

import re
import socket
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import conninfo, pq

from tenure.core import limits
from tenure.core.errors import InvalidInput

EXAMPLE = "A store's URL looks like postgresql://user@host/database?schema=tenure"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_POOL = 10
_FULL = ("too many clients", "remaining connection slots", "too many connections")
MOST = limits.POOL
# libpq's own defaults wait for minutes on a network that swallows packets.
_USUAL = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}


class Address(NamedTuple):
    shown: str  # the URL without its password
    conninfo: str
    direct: str | None  # as `conninfo`, without the pooler
    schema: str
    pool: int


def parse(url: str) -> Address:
    """Raises InvalidInput where the URL is not valid."""
    try:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema = given.pop("schema", "tenure")
        pool = given.pop("pool", str(_POOL))
        direct = given.pop("direct", None)
        theirs = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(given, quote_via=quote)))
        settings: dict[str, Any] = {**_USUAL, **conninfo.conninfo_to_dict(theirs)}
    except (ValueError, psycopg.ProgrammingError) as error:
        raise InvalidInput(f"this is not a valid URL of a PostgreSQL store: {str(error).strip()}", EXAMPLE) from None
    if not _NAME.fullmatch(schema):
        raise InvalidInput(f"schema must be at most 63 small letters, digits and _ (got {schema!r})", EXAMPLE)
    if not (pool.isdecimal() and 1 <= int(pool) <= MOST):
        raise InvalidInput(f"pool must be a number of connections from 1 to {MOST} (got {pool!r})", EXAMPLE)
    # A transaction must read its own writes: a standby lags behind, and refuses to write.
    settings.setdefault("target_session_attrs", "read-write")
    settings.setdefault("application_name", "tenure")
    settings["client_encoding"] = "UTF8"
    past = None
    if direct is not None:
        host, _, port = direct.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidInput(f"direct must be the server's host:port (got {direct!r})", EXAMPLE)
        past = conninfo.make_conninfo(**{**settings, "host": host, "port": port, "hostaddr": None})
    return Address(_without_password(parts.geturl()), conninfo.make_conninfo(**settings), past, schema, int(pool))


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}")
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("password", "sslpassword")]
    return urlunsplit(shown._replace(query=urlencode(kept, safe="/:")))


def may_come_back(url: str, why: str) -> bool:
    """Whether it is worth trying again after opening the store failed with `why`.

    Not where a server answers and refuses: a wrong password, role or database stays wrong. Not where the host is
    unknown.
    """
    server = parse(url).conninfo
    if any(text in why for text in _FULL):
        return True
    return _is_known(server) and pq.PGconn.ping(server.encode()) in (pq.Ping.REJECT, pq.Ping.NO_RESPONSE)


def _is_known(server: str) -> bool:
    for host in str(conninfo.conninfo_to_dict(server).get("host") or "").split(","):
        if not host or host.startswith(("/", "@")):
            return True
        try:
            socket.getaddrinfo(host, None)
        except socket.gaierror as error:
            if error.errno == socket.EAI_NONAME:
                continue
        return True
    return False
