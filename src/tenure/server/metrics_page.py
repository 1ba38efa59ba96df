"""`GET /metrics`: always responds, and never overloads the store.

Counts of tasks are read at most every few seconds, by one thread at a time, however many scrapes there are. The longer
a reading takes the less often it is repeated: it never takes more than a twentieth of the time. A store that is
unavailable or hangs delays a scrape by at most LIMIT seconds; the metrics of the process itself are still returned.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from tenure.core import lifecycle, limits
from tenure.core.errors import TenureError
from tenure.core.queries import Gauges, Query, Relays, Spending
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.reads.query_table import read_query
from tenure.server.metric_definitions import SINK_GAUGES, STORE_GAUGES
from tenure.server.metrics import MOST_PROJECTS, Metrics
from tenure.server.spending_metrics import SpendingReading

if TYPE_CHECKING:
    from tenure.core.views import GaugesView, RelayView, SpendingView

T = TypeVar("T")
LIMIT = 2.0  # seconds that a scrape waits for a reading
KEPT = limits.GAUGES_KEPT
APART = 1.0  # seconds that a reading waits for the stores of tenants that have their own
SHARE = 20  # a reading is reused for this many times as long as it took
HUNG = 10.0  # seconds without a response after which the store counts as unavailable
OLDEST = limits.GAUGES_OLDEST
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_LABELS = re.compile(rb'[a-z_]+="(?:[^"\\]|\\.)*"')  # of a series, whatever its values have
WAITING = (lifecycle.PENDING, lifecycle.READY, lifecycle.RETRYING)


class GaugeReading(NamedTuple):
    at: float
    seconds: float
    entries: list[tuple[str, GaugesView]]  # with their tenants
    relays: list[tuple[str, RelayView]]


class MetricsPage:
    """The metrics page of one server, in its event loop."""

    def __init__(
        self,
        metrics: Metrics,
        engine: Engine,
        *,
        limit: float = LIMIT,
        read: Callable[[], list[GaugesView]] | None = None,
        read_relays: Callable[[], list[RelayView]] | None = None,
        read_spending: Callable[[], list[SpendingView]] | None = None,
        engines: Callable[[], Iterable[Engine]] | None = None,
    ) -> None:
        """`engines`: those of all tenants that the page shows; by default `engine` alone."""
        self._metrics = metrics
        shown = engines or (lambda: [engine])
        self.shown: Callable[[], Awaitable[bytes]] = self._own  # the page, once the store was read
        self._monotonic = metrics.monotonic
        self._limit = limit
        self._read = partial(_of_each, shown, Gauges(most=MOST_PROJECTS)) if read is None else _of_home(read)
        self._read_relays = (
            partial(_of_each, shown, Relays())
            if read is None and read_relays is None
            else _of_home(read_relays or (list))
        )
        self._reading: GaugeReading | None = None
        self._running: Future[GaugeReading] | None = None
        self._began = 0.0
        metrics.store_read(is_up=True)  # it has just been opened
        metrics.registry.register(_GaugeCollector(self))
        self._spending = SpendingReading(
            metrics,
            partial(_of_each, shown, Spending(most=MOST_PROJECTS))
            if read is None and read_spending is None
            else _of_home(read_spending or (list)),
        )

    async def page(self, tenant: str | None = None) -> bytes:
        """The page for Prometheus; its type is CONTENT_TYPE. `tenant`: only the series of that one."""
        is_first = self._spending.is_new()
        reading = self._spending.refresh()
        await self._refresh()
        if reading is not None and is_first:
            await asyncio.wrap_future(_in_thread(lambda: reading.join(self._limit)))
        page = await self.shown()
        return page if tenant is None else of_tenant(page, tenant)

    async def _own(self) -> bytes:
        # In a new thread: the pool's threads may all be waiting for a store that hangs.
        return await asyncio.wrap_future(_in_thread(lambda: generate_latest(self._metrics.registry)))

    def reading(self) -> GaugeReading | None:
        """The last reading; None if the store failed or the reading is too old."""
        reading = self._reading
        return None if reading is None or self._monotonic() - reading.at > OLDEST else reading

    async def _refresh(self) -> None:
        reading = self._reading
        if reading is not None and self._monotonic() - reading.at < max(KEPT, SHARE * reading.seconds):
            return
        if self._running is None:
            self._began = self._monotonic()
            self._running = _in_thread(self._timed)
        running = self._running
        waited = asyncio.wrap_future(running)
        waited.add_done_callback(lambda done: done.cancelled() or done.exception())  # `_take` handles the error
        await asyncio.wait([waited], timeout=self._limit)
        if not running.done():
            if self._monotonic() - self._began >= HUNG:
                self._metrics.store_read(is_up=False)
            return
        if self._running is running:  # else another scrape has handled it
            self._running = None
            self._take(running)

    def _timed(self) -> GaugeReading:
        began = self._monotonic()
        entries, relays = self._read(), self._read_relays()
        ended = self._monotonic()
        return GaugeReading(ended, ended - began, entries, relays)

    def _take(self, done: Future[GaugeReading]) -> None:
        error = done.exception()
        if error is None:
            self._reading = done.result()
            self._metrics.store_read(is_up=True, seconds=self._reading.seconds)
            return
        self._reading = None
        self._metrics.store_read(is_up=False)
        if isinstance(error, TenureError):
            self._metrics.store_failed(error)


def _of_each(engines: Callable[[], Iterable[Engine]], query: Query) -> list[tuple[str, Any]]:
    """The first engine is the home tenant's. A tenant whose own store fails or hangs is left out."""
    home, *others = engines()
    apart = {one.tenant: _in_thread(partial(read_query, one, query)) for one in others if one.store is not home.store}
    entries = [
        (one.tenant, entry) for one in (home, *others) if one.tenant not in apart for entry in read_query(one, query)
    ]
    done, _ = wait(apart.values(), APART)
    answered = [(name, one) for name, one in apart.items() if one in done and one.exception() is None]
    return entries + [(name, entry) for name, one in answered for entry in one.result()]


def _of_home(read: Callable[[], Iterable[T]]) -> Callable[[], list[tuple[str, T]]]:
    return lambda: [(HOME, entry) for entry in read()]


def of_tenant(page: bytes, tenant: str) -> bytes:
    """The page without the series of other tenants, and of the process as a whole: they say what others do."""
    label = f'tenant="{tenant}"'.encode()  # a name has no character that would be escaped
    kept: list[bytes] = []
    for line in page.splitlines():
        if line.startswith(b"#"):
            if line.startswith(b"# HELP"):
                while kept and kept[-1].startswith(b"#"):  # of a metric without a series
                    kept.pop()
            kept.append(line)
        elif label in _LABELS.findall(line):
            kept.append(line)
    while kept and kept[-1].startswith(b"#"):
        kept.pop()
    return b"\n".join(kept) + b"\n" if kept else b""


def _in_thread(work: Callable[[], T]) -> Future[T]:
    """Run `work` in a new daemon thread, which does not delay the end of the process."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - passed on to the waiting scrape
            future.set_exception(error)

    threading.Thread(target=run, name="tenure-scrape", daemon=True).start()
    return future


class _GaugeCollector(Collector):
    """The last reading as Prometheus metrics."""

    def __init__(self, page: MetricsPage) -> None:
        self._scrapes = page

    def describe(self) -> Iterator[GaugeMetricFamily]:
        return iter(self._families().values())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families = self._families()
        reading = self._scrapes.reading()
        for tenant, entry in reading.entries if reading is not None else ():
            for name, labels, value in _series(entry):
                families[name].add_metric([tenant, entry["project"], *labels], value)
        for tenant, relay in reading.relays if reading is not None else ():
            families["tenure_relay_lag_events"].add_metric([tenant, relay["name"]], relay["lag_events"])
            families["tenure_relay_lag_seconds"].add_metric([tenant, relay["name"]], relay["lag"])
        return iter(families.values())

    def _families(self) -> dict[str, GaugeMetricFamily]:
        return {
            name: GaugeMetricFamily(name, m.meaning, labels=m.labels)
            for name, m in (STORE_GAUGES | SINK_GAUGES).items()
        }


def _series(entry: GaugesView) -> Iterator[tuple[str, tuple[str, ...], float]]:
    states = {state: sum(tiers.values()) for state, tiers in entry["depth"].items()}
    yield "tenure_pending_tasks", (), sum(states.get(state, 0) for state in WAITING)
    yield "tenure_active_claims", (), sum(states.get(state, 0) for state in lifecycle.HELD)
    yield "tenure_completed_tasks", (), entry["completed"]
    yield "tenure_oldest_ready_seconds", (), entry["oldest_ready"]
    yield "tenure_clock_behind_seconds", (), entry["clock_behind"]
    yield "tenure_overdue_tasks", (), entry["overdue"]
    yield "tenure_overdue_retries", (), entry["overdue_retries"]
    yield "tenure_stale_agents", (), entry["agents"]["stale"]
    for state, tiers in entry["depth"].items():
        for tier, count in tiers.items():
            yield "tenure_queue_depth", (state, tier), count
    for status, count in entry["agents"].items():
        yield "tenure_agents", (status,), count
    for pool, counts in entry["pools"].items():
        yield "tenure_pool_size", (pool,), counts["size"]
        for state in ("starting", "running"):
            yield "tenure_spawns", (pool, state), counts[state]
    for reader, seconds in entry["readers"].items():
        yield "tenure_archive_held_back", (reader,), seconds
    if entry["unsealed"] is not None:
        yield "tenure_unsealed_events", (), entry["unsealed"]
    money = entry["budget"]
    if money is not None:
        held = (money["currency"],)
        yield "tenure_budget_allocated", held, money["allocated"]
        yield "tenure_budget_spent", held, money["spent"]
        yield "tenure_budget_reserved", held, money["reserved"]
        yield "tenure_budget_left", held, money["allocated"] - money["spent"] - money["reserved"]
