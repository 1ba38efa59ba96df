"""The URL of a store: the server's address and a few settings of ours.

    postgresql://user@host:5432/database?schema=tenure&pool=10&direct=host:5433

`schema` is the schema with the tables (`tenure` unless given), `pool` the most connections of a process, `direct` the
server's host and port where the URL leads to a pooler: the listener for notifications connects there. Everything else
is passed to libpq.

Beyond this machine the server's certificate is verified (`sslmode=verify-full`); `allow_insecure=1` leaves that to
libpq, whose own default verifies nothing.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlunsplit

import psycopg
from psycopg import conninfo, pq

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.loopback import is_loopback
from tenure.core.urls import split_url
from tenure.process_table import called

EXAMPLE = "A store's URL looks like postgresql://user@host/database?schema=tenure"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_POOL = 10
_FULL = ("too many clients", "remaining connection slots", "too many connections")
MOST = limits.POOL
# libpq's own defaults wait for minutes on a network that swallows packets.
_VERIFY = ("verify-full", "verify-ca")
_SYSTEM_ROOT = 160000  # the first libpq that knows `sslrootcert=system`
_UNANSWERED = int(limits.UNANSWERED)
_USUAL = {
    "connect_timeout": "10", "keepalives_idle": str(_UNANSWERED), "keepalives_interval": str(_UNANSWERED // 2),
    "keepalives_count": "2", "tcp_user_timeout": str(_UNANSWERED * 1000),
}  # fmt: skip


class Address(NamedTuple):
    shown: str  # the URL without its password
    conninfo: str
    direct: str | None  # as `conninfo`, without the pooler
    schema: str
    pool: int
    is_insecure: bool = False  # the server is elsewhere, and may be another than it claims to be


def parse(url: str) -> Address:
    """Raises InvalidInput where the URL is not valid."""
    try:
        parts = split_url(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema = given.pop("schema", "tenure")
        pool = given.pop("pool", str(_POOL))
        direct = given.pop("direct", None)
        insecure = given.pop("allow_insecure", "0")
        theirs = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(given, quote_via=quote)))
        settings: dict[str, Any] = {**_USUAL, **conninfo.conninfo_to_dict(theirs)}
    except (ValueError, psycopg.ProgrammingError) as error:
        raise InvalidInput(f"this is not a valid URL of a PostgreSQL store: {str(error).strip()}", EXAMPLE) from None
    if not _NAME.fullmatch(schema):
        raise InvalidInput(f"schema must be at most 63 small letters, digits and _ (got {schema!r})", EXAMPLE)
    if not (pool.isdecimal() and 1 <= int(pool) <= MOST):
        raise InvalidInput(f"pool must be a number of connections from 1 to {MOST} (got {pool!r})", EXAMPLE)
    if insecure not in ("0", "1"):
        raise InvalidInput(f"allow_insecure must be 1 or 0 (got {insecure!r})", EXAMPLE)
    # A transaction must read its own writes: a standby lags behind, and refuses to write.
    settings.setdefault("target_session_attrs", "read-write")
    settings.setdefault("application_name", called())
    settings["client_encoding"] = "UTF8"
    past = None
    if direct is not None:
        host, _, port = direct.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidInput(f"direct must be the server's host:port (got {direct!r})", EXAMPLE)
        past = conninfo.make_conninfo(
            **_verifying({**settings, "host": host, "port": port, "hostaddr": None}, insecure == "1")
        )
    verifying = _verifying(settings, insecure == "1")
    is_insecure = verifying.get("sslmode") not in _VERIFY and not _is_here(settings)
    shown = _without_password(parts.geturl())
    return Address(shown, conninfo.make_conninfo(**verifying), past, schema, int(pool), is_insecure)


def in_schema(url: str, schema: str) -> str:
    """The same URL, with another schema."""
    parts = split_url(url)
    given = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "schema"]
    return urlunsplit(parts._replace(query=urlencode([*given, ("schema", schema)], quote_via=quote)))


def _verifying(settings: dict[str, Any], allow_insecure: bool) -> dict[str, Any]:
    """With a mode that verifies who the server is, unless that is allowed not to be, or it is on this machine."""
    if allow_insecure or _is_here(settings):
        return settings
    mode = settings.get("sslmode", _VERIFY[0])
    if mode not in _VERIFY:
        raise InvalidInput(
            f"sslmode={mode} does not verify who the server is",
            "Leave it out: verify-full is the default, and sslrootcert names your own authority. "
            "allow_insecure=1 in the URL accepts any server.",
        )
    known: dict[str, Any] = {"sslmode": mode}
    if "sslrootcert" not in settings and not _has_own_root():
        known |= {"sslrootcert": "system", "sslmode": _VERIFY[0]}  # which libpq allows with no other mode
    return {**settings, **known}


def _has_own_root() -> bool:
    """Whether libpq finds a root certificate by itself; one before 16 does not know the system's."""
    own = Path("~/.postgresql/root.crt").expanduser()
    return pq.version() < _SYSTEM_ROOT or "PGSSLROOTCERT" in os.environ or own.exists()


def _is_here(settings: dict[str, Any]) -> bool:
    """Whether every host is this machine: a socket, or an address of loopback."""
    given = settings.get("hostaddr") or settings.get("host") or os.environ.get("PGHOST") or ""
    return "service" not in settings and all(map(is_loopback, str(given).split(",")))


def _without_password(url: str) -> str:
    parts = split_url(url)
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
