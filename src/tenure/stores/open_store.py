"""Opens the store of a URL: `sqlite:///path/to/file`, a bare path, `postgresql://user@host/database`,
`valkey://host:6379/0`, `memory://`.

All openers of `memory://NAME` in a process share one store, which ends with the last of them.

Third parties add a scheme with an entry point in the group `tenure.stores`: a callable (url, clock) → Store. The
group is read only for a scheme that is not listed here, since that costs more than opening a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core.errors import InvalidInput

if TYPE_CHECKING:
    from tenure.core.errors import StoreUnavailable
    from tenure.stores.port import Clock, Store

GROUP = "tenure.stores"
VALKEY = ("valkey", "valkeys", "redis", "rediss")


def open_store(url: str, *, clock: Clock | None = None, create: bool = True) -> Store:
    """The store at `url`. A missing one is created, unless `create` is False: StoreUnavailable then."""
    path = path_of(url)
    if path is not None:
        from tenure.stores.sqlite import Sqlite

        return Sqlite(path, clock=clock, create=create)
    scheme = url.partition("://")[0]
    if scheme == "memory":
        from tenure.stores.memory import Memory, shared

        return shared(url, clock) if url != "memory://" else Memory(url, clock=clock)
    if scheme in ("postgres", "postgresql"):
        return _postgres(url, clock, create)
    if scheme in VALKEY:
        return _valkey(url, clock, create)
    return _of_third_party(scheme, url, clock)


def may_come_back(url: str, error: StoreUnavailable) -> bool:
    """Whether a store that could not be opened may be available later."""
    if url.partition("://")[0] in VALKEY:
        from tenure.stores.valkey.errors import may_pass

        return may_pass(error.message)
    if url.partition("://")[0] not in ("postgres", "postgresql"):
        return False
    from tenure.stores.postgres.address import may_come_back

    return may_come_back(url, error.message)


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


def _postgres(url: str, clock: Clock | None, create: bool) -> Store:
    try:
        from tenure.stores.postgres import Postgres
    except ImportError as error:
        raise InvalidInput(
            f"a store in PostgreSQL needs psycopg, which is not installed ({error})", "Install tenure[postgres]."
        ) from None
    return Postgres(url, clock=clock, create=create)


def _valkey(url: str, clock: Clock | None, create: bool) -> Store:
    try:
        from tenure.stores.valkey import Valkey
    except ImportError as error:
        raise InvalidInput(
            f"a store in Valkey or Redis needs redis-py, which is not installed ({error})", "Install tenure[redis]."
        ) from None
    return Valkey(url, clock=clock, create=create)


def _of_third_party(scheme: str, url: str, clock: Clock | None) -> Store:
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if scheme not in known:
        names = ", ".join(sorted({"sqlite", "postgresql", "valkey", "memory", *known}))
        raise InvalidInput(f"no store has the scheme {scheme!r}", f"There are: {names}.")
    store: Store = known[scheme].load()(url, clock=clock)
    return store
