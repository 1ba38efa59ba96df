"""What a URL says: where the server is, and the few things in it that are ours.

    postgresql://user@host:5432/database?schema=tenure&pool=10&direct=host:5433

`schema` is where the tables lie (`tenure` unless given), `pool` how many connections a process may have at most,
`direct` the server's own host and port where the URL leads to a pooler: waiting for news listens there. All else is
libpq's.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import conninfo

from tenure.core import limits
from tenure.core.errors import InvalidInput

EXAMPLE = "A store's URL looks like postgresql://user@host/database?schema=tenure"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_POOL = 10
MOST = limits.POOL
# libpq's own defaults wait for minutes on a network that swallows packets.
_USUAL = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}


class Address(NamedTuple):
    shown: str  # the URL without its password
    conninfo: str
    direct: str | None  # as `conninfo`, past the pooler
    schema: str
    pool: int


def parse(url: str) -> Address:
    """Raises InvalidInput for what is no URL of a store."""
    try:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema = given.pop("schema", "tenure")
        pool = given.pop("pool", str(_POOL))
        direct = given.pop("direct", None)
        theirs = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(given, quote_via=quote)))
        settings: dict[str, Any] = {**_USUAL, **conninfo.conninfo_to_dict(theirs)}
    except (ValueError, psycopg.ProgrammingError) as error:
        raise InvalidInput(f"this is no URL of a PostgreSQL store: {str(error).strip()}", EXAMPLE) from None
    if not _NAME.fullmatch(schema):
        raise InvalidInput(f"schema {schema!r}: small letters, digits and _ only, at most 63", EXAMPLE)
    if not (pool.isdecimal() and 1 <= int(pool) <= MOST):
        raise InvalidInput(f"pool={pool!r}: how many connections at most, from 1 to {MOST}", EXAMPLE)
    # Whoever decides must read what it has written: a standby is behind, and refuses to write.
    settings.setdefault("target_session_attrs", "read-write")
    settings.setdefault("application_name", "tenure")
    settings["client_encoding"] = "UTF8"
    past = None
    if direct is not None:
        host, _, port = direct.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidInput(f"direct={direct!r}: the server's own host:port", EXAMPLE)
        past = conninfo.make_conninfo(**{**settings, "host": host, "port": port, "hostaddr": None})
    return Address(_without_password(parts.geturl()), conninfo.make_conninfo(**settings), past, schema, int(pool))


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}")
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("password", "sslpassword")]
    return urlunsplit(shown._replace(query=urlencode(kept, safe="/:")))
