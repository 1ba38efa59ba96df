"""What a server counts, and in which words: `tenure_…` for Prometheus, in a registry of its own.

Counting costs a request a few microseconds and never fails it. Label values are bounded: whoever invents names can
fill neither the memory of this process nor that of the one that reads it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import prometheus_client as prometheus

from tenure.core import limits
from tenure.core.commands import ClaimNext, ClaimTask, Command, Principal, Renew, Submit
from tenure.core.errors import OutcomeUnknown, StoreError, StoreUnavailable, TenureError
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.roles import ROLES
from tenure.server.measures import COUNTER, HISTOGRAM, MEASURES, STANDING

MOST_PROJECTS = limits.METRIC_PROJECTS
MOST_TYPES = limits.METRIC_TYPES
MOST_CLASSES = limits.METRIC_CLASSES
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
CONFLICTS = frozenset({"DENIED_ACTIVE_CLAIM", "DENIED_CONFLICT", "DENIED_OFFERED"})
_BY_PROJECT: dict[type[Command], str] = {
    ClaimTask: "tenure_claims_total",
    ClaimNext: "tenure_claims_total",
    Submit: "tenure_results_total",
    Renew: "tenure_lease_renewals_total",
}


class Names:
    """The first so many names that come; all later ones are `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def bounded(self, name: str, *, is_real: bool = True) -> str:
        """`is_real` False: known if it was before, but no reason to remember it."""
        if name in self._known:
            return name
        if not is_real or len(self._known) >= self._most:
            return OTHER
        self._known.add(name)
        return name


class About(NamedTuple):
    """What an event does not say itself, in seconds; None where it is not known."""

    type: str | None = None
    waited: float | None = None  # of a claim: since the task was ready
    held: float | None = None  # of a claim that ended: since it was granted
    worked: float | None = None  # of a completion: since the first claim of the run
    lived: float | None = None  # of a completion: since the task was made


NOTHING = About()


class Metrics:
    """Safe to use from several threads."""

    def __init__(
        self, *, tenant: str = "local", version: str = "", monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        # One series more for each, which no query of ours needs.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = prometheus.CollectorRegistry()
        self.tenant = tenant
        self.monotonic = monotonic
        self._metrics: dict[str, Any] = {name: self._made(name) for name in MEASURES if name not in STANDING}
        self._children: dict[tuple[Any, ...], Any] = {}
        self._projects, self._types = Names(MOST_PROJECTS), Names(MOST_TYPES)
        self._classes, self._roles = Names(MOST_CLASSES), Names(len(ROLES))
        self._last_cycle = monotonic()
        age = self._metrics["tenure_coordinator_last_cycle_age_seconds"]
        age.set_function(lambda: self.monotonic() - self._last_cycle)
        self._of("tenure_build", version, platform.python_version()).set(1)
        prometheus.ProcessCollector(registry=self.registry)
        prometheus.GCCollector(registry=self.registry)

    def _made(self, name: str) -> Any:
        measure = MEASURES[name]
        if measure.kind == HISTOGRAM:
            return prometheus.Histogram(
                name, measure.meaning, measure.labels, buckets=measure.buckets, registry=self.registry
            )
        made = prometheus.Counter if measure.kind == COUNTER else prometheus.Gauge
        return made(name, measure.meaning, measure.labels, registry=self.registry)

    def _of(self, name: str, *values: str) -> Any:
        """The series of a metric with these label values. Kept here: finding it again costs a fourth of `labels`."""
        key = (name, *values)
        found = self._children.get(key)
        if found is None:
            metric = self._metrics[name]
            found = self._children[key] = metric.labels(*values) if values else metric
        return found

    # --- what was answered ---

    def observe(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        """One command with its outcome or error; the app calls it after each, in a batch too."""
        kind = type(command)
        verb = str(kind.__struct_config__.tag)
        failed = isinstance(answer, TenureError)
        result = answer.code if isinstance(answer, TenureError) else answer.outcome
        role = self._roles.bounded(principal.role, is_real=principal.role in ROLES)
        self._of("tenure_commands_total", verb, role, result).inc()
        self._of("tenure_command_seconds", verb).observe(seconds)
        counter = _BY_PROJECT.get(kind)
        if counter is not None:
            # A project that is named in an error may be anybody's invention.
            project = self._projects.bounded(command.project, is_real=not failed)
            times = len(answer.claims) if isinstance(answer, Outcome) and answer.claims else 1
            self._of(counter, self.tenant, project, result).inc(times)
            if result in CONFLICTS:
                self._of("tenure_claim_conflicts_total", self.tenant, project, result).inc()
        if isinstance(answer, StoreError):
            self.store_failed(answer)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One HTTP request. `route` is the path as the table has it, never what was asked for."""
        method = method if method in METHODS else OTHER
        self._of("tenure_http_requests_total", method, route, str(status)).inc()
        self._of("tenure_http_request_seconds", method, route).observe(seconds)

    @contextmanager
    def holding(self, kind: str) -> Iterator[None]:
        """While a request waits for something to happen: `claims`, `events` or `news`."""
        gauge = self._of("tenure_held_requests", kind)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def store_failed(self, error: TenureError) -> None:
        """The store could not do its part; for looks and loops, since `observe` sees those of commands."""
        self._of("tenure_store_errors_total", error.code).inc()
        if isinstance(error, (StoreUnavailable, OutcomeUnknown)):
            self.unreachable("store")

    def unreachable(self, target: str) -> None:
        self._of("tenure_connection_errors_total", target).inc()

    # --- what happened ---

    def event(self, event: Event, about: About = NOTHING) -> None:
        """One event of the log. Each is to be counted on one server only: `counting.py` sees to it."""
        at = (self.tenant, self._projects.bounded(event.project)) if event.project else None
        if at is None:
            return
        if event.kind == "task.claimed":
            self._of("tenure_generation_increments_total", *at).inc()
            self._spent("tenure_task_wait_seconds", at, about.waited)
        elif event.kind == "task.completed":
            self._completed(event, about, at)
        elif event.kind == "task.lease_expired":
            self._of("tenure_lease_expirations_total", *at).inc()
        elif event.kind == "task.failed":
            classes = self._class_of(event)
            self._of("tenure_attempts_failed_total", *at, self._type_of(about), classes).inc()
        elif event.kind == "task.retry_scheduled":
            self._of("tenure_retries_total", *at, self._class_of(event)).inc()
        elif event.kind == "task.dead_lettered":
            self._of("tenure_dead_letters_total", *at, self._type_of(about), self._class_of(event)).inc()
        elif event.kind == "agent.stale":
            self._of("tenure_heartbeat_misses_total", *at).inc()
        reason = ending_of(event)
        if reason is not None:
            self._of("tenure_claims_ended_total", *at, reason).inc()
            self._spent("tenure_claim_duration_seconds", at, about.held)

    def uncounted(self, events: int) -> None:
        self._of("tenure_events_uncounted_total").inc(events)

    def _completed(self, event: Event, about: About, at: tuple[str, str]) -> None:
        self._of("tenure_tasks_completed_total", *at, self._type_of(about)).inc()
        self._of("tenure_generations_per_task", *at).observe(event.generation or 1)
        self._spent("tenure_task_completion_seconds", at, about.worked)
        self._spent("tenure_task_latency_seconds", at, about.lived)

    def _spent(self, name: str, at: tuple[str, str], seconds: float | None) -> None:
        if seconds is not None:
            self._of(name, *at).observe(max(0.0, seconds))

    def _type_of(self, about: About) -> str:
        return OTHER if about.type is None else self._types.bounded(about.type)

    def _class_of(self, event: Event) -> str:
        return self._classes.bounded(str(event.details.get("error_class") or "none"))

    # --- the coordinator ---

    def cycle(
        self,
        seconds: float,
        *,
        leads: bool,
        term: int | None = None,
        settled: int = 0,
        failed: int = 0,
        ok: bool = True,
    ) -> None:
        """One cycle of the coordinator's loop. `failed`: rows that it could not settle; `ok` False: it broke off."""
        self._of("tenure_coordinator_cycle_seconds").observe(seconds)
        self._of("tenure_coordinator_cycles_total", "ok" if ok else "failed").inc()
        self._of("tenure_coordinator_leader").set(int(leads))
        if term is not None:
            self._of("tenure_coordinator_term").set(term)
        self._of("tenure_settled_total").inc(settled)
        self._of("tenure_unsettled_total").inc(failed)
        if ok:
            self._last_cycle = self.monotonic()

    def store_read(self, *, is_up: bool, seconds: float | None = None) -> None:
        self._of("tenure_store_up").set(int(is_up))
        if seconds is not None:
            self._of("tenure_store_read_seconds").set(seconds)


def ending_of(event: Event) -> str | None:
    """How a claim ended, where the event tells of such an end."""
    for table, _, fields in event.patch:
        if table == "claim" and fields is not None and fields.get("released_at") is not None:
            return str(fields.get("reason"))
    return None
