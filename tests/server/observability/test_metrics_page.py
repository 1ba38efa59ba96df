"""A scrape always answers in time, and asks the store neither often nor twice at once."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tenure.core import commands as c
from tenure.core.errors import StoreUnavailable
from tenure.core.views import GaugesView
from tenure.engine import Context, Engine
from tenure.server import metrics_page
from tenure.server.metric_definitions import STORE_GAUGES
from tenure.server.metrics import Metrics
from tenure.server.metrics_page import MetricsPage
from tenure.stores.memory import Memory
from tenure.stores.port import Transaction
from tenure.stores.postgres import Postgres
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Dice, Scene
from tests.server.observability.samples import Told
from tests.servers import processes
from tests.servers.fixtures import running
from tests.servers.postgres import PostgresServer

PATIENCE = 30.0


class Steered:
    """A store whose answers a test gives, on a clock that it moves."""

    def __init__(self, limit: float = PATIENCE) -> None:
        self.now = 100.0
        self.asked = 0
        self.takes = 0.0  # seconds, by this clock
        self.fails = False
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.metrics = Metrics(monotonic=lambda: self.now)
        self.scrapes = MetricsPage(self.metrics, _no_engine(), limit=limit, read=self.read)
        self.told = Told(self.metrics)

    def read(self) -> list[GaugesView]:
        self.asked += 1
        assert self.may_answer.wait(PATIENCE)
        self.now += self.takes
        if self.fails:
            raise StoreUnavailable("gone")
        depth = {"ready": {"high": 2, "normal": 1}, "claimed": {"normal": 4}, "paused": {"low": 1}}
        return [
            GaugesView(
                project="p", depth=depth, completed=7, overdue=3, overdue_retries=2, oldest_ready=12.5,
                clock_behind=1.5,
                agents={"active": 1, "idle": 2, "stale": 3, "draining": 0, "offline": 0},
                pools={"crew": {"size": 5, "starting": 1, "running": 3}},
                budget={"currency": "usd", "allocated": 10.0, "spent": 2.5, "reserved": 1.0},
                readers={"coordinator": 42.0}, unsealed=6,
            )
        ]  # fmt: skip

    async def page(self) -> str:
        return (await self.scrapes.page()).decode()


def _no_engine() -> Engine:
    return None  # type: ignore[return-value]  # what is read is handed in


def test_the_store_is_told_in_the_promised_words() -> None:
    steered = Steered()
    text = asyncio.run(steered.page())
    told = steered.told
    assert told["tenure_pending_tasks", "p"] == 3
    assert told["tenure_active_claims", "p"] == 4
    assert told["tenure_completed_tasks", "p"] == 7
    assert told["tenure_queue_depth", "p", "ready", "high"] == 2
    assert told["tenure_queue_depth", "p", "paused", "low"] == 1
    assert told["tenure_oldest_ready_seconds", "p"] == 12.5
    assert told["tenure_clock_behind_seconds", "p"] == 1.5
    assert told["tenure_overdue_retries", "p"] == 2
    assert told["tenure_agents", "p", "idle"] == 2
    assert told["tenure_stale_agents", "p"] == 3
    assert (told["tenure_pool_size", "p", "crew"], told["tenure_spawns", "p", "crew", "running"]) == (5, 3)
    assert told["tenure_budget_left", "p", "usd"] == 6.5
    assert told["tenure_archive_held_back", "p", "coordinator"] == 42
    assert told["tenure_unsealed_events", "p"] == 6
    assert told["tenure_store_up",] == 1
    assert {family.name for family in text_string_to_metric_families(text)} >= STORE_GAUGES.keys()


def test_a_reading_serves_every_scrape_for_a_while() -> None:
    async def scrape() -> None:
        for _ in range(20):
            await steered.page()
        assert steered.asked == 1
        steered.now += metrics_page.KEPT
        await steered.page()
        assert steered.asked == 2

    steered = Steered()
    asyncio.run(scrape())


def test_a_slow_reading_is_kept_for_longer() -> None:
    async def scrape() -> None:
        await steered.page()
        steered.now += 39
        await steered.page()
        assert steered.asked == 1
        steered.now += 1
        await steered.page()
        assert steered.asked == 2

    steered = Steered()
    steered.takes = 2.0
    asyncio.run(scrape())
    assert steered.told["tenure_store_read_seconds",] == 2


def test_many_scrapes_at_once_ask_once() -> None:
    async def scrape() -> None:
        steered.may_answer.clear()
        scrapes = [asyncio.ensure_future(steered.page()) for _ in range(50)]
        await asyncio.sleep(0)
        steered.may_answer.set()
        assert all("tenure_pending_tasks{" in page for page in await asyncio.gather(*scrapes))
        assert steered.asked == 1

    steered = Steered()
    asyncio.run(scrape())


def test_while_the_store_is_away_the_process_still_answers() -> None:
    async def scrape() -> None:
        await steered.page()
        steered.fails = True
        steered.now += metrics_page.KEPT
        text = await steered.page()
        assert "tenure_store_up 0.0" in text
        assert "tenure_pending_tasks{" not in text  # what was is no longer true
        assert "process_resident_memory_bytes" in text
        assert steered.told["tenure_store_errors_total", "STORE_UNAVAILABLE"] == 1
        assert steered.told["tenure_connection_errors_total", "store"] == 1
        steered.fails = False
        text = await steered.page()  # at once: a failure is not kept
        assert "tenure_store_up 1.0" in text
        assert "tenure_pending_tasks{" in text

    steered = Steered()
    asyncio.run(scrape())


def test_a_store_that_hangs_holds_up_a_scrape_for_no_longer_than_its_limit() -> None:
    async def scrape() -> None:
        steered.may_answer.clear()
        text = await steered.page()
        assert "process_resident_memory_bytes" in text
        assert "tenure_store_up 1.0" in text  # slow is not away
        steered.now += metrics_page.HUNG
        assert "tenure_store_up 0.0" in await steered.page()
        assert steered.asked == 1  # a second would only hang beside it
        steered.may_answer.set()
        assert steered.scrapes._running is not None
        await asyncio.to_thread(steered.scrapes._running.result, PATIENCE)
        text = await steered.page()
        assert "tenure_store_up 1.0" in text
        assert "tenure_pending_tasks{" in text

    steered = Steered(limit=0.01)
    asyncio.run(scrape())


def test_an_old_reading_is_shown_while_a_new_one_takes_its_time_but_not_for_ever() -> None:
    async def scrape() -> None:
        await steered.page()
        steered.may_answer.clear()
        steered.now += metrics_page.KEPT
        assert "tenure_pending_tasks{" in await steered.page()
        steered.now += metrics_page.OLDEST
        assert "tenure_pending_tasks{" not in await steered.page()
        steered.may_answer.set()

    steered = Steered(limit=0.01)
    asyncio.run(scrape())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    clock = FakeClock()
    scene = Scene(Sqlite(str(tmp_path / "store.db"), clock=clock), clock)
    yield scene
    scene.store.close()


def test_a_real_store_is_read(scene: Scene) -> None:
    scene.add("one", priority="high")
    scene.take(scene.add("two"))
    metrics = Metrics()
    asyncio.run(MetricsPage(metrics, scene.engine).page())
    told = Told(metrics)
    assert told["tenure_queue_depth", "p", "ready", "high"] == 1
    assert told["tenure_active_claims", "p"] == 1
    assert told["tenure_agents", "p", "active"] == 1


def test_a_tenants_page_has_its_own_series_alone() -> None:
    page = b"\n".join(
        [
            b"# HELP a of a project", b"# TYPE a counter", b'a{project="p",tenant="acme"} 1.0',
            b'a{project="tenant=\\"acme\\"",tenant="zeta"} 2.0', b"# HELP b of the process", b"# TYPE b gauge",
            b"b 3.0", b"# HELP c of another", b"# TYPE c gauge", b'c{tenant="acme2"} 4.0', b"",
        ]
    )  # fmt: skip
    own = b'# HELP a of a project\n# TYPE a counter\na{project="p",tenant="acme"} 1.0\n'
    assert metrics_page.of_tenant(page, "acme") == own
    assert metrics_page.of_tenant(page, "none") == b""


def test_a_tenant_whose_own_store_is_away_is_left_out(scene: Scene) -> None:
    """And the others are shown, as is that the server's own store is up."""
    scene.add("One")
    away = Engine(Away(), Dice(), Context(tenant="acme"))
    metrics = Metrics()
    page = asyncio.run(MetricsPage(metrics, scene.engine, engines=lambda: [scene.engine, away]).page()).decode()
    assert 'tenure_pending_tasks{project="p",tenant="local"} 1.0' in page
    assert "tenure_store_up 1.0" in page
    assert 'tenant="acme"' not in page


class Away(Memory):
    def begin(self, tenant: str, *, write: bool) -> Transaction:
        raise StoreUnavailable("away")


def test_scrapes_go_on_while_a_real_server_is_down_and_after() -> None:
    async def until(wanted: str) -> str:
        async with asyncio.timeout(PATIENCE):
            while wanted not in (page := (await scrapes.page()).decode()):
                assert "process_resident_memory_bytes" in page
                clock[0] += metrics_page.KEPT
        return page

    with own_postgres() as server:
        clock = [0.0]
        store = Postgres(server.url, patience=0.5)
        engine = Engine(store, Dice())
        engine.do(c.DefineProject(project="p"))
        scrapes = MetricsPage(Metrics(monotonic=lambda: clock[0]), engine, limit=0.05)
        asyncio.run(until("tenure_pending_tasks{"))
        assert server.process is not None
        processes.end(server.process, signal.SIGQUIT)
        assert "tenure_pending_tasks{" not in asyncio.run(until("tenure_store_up 0.0"))
        server.run()
        assert "tenure_store_up 1.0" in asyncio.run(until("tenure_pending_tasks{"))
        store.close()


@contextmanager
def own_postgres() -> Iterator[PostgresServer]:
    """Not the one that others use: this one goes down."""
    server = PostgresServer()
    with running(server):
        yield server
