"""The tenants of a store beside the home tenant, as its leader serves them: which have something to do, and when.

A tenant is looked at when it has an event, when something in it falls due, and else ever more rarely, up to once an
hour: archives and retention have no event to begin with. A leader that begins asks the store once which tenants have
something for it, and once for the ends of all logs. So tenants without work cost a look an hour, and no thread, lease,
election or query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping

from tenure.core import limits
from tenure.core.outcomes import Outcome
from tenure.core.records import Leader
from tenure.engine.duties import election
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.tenancy import TenantEngines, is_far
from tenure.engine.runtime.unit_of_work import Refused
from tenure.stores.port import ForLeader

LEASE = limits.TENANT_LEASE
RENEWED = 0.4  # of the lease
LISTED = 60.0  # seconds after which the tenants are listed again, though no event reported others
FIRST = 10.0  # seconds from a tenant's last event to the look for what only time brings about
RARELY = 3600.0  # the longest from one such look to the next; a new leader spreads its first ones over it
SPREAD = 0.3  # seconds for each tenant that changed since the leader before may have looked at it
BEFORE = 120_000_000  # microseconds: a leader may not have looked at what came so shortly before its end
AHEAD = 3_600_000_000  # microseconds: how far due times are read


class Watched:
    """One tenant. `look_at` and `slow_at` are monotonic times."""

    def __init__(self, engine: Engine, mark: int, look_at: float, slow_at: float) -> None:
        self.engine, self.mark = engine, mark
        self.look_at, self.slow_at = look_at, slow_at
        self.is_new = True  # it was not looked at yet
        self.pause = RARELY
        self.has_news = False
        self.term = 0  # that this process leads the tenant with, under the store's term
        self.store_term: int | None = None
        self.renew_at = 0.0
        self.lock = threading.Lock()

    def heard(self, now: float) -> None:
        """It has an event."""
        self.has_news, self.look_at, self.pause = True, now, FIRST
        self.slow_at = min(self.slow_at, now + FIRST)

    def looked(self, now: float, *, is_slow: bool, due_in: float | None) -> None:
        """It was served; its next item falls due after so many seconds."""
        self.has_news = self.is_new = False
        if is_slow:
            self.slow_at, self.pause = now + self.pause, min(RARELY, 2 * self.pause)
        self.look_at = self.slow_at if due_in is None else min(self.slow_at, now + due_in)


class TenantRounds:
    """For the coordinator's thread, but for `led`."""

    def __init__(
        self,
        engines: TenantEngines,
        holder: str,
        monotonic: Callable[[], float],
        store_term: Callable[[], int | None],
        news: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        """`store_term`: the term that this process leads the store with. `news` gets a tenant with new events, and the
        mark before them.
        """
        self._engines, self._holder, self._monotonic = engines, holder, monotonic
        self._store_term, self._news = store_term, news
        self.listeners: list[Callable[[str], None]] = []  # get each tenant that has events, or was just found
        self._watched: dict[str, Watched] = {}
        self._list_at = 0.0
        self._since = 0

    def begin(self, before: Leader | None) -> None:
        """This process leads now, after that leader."""
        self.forget()
        last_at = None if before is None else before.cycles.last_at
        self._since = 0 if last_at is None else max(0, last_at - BEFORE)

    def relist(self) -> None:
        """Tenants were added or closed. Safe in any thread."""
        self._list_at = 0.0

    def forget(self) -> None:
        """This process no longer leads."""
        self._watched = {}
        self._list_at = 0.0

    def led(self) -> list[str]:
        """The tenants that this process has taken in its current term, by name. Safe in any thread."""
        term = self._store_term()
        return sorted(name for name, one in list(self._watched.items()) if term is not None and one.store_term == term)

    def list_again(self, now: int, fraction: Callable[[], float]) -> None:
        """Read which tenants there are, where that may have changed. `now` is the store's."""
        here = self._monotonic()
        if here < self._list_at:
            return
        self._list_at = here + LISTED
        listed = self._engines.rows()
        rows = {row.id: row for row in listed if not is_far(row) and not row.moving}
        for row in listed:
            if is_far(row):  # its store has its own leader, in the processes that have it open: this one has
                self._news(row.id, 0)
        kept = {name: one for name, one in self._watched.items() if name in rows}
        new = [name for name in rows if name not in kept]
        if new:
            store, is_first = self._engines.home.store, not self._watched
            marks = store.marks(new)  # before the query: any later write is news
            found = store.tenants_due(new, now + AHEAD, self._since)
            changed = min(RARELY, SPREAD * sum(one.is_changed for one in found.values()))
            for name in new:
                one = found.get(name, ForLeader(None, False))
                slow_at = here + ((changed if one.is_changed else RARELY) * fraction() if is_first else 0.0)
                look_at = slow_at if one.at is None else min(slow_at, here + max(0, one.at - now) / 1e6)
                kept[name] = Watched(self._engines.of(rows[name]), marks[name], look_at, slow_at)
        self._watched = kept

    def __len__(self) -> int:
        return len(self._watched)

    def marks(self) -> Mapping[str, int]:
        return {name: one.mark for name, one in self._watched.items()}

    def heard(self, tenants: Collection[str]) -> None:
        for name in tenants:
            one = self._watched.get(name)
            if one is not None:
                self._news(name, one.mark)
                one.heard(self._monotonic())
                self.tell(name)

    def tell(self, tenant: str) -> None:
        for listener in self.listeners:
            listener(tenant)

    def due(self) -> list[Watched]:
        """Those to be looked at now, those that wait longest first."""
        now = self._monotonic()
        return sorted((one for one in self._watched.values() if one.look_at <= now), key=lambda one: one.look_at)

    def next_in(self) -> float | None:
        """Seconds until the next look."""
        first = min((one.look_at for one in self._watched.values()), default=None)
        return None if first is None else max(0.0, first - self._monotonic())

    # --- leading a tenant ---

    def leader(self, one: Watched) -> LeaderEngine:
        """The engine that writes in the tenant under this process's term; it takes the tenant with its first write."""
        led = LeaderEngine(one.engine, self._holder, one.term, lambda: None)
        led.keep_up_with(lambda: self._held(one, led))
        return led

    def leader_of(self, tenant: str) -> LeaderEngine | None:
        """As `leader`, for other threads; None where the process does not lead, or does not know the tenant yet."""
        one = self._watched.get(tenant)
        return None if one is None or self._store_term() is None else self.leader(one)

    def _held(self, one: Watched, led: LeaderEngine) -> None:
        """Take the tenant, or renew in time. Raises Refused where another leads it."""
        store_term = self._store_term()
        if store_term is None:
            raise Refused(Outcome(outcome="STALE_TERM", message="this process no longer leads the store, or may not"))
        with one.lock:
            is_same = one.store_term == store_term
            if not is_same or self._monotonic() >= one.renew_at:
                began = self._monotonic()
                term = one.term if is_same else None
                outcome = election.take(one.engine, self._holder, LEASE, term, store_term)
                if not outcome.ok or outcome.term is None:
                    one.store_term = None
                    raise Refused(outcome)
                one.term, one.store_term, one.renew_at = outcome.term, store_term, began + LEASE * RENEWED
            led.term = one.term
