"""Opens the store of a URL: `sqlite:///path/to/file`, a bare path, `postgresql://user@host/database`,
`mariadb://user@host/database`, `valkey://host:6379/0`, `memory://`.

All openers of `memory://NAME` in a process share one store, which ends with the last of them.

Third parties add a scheme with an entry point in the group `tenure.stores`: a callable (url, clock) → Store. The
group is read only for a scheme that is not listed here, since that costs more than opening a file.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from tenure.core.errors import InvalidInput
from tenure.core.safe_text import storable

if TYPE_CHECKING:
    from tenure.core.errors import StoreUnavailable
    from tenure.stores.port import Clock, Store

GROUP = "tenure.stores"


class _OnServer(msgspec.Struct, frozen=True):
    module: str  # of `tenure.stores`; its class has its name
    name: str
    driver: str
    extra: str


_POSTGRES = _OnServer("postgres", "PostgreSQL", "psycopg", "postgres")
_MARIADB = _OnServer("mariadb", "MariaDB", "PyMySQL", "mariadb")
_VALKEY = _OnServer("valkey", "Valkey or Redis", "redis-py", "redis")
_ON_SERVERS = {
    "postgresql": _POSTGRES, "postgres": _POSTGRES, "mariadb": _MARIADB, "mysql": _MARIADB,
    "valkey": _VALKEY, "valkeys": _VALKEY, "redis": _VALKEY, "rediss": _VALKEY,
}  # fmt: skip


def open_store(url: str, *, clock: Clock | None = None, create: bool = True) -> Store:
    """The store at `url`. A missing one is created, unless `create` is False: StoreUnavailable then."""
    path = path_of(url)
    if path is not None:
        from tenure.stores.sqlite import Sqlite

        if storable(path, len(path)) != path:
            raise InvalidInput(f"{path[:200]!r} cannot be the path of a store: it must be UTF-8 without NUL")
        return Sqlite(path, clock=clock, create=create)
    scheme = url.partition("://")[0]
    if scheme == "memory":
        from tenure.stores.memory import Memory, shared

        return shared(url, clock) if url != "memory://" else Memory(url, clock=clock)
    if scheme in _ON_SERVERS:
        return _on_server(_ON_SERVERS[scheme], url, clock, create)
    return _of_third_party(scheme, url, clock)


def may_come_back(url: str, error: StoreUnavailable) -> bool:
    """Whether a store that could not be opened may be available later."""
    where = _ON_SERVERS.get(url.partition("://")[0])
    if where is None:
        return False
    address = import_module(f"tenure.stores.{where.module}.address")
    answer: bool = address.may_come_back(url, error.message)
    return answer


def is_insecure(url: str) -> bool:
    """Whether nobody verifies which server the store is on, beyond this machine."""
    where = _ON_SERVERS.get(url.partition("://")[0])
    if where is None:
        return False
    answer: bool = import_module(f"tenure.stores.{where.module}.address").parse(url).is_insecure
    return answer


def path_of(url: str) -> str | None:
    """The file of an SQLite store; None for another store."""
    scheme, colon, rest = url.partition("://")
    if not colon:
        scheme, rest = "sqlite", url
    if scheme != "sqlite":
        return None
    if colon and "%" in rest:
        from urllib.parse import unquote

        rest = unquote(rest)
    if not rest:
        raise InvalidInput("a store's URL needs a path, as in sqlite:///srv/project/.tenure/tenure.db")
    return rest


def _on_server(where: _OnServer, url: str, clock: Clock | None, create: bool) -> Store:
    try:
        module = import_module(f"tenure.stores.{where.module}")
    except ImportError as error:
        raise InvalidInput(
            f"a store in {where.name} needs {where.driver}, which is not installed ({error})",
            f"Install tenure[{where.extra}].",
        ) from None
    # Migrations may need the owner of the tables: see `stores/postgres/row_security.py`.
    more = {"owner": os.environ.get("TENURE_OWNER_URL")} if where.module == "postgres" else {}
    store: Store = getattr(module, where.module.capitalize())(url, clock=clock, create=create, **more)
    return store


def _of_third_party(scheme: str, url: str, clock: Clock | None) -> Store:
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if scheme not in known:
        names = ", ".join(sorted({"sqlite", "postgresql", "mariadb", "valkey", "memory", *known}))
        raise InvalidInput(
            f"no store has the scheme {scheme[:40]!r}", f"Stores have {names}; a server has http or https."
        )
    store: Store = known[scheme].load()(url, clock=clock)
    return store
