"""What the server promises: the settings on which durability depends, its version, and its place in replication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.core.errors import StoreUnavailable
from tenure.stores.sql.server_errors import Lost, lost
from tenure.stores.valkey.connection import ConnectionPool

OLDEST = (7, 0)
NOWHERE = "0" * 40
# Setting → its only safe value, and what happens otherwise.
DURABLE_SETTINGS = {
    "appendonly": ("yes", "acknowledged commits are lost when the server ends"),
    "appendfsync": ("always", "a power cut loses the commits of the last second or more"),
    "no-appendfsync-on-rewrite": ("no", "a power cut while the file is rewritten loses commits"),
}
EVICTION = "maxmemory-policy"


class Server(NamedTuple):
    """A server as it describes itself."""

    version: str
    place: str  # `master_replid`: changes with every start and every promotion
    former: str  # `master_replid2`: of the primary that it was a replica of
    replicas: int
    settings: dict[str, str]  # where it allows CONFIG GET

    @property
    def weaknesses(self) -> list[str]:
        """Why an acknowledged commit may be lost; empty where none is."""
        found = []
        for name, (wanted, why) in DURABLE_SETTINGS.items():
            value = self.settings.get(name)
            if value is None:
                found.append(f"{name} is not known, as the server refuses CONFIG GET")
            elif value != wanted:
                found.append(f"{name} is {value}, not {wanted}: {why}")
        return found


def described(connections: ConnectionPool, url: str) -> Server:
    """Raises StoreUnavailable for a server that cannot keep a store."""
    names = (*DURABLE_SETTINGS, EVICTION)
    with connections.taken() as connection:
        try:
            info, *answers = connection.ask([("INFO",), *(("CONFIG", "GET", name) for name in names)])
        except Lost as error:
            raise lost(error, url) from error
    if isinstance(info, Exception):
        raise StoreUnavailable(f"{url}: the server does not describe itself (INFO): {info}")
    facts = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    settings = {name: value for name, answer in zip(names, answers, strict=True) if (value := _value(answer))}
    settings.setdefault(EVICTION, facts.get("maxmemory_policy", ""))
    version = facts.get("redis_version", "0")
    shown = facts.get("valkey_version") or version
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreUnavailable(f"{url}: the server has version {shown}; a store needs Valkey, or Redis 7 or newer")
    if facts.get("role") != "master":
        raise StoreUnavailable(f"{url}: the server only reads: it is a replica", "Name its primary.")
    if facts.get("cluster_enabled") == "1":
        raise StoreUnavailable(f"{url}: the server belongs to a cluster; a store needs a single server")
    if settings[EVICTION] != "noeviction":
        raise StoreUnavailable(
            f"{url}: {EVICTION} is {settings[EVICTION] or 'unknown'}: rows could be thrown away",
            f"Set {EVICTION} to noeviction.",
        )
    return Server(
        shown, facts["master_replid"], facts.get("master_replid2", NOWHERE), int(facts["connected_slaves"]), settings
    )


def _value(answer: object) -> str | None:
    """Of one setting; None where the server refuses to answer."""
    if isinstance(answer, Sequence) and len(answer) == 2 and isinstance(answer[1], bytes):
        return answer[1].decode()
    return None
