"""The store: opening, waiting, its place and its epoch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping

from tenure.core import limits
from tenure.core.errors import InvalidInput, NoStore, StoreUnavailable, close_all
from tenure.core.tenant_moves import renewed
from tenure.stores.port import DURABLE, PROCESSES, TENANTS, WAKE_UPS, WRITERS, Clock, ForLeader
from tenure.stores.sql.server_errors import Lost, forked, lost, unknown
from tenure.stores.tenants_due import tenants_due
from tenure.stores.valkey import address
from tenure.stores.valkey.check import faults
from tenure.stores.valkey.commit import BEGIN_EPOCHS
from tenure.stores.valkey.connection import ConnectionPool
from tenure.stores.valkey.errors import translated
from tenure.stores.valkey.keys import Keys
from tenure.stores.valkey.rows import FORM
from tenure.stores.valkey.server_settings import NOWHERE, Server, described
from tenure.stores.valkey.session import newer
from tenure.stores.valkey.transaction import WAIT, ValkeyTransaction
from tenure.stores.valkey.turns import Tears, Turns

_BLOCK = 5.0  # seconds that one command waits for news
_FEATURES = frozenset({PROCESSES, WAKE_UPS, TENANTS, WRITERS})


class Valkey:
    """Implements the port with keys of a Valkey or Redis server. Opening creates the store unless `create` is False."""

    features: frozenset[str] = _FEATURES | {DURABLE}  # of a server that syncs every commit

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        create: bool = True,
        patience: float = limits.WRITE_WAIT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock`: the server's unless given. `patience`: seconds to wait for a connection, and for the turn."""
        where = address.parse(url)
        self.url, self.replicas = where.shown, where.replicas
        self.clock, self.monotonic = clock, monotonic
        self.tears = Tears()
        self.turns = Turns(random, patience, monotonic)
        self.connections = ConnectionPool(where, where.pool, patience)
        self._waiting = ConnectionPool(where, None, patience)
        self._random = random
        self._space = where.space
        self._home = b"{%s}:store" % where.space.encode()
        self._tenants = b"{%s}:tenants" % where.space.encode()
        self._registered: set[str] = set()
        self._process = os.getpid()
        self.is_copy = False
        self.schema = FORM
        self.epoch = ""
        try:
            self._open(create)
        except BaseException:
            self.close()
            raise

    def _open(self, create: bool) -> None:
        self.server = described(self.connections, self.url)
        if self.replicas > self.server.replicas:
            raise StoreUnavailable(
                f"{self.url}: the URL asks for replicas={self.replicas}, and the server has {self.server.replicas}",
                "Start its replicas, or ask for fewer.",
            )
        (form,) = self.connections.ask(("HGET", self._home, "form"))
        if form is None:
            if not create:
                raise NoStore.at(f"in the space {self._space} of {self.url}")
            made = {"form": FORM, "epoch": self._random(4).hex(), "place": self.server.place}
            steps = [("HSETNX", self._home, name, value) for name, value in made.items()]
            self.connections.ask(("MULTI",), *steps, ("EXEC",))
        elif int(form) > FORM:
            raise newer(self.url, int(form))
        self.look_where_it_is(self.server)

    # --- its place ---

    def look_where_it_is(self, server: Server | None = None) -> None:
        """Whether the server still has every commit that was acknowledged; otherwise the store is a copy.

        A primary that was promoted may have lost some, and so may a server that started again without syncing each
        commit. A durable server that never had a replica, and was started again, has lost nothing.
        """
        self.server = server or described(self.connections, self.url)
        self.features = _FEATURES if self.server.weaknesses else type(self).features
        epoch, place = self.connections.ask(("HMGET", self._home, "epoch", "place"))[0]
        self.epoch = epoch.decode()
        if place.decode() == self.server.place:
            self.is_copy = False
        elif self.server.former == NOWHERE and not self.server.weaknesses and not self._had_replicas():
            self.connections.ask(("HSET", self._home, "place", self.server.place))
            self.is_copy = False
        else:
            self.is_copy = True

    def _had_replicas(self) -> bool:
        metas = [self.keys_of(name).meta for name in self._tenant_names()]
        return bool(metas) and any(self.connections.ask(*(("HGET", meta, "replicated") for meta in metas)))

    def _tenant_names(self) -> list[str]:
        (names,) = self.connections.ask(("SMEMBERS", self._tenants))
        return sorted(name.decode() for name in names)

    def register(self, tenant: str) -> None:
        """Note a tenant before its first commit."""
        if tenant not in self._registered:
            self.connections.ask(("SADD", self._tenants, tenant))
            self._registered.add(tenant)

    def begin_epochs(self, besides: str) -> list[str]:
        names = [name for name in self._tenant_names() if name != besides]
        metas = [self.keys_of(name).meta for name in names]
        epochs = [self._random(4).hex() for _ in names]
        begin = ("EVAL", BEGIN_EPOCHS, len(metas), *metas, self.server.place, *epochs)
        wait = [("WAIT", self.replicas, WAIT)] if self.replicas else []
        with self.connections.taken() as connection:
            try:
                done, *copies = connection.ask([begin, *wait])
            except Lost as error:
                raise unknown(f"the connection was lost at the commit ({error})", self.url) from error
        if isinstance(done, Exception):
            raise translated(done, self.url) from done
        if copies and (isinstance(copies[0], Exception) or copies[0] < self.replicas):
            raise unknown(f"{self.replicas} replicas must have the commit, and {copies[0]} have it", self.url)
        return names

    def settled_here(self) -> list[str]:
        """Every tenant gets a new epoch, not only the one that has just begun one: the copy has receipts of all.

        The place is noted last: where this is interrupted, the next opening does all of it again.
        """
        changed = []
        (noted,) = self.connections.ask(("HGET", self._home, "place"))
        if noted.decode() != self.server.place:
            for name in self._tenant_names():
                meta = self.keys_of(name).meta
                settled, before = self.connections.ask(("HGET", meta, "settled"), ("HGET", meta, "epoch"))
                if settled != self.server.place.encode():
                    epoch = renewed((before or b"").decode(), self._random(4).hex())
                    self.connections.ask(("HSET", meta, "epoch", epoch, "settled", self.server.place))
                    changed.append(name)
            self.epoch = self._random(4).hex()
            self.connections.ask(("HSET", self._home, "epoch", self.epoch, "place", self.server.place))
        self.is_copy = False
        return changed

    # --- transactions and waiting ---

    def keys_of(self, tenant: str) -> Keys:
        return Keys(self._space, tenant)

    def begin(self, tenant: str, *, write: bool) -> ValkeyTransaction:
        self._check(tenant)
        return ValkeyTransaction(self, tenant, write)

    def mark(self, tenant: str) -> int:
        return self.marks([tenant])[tenant]

    def marks(self, tenants: Collection[str]) -> dict[str, int]:
        for tenant in tenants:
            self._check(tenant)
        asked = [("HGET", self.keys_of(tenant).meta, "sequence") for tenant in tenants]
        answers = self.connections.ask(*asked) if asked else []
        return {tenant: int(answer or 0) for tenant, answer in zip(tenants, answers, strict=True)}

    def tenants_due(self, tenants: Collection[str], until: int, since: int) -> dict[str, ForLeader]:
        return tenants_due(self, tenants, until, since)

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        """Blocks on the tenants' logs. A log that is shorter than its mark has changed too: commits were lost."""
        until = self.monotonic() + timeout
        tenants = list(marks)
        changed = frozenset(tenant for tenant, last in self.marks(tenants).items() if last != marks[tenant])
        if changed or timeout <= 0 or not marks:
            return changed
        logs = {self.keys_of(tenant).log: tenant for tenant in tenants}
        with self._waiting.taken() as connection:
            while (left := until - self.monotonic()) > 0:
                block = max(1, round(min(left, _BLOCK) * 1000))
                places = (f"0-{marks[tenant]}" for tenant in tenants)
                try:
                    (news,) = connection.ask([("XREAD", "COUNT", 1, "BLOCK", block, "STREAMS", *logs, *places)])
                except Lost as error:
                    raise lost(error, self.url) from error
                if isinstance(news, Exception):
                    raise translated(news, self.url) from news
                if news:
                    return frozenset(logs[log] for log, _ in news)
        return frozenset()

    def _check(self, tenant: str) -> None:
        if not tenant:
            raise InvalidInput("a transaction needs the name of a tenant")
        if self._process != os.getpid():
            raise forked(self.url)

    # --- care ---

    def backup(self, target: str) -> None:
        raise InvalidInput(
            "a Valkey store is backed up with the server's own tools",
            "BGSAVE writes one snapshot of it; see the how-to on Valkey.",
        )

    def check(self) -> list[str]:
        return [fault for tenant in self._tenant_names() for fault in faults(self, tenant)]

    def unsafe_settings(self) -> list[str]:
        """Settings of the server with which acknowledged commits can be lost."""
        return described(self.connections, self.url).weaknesses

    def close(self) -> None:
        if self._process == os.getpid():
            close_all(self.connections.close, self._waiting.close)
