"""Cost, tokens, budgets and busy agents on the metrics page.

Their sums read every usage row, which the gauges of tasks never wait for: a separate thread reads them about twice
a minute, and never for more than a twentieth of the time. Until it is done, a scrape has the last reading.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenure.core import limits
from tenure.core.errors import TenureError
from tenure.server.metric_definitions import COUNTER, SPENDING
from tenure.server.metrics import Metrics

if TYPE_CHECKING:
    from tenure.core.views.project_views import SpendingView

KEPT = limits.SPENDING_KEPT
SHARE = 20  # a reading is reused for this many times as long as it took
TOKENS = ("fresh", "cached", "written", "output")


class SpendingReading(Collector):
    """The last reading as Prometheus metrics."""

    def __init__(self, metrics: Metrics, read: Callable[[], list[tuple[str, SpendingView]]]) -> None:
        """`read` returns the spending of each project, with its tenant."""
        self._metrics, self._read, self._monotonic = metrics, read, metrics.monotonic
        self._entries: list[tuple[str, SpendingView]] = []
        self._due = 0.0
        self._running: threading.Thread | None = None
        metrics.registry.register(self)

    def refresh(self) -> threading.Thread | None:
        """Start a reading if one is due; the thread that reads, if any."""
        if self._running is not None and self._running.is_alive():
            return self._running
        if self._monotonic() < self._due:
            return None
        self._running = threading.Thread(target=self._timed, name="tenure-spending", daemon=True)
        self._running.start()
        return self._running

    def is_new(self) -> bool:
        """Whether nothing was read yet."""
        return self._due == 0.0

    def _timed(self) -> None:
        began = self._monotonic()
        try:
            self._entries = self._read()
        except TenureError as error:  # the totals are those of the last reading
            self._metrics.store_failed(error)
        ended = self._monotonic()
        self._due = ended + max(KEPT, SHARE * (ended - began))

    def describe(self) -> Iterator[Metric]:
        return iter(self._families().values())

    def collect(self) -> Iterator[Metric]:
        families = self._families()
        for tenant, entry in self._entries:
            for name, labels, value in _series(entry):
                families[name].add_metric([tenant, entry["project"], *labels], value)
        return iter(families.values())

    def _families(self) -> dict[str, CounterMetricFamily | GaugeMetricFamily]:
        return {
            name: (CounterMetricFamily if m.kind == COUNTER else GaugeMetricFamily)(name, m.meaning, labels=m.labels)
            for name, m in SPENDING.items()
        }


def _series(entry: SpendingView) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for used in entry["used"]:
        who = (used["agent"], used["model"])
        yield "tenure_cost_usd_total", who, used["cost_usd"]
        counts = (used["fresh"], used["cached"], used["written"], used["output"])
        for kind, count in zip(TOKENS, counts, strict=True):
            yield "tenure_tokens_total", (kind, *who), count
    yield "tenure_spend_today_usd", (), entry["today_usd"]
    for budget in entry["budgets"]:
        yield "tenure_budget_remaining_usd", (budget["scope"], budget["name"]), budget["remaining_usd"]
    for agent, part in entry["busy"].items():
        yield "tenure_agent_utilization", (agent,), part
