"""The metrics of a server: `tenure_…` for Prometheus, in its own registry.

Counting costs a request a few microseconds and never fails it. Label values are bounded, so invented names cannot fill
the memory of this process or of Prometheus.
"""

from __future__ import annotations

import platform
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import prometheus_client as prometheus

from tenure.core import limits
from tenure.core.commands import ClaimNext, ClaimTask, Command, Principal, Renew, Submit
from tenure.core.errors import NotFound, OutcomeUnknown, StoreError, StoreUnavailable, TenureError
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.roles import ROLES
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Cycle
from tenure.engine.relay.relay import Progress
from tenure.engine.verbs.lead import COORDINATOR
from tenure.server.metric_definitions import COUNTER, HISTOGRAM, METRICS, SINK_GAUGES, SPENDING, STORE_GAUGES
from tenure.server.task_cache import NO_FACTS, EventFacts, TaskCache, ending_of

MOST_PROJECTS = limits.METRIC_PROJECTS
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
CONFLICTS = frozenset({"DENIED_ACTIVE_CLAIM", "DENIED_CONFLICT", "DENIED_OFFERED"})
_BY_PROJECT: dict[type[Command], str] = {
    ClaimTask: "tenure_claims_total",
    ClaimNext: "tenure_claims_total",
    Submit: "tenure_results_total",
    Renew: "tenure_lease_renewals_total",
}


class LabelValues:
    """The first `most` values of a label; all later ones are `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def bounded(self, name: str, *, is_real: bool = True, of: str = "") -> str:
        """`is_real` False: the name may be invented, so it is not remembered. `of`: names of others do not count."""
        known = f"{of}\0{name}" if of else name
        if known in self._known:
            return name
        if not is_real or len(self._known) >= self._most:
            return OTHER
        self._known.add(known)
        return name


class Metrics:
    """Safe to use from several threads."""

    def __init__(self, *, version: str = "", monotonic: Callable[[], float] = time.monotonic) -> None:
        # They would add one series for each metric, which no query needs.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = prometheus.CollectorRegistry()
        self.monotonic = monotonic
        self._metrics: dict[str, Any] = {
            name: self._made(name) for name in METRICS if name not in STORE_GAUGES | SINK_GAUGES | SPENDING
        }
        self._children: dict[tuple[Any, ...], Any] = {}
        self._of_commands: dict[tuple[Any, ...], list[Any]] = {}  # see `_series_of`
        self._known_places: dict[tuple[str, str], tuple[str, str]] = {}
        self._tenants, self._projects = LabelValues(limits.METRIC_TENANTS), LabelValues(limits.METRIC_PLACES)
        self._of_tenant: dict[str, LabelValues] = {}
        self._types = LabelValues(limits.METRIC_TYPES)
        self._classes, self._roles = LabelValues(limits.METRIC_CLASSES), LabelValues(len(ROLES))
        self._pools, self._agents = LabelValues(limits.METRIC_POOLS), LabelValues(limits.METRIC_AGENTS)
        self._last_cycle = monotonic()
        age = self._metrics["tenure_coordinator_last_cycle_age_seconds"]
        age.set_function(lambda: self.monotonic() - self._last_cycle)
        self._last_answer = monotonic()
        self._of("tenure_store_answer_age_seconds").set_function(lambda: self.monotonic() - self._last_answer)
        self._of("tenure_build", version, platform.python_version()).set(1)
        self._of("tenure_workers").set(1)
        prometheus.ProcessCollector(registry=self.registry)
        prometheus.GCCollector(registry=self.registry)

    def _made(self, name: str) -> Any:
        measure = METRICS[name]
        if measure.kind == HISTOGRAM:
            return prometheus.Histogram(
                name, measure.meaning, measure.labels, buckets=measure.buckets, registry=self.registry
            )
        made = prometheus.Counter if measure.kind == COUNTER else prometheus.Gauge
        return made(name, measure.meaning, measure.labels, registry=self.registry)

    def _of(self, name: str, *values: str) -> Any:
        """The series of a metric with these label values. Cached: a lookup costs a quarter of `labels`."""
        key = (name, *values)
        found = self._children.get(key)
        if found is None:
            metric = self._metrics[name]
            found = self._children[key] = metric.labels(*values) if values else metric
        return found

    def _at(self, tenant: str, project: str, *, is_real: bool = True) -> tuple[str, str]:
        """The labels of a project: at most so many of each tenant, and of all."""
        found = self._known_places.get((tenant, project))
        if found is None:
            found = self._bounded(tenant, project, is_real=is_real)
            if OTHER not in found:
                self._known_places[tenant, project] = found
        return found

    def _bounded(self, tenant: str, project: str, *, is_real: bool) -> tuple[str, str]:
        tenant = self._tenants.bounded(tenant, is_real=is_real)
        if tenant == OTHER:
            return OTHER, OTHER
        own = self._of_tenant.setdefault(tenant, LabelValues(MOST_PROJECTS))
        project = own.bounded(project, is_real=is_real)
        return tenant, project if project == OTHER else self._projects.bounded(project, of=tenant)

    # --- requests ---

    def observe(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        """Count a command with its outcome or error, also each command of a batch."""
        failed = isinstance(answer, TenureError)
        result = answer.code if isinstance(answer, TenureError) else answer.outcome
        commands, seconds_of, *of_project = self._series_of(command, principal, result, failed=failed)
        commands.inc()
        seconds_of.observe(seconds)
        times = len(answer.claims) if isinstance(answer, Outcome) and answer.claims else 1
        for series in of_project:
            series.inc(times)
        if isinstance(answer, StoreError):
            self.store_failed(answer)

    def _series_of(self, command: Command, principal: Principal, result: str, *, failed: bool) -> list[Any]:
        """The series that count such a command; those of known names are cached, so they are as few as the names."""
        kind = type(command)
        counter = _BY_PROJECT.get(kind)
        agent = command.agent if isinstance(command, (ClaimTask, ClaimNext)) else None
        at = (principal.tenant or HOME, command.project) if counter is not None else None
        key = (kind, principal.role, result, at, agent)
        found = self._of_commands.get(key)
        if found is not None:
            return found
        verb = str(kind.__struct_config__.tag)
        role = self._roles.bounded(principal.role, is_real=principal.role in ROLES)
        made = [self._of("tenure_commands_total", verb, role, result), self._of("tenure_command_seconds", verb)]
        names: list[str | None] = [role]
        if counter is not None and at is not None:
            # A project that is named in an error may not exist.
            at = self._at(*at, is_real=not failed)
            made.append(self._of(counter, *at, result))
            names += at
            if agent is not None:
                # Anybody may claim under any name: only one that was granted a task, or is known here, gets a series.
                agent = self._agent(at, agent, is_real=result == "GRANTED")
                made.append(self._of("tenure_agent_claims_total", *at, agent, result))
                names.append(agent)
            if result in CONFLICTS:
                made.append(self._of("tenure_claim_conflicts_total", *at, result))
        if OTHER not in names:
            self._of_commands[key] = made
        return made

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an HTTP request. `route` is the path with placeholders, never the requested path."""
        method = method if method in METHODS else OTHER
        self._of("tenure_http_requests_total", method, route, str(status)).inc()
        self._of("tenure_http_request_seconds", method, route).observe(seconds)

    @contextmanager
    def waiting_request(self, kind: str) -> Iterator[None]:
        """While a request waits for `claims`, `events` or `news`."""
        gauge = self._of("tenure_held_requests", kind)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def store_failed(self, error: TenureError) -> None:
        """Count a store error of a query or a loop; `observe` counts those of commands."""
        self._of("tenure_store_errors_total", error.code).inc()
        if isinstance(error, (StoreUnavailable, OutcomeUnknown)):
            self.unreachable("store")

    def unreachable(self, target: str) -> None:
        self._of("tenure_connection_errors_total", target).inc()

    # --- events ---

    def event(self, event: Event, about: EventFacts = NO_FACTS, tenant: str = HOME) -> None:
        """Count an event of the tenant's log. `EventCounter` ensures that only one server counts it."""
        if not event.project:
            return
        at = self._at(tenant, event.project)
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
            agent = self._agent(at, event.agent or OTHER)
            self._of("tenure_agent_heartbeat_misses_total", *at, agent).inc()
        elif event.kind in SPAWNS:
            self._spawn(event, at)
        reason = ending_of(event)
        if reason is not None:
            self._of("tenure_claims_ended_total", *at, reason).inc()
            self._spent("tenure_claim_duration_seconds", at, about.held)

    def _spawn(self, event: Event, at: tuple[str, str]) -> None:
        pool, state = self._pools.bounded(str(event.details.get("pool")), of=at[0]), event.kind.partition(".")[2]
        if state == "starting":
            self._of("tenure_agents_spawned_total", *at, pool).inc()
        else:
            claimed = "yes" if event.details.get("claimed") else "no"
            self._of("tenure_spawns_ended_total", *at, pool, state, claimed).inc()

    def uncounted(self, events: int) -> None:
        self._of("tenure_events_uncounted_total").inc(events)

    def _completed(self, event: Event, about: EventFacts, at: tuple[str, str]) -> None:
        self._of("tenure_tasks_completed_total", *at, self._type_of(about)).inc()
        self._of("tenure_generations_per_task", *at).observe(event.generation or 1)
        self._spent("tenure_task_completion_seconds", at, about.worked)
        self._spent("tenure_task_latency_seconds", at, about.lived)

    def _spent(self, name: str, at: tuple[str, str], seconds: float | None) -> None:
        if seconds is not None:
            self._of(name, *at).observe(max(0.0, seconds))

    def _agent(self, at: tuple[str, str], agent: str, *, is_real: bool = True) -> str:
        return self._agents.bounded(agent, is_real=is_real, of="" if at[0] == HOME else at[0])

    def _type_of(self, about: EventFacts) -> str:
        return OTHER if about.type is None else self._types.bounded(about.type)

    def _class_of(self, event: Event) -> str:
        return self._classes.bounded(str(event.details.get("error_class") or "none"))

    # --- the coordinator ---

    def cycle(self, cycle: Cycle, term: int | None) -> None:
        """Count a cycle of the coordinator; `term` is None unless this server leads."""
        self._of("tenure_coordinator_cycle_seconds").observe(cycle.seconds)
        self._of("tenure_coordinator_cycles_total", "ok" if cycle.ok else "failed").inc()
        self._of("tenure_coordinator_leader").set(int(term is not None))
        if term is not None:
            self._of("tenure_coordinator_term").set(term)
        self._of("tenure_settled_total").inc(cycle.settled)
        self._of("tenure_unsettled_total").inc(cycle.failed)
        if cycle.ok:
            self._last_cycle = self._last_answer = self.monotonic()

    def relayed(self, sink: str, progress: Progress) -> None:
        """Count what a step of a relay has done; sinks are configured, so their names are few."""
        self._of("tenure_relay_sent_total", sink).inc(progress.sent)
        self._of("tenure_relay_errors_total", sink).inc(int(progress.error is not None))
        if progress.consumer_lag is not None:
            self._of("tenure_consumer_lag", sink).set(progress.consumer_lag)

    def store_read(self, *, is_up: bool, seconds: float | None = None) -> None:
        self._of("tenure_store_up").set(int(is_up))
        if is_up:
            self._last_answer = self.monotonic()
        if seconds is not None:
            self._of("tenure_store_read_seconds").set(seconds)


PAGE = 500
MOST_WAITING = limits.METRIC_EVENTS
ELECTED = "leader.elected"
SPAWNS = ("spawn.starting", "spawn.ended", "spawn.lost")
_NO_TASK = frozenset({"agent.stale", *SPAWNS})  # counted without a task
_IDLE = frozenset({"task.progress", "task.checkpoint", "task.landing", "task.noted", "task.started"})  # count nothing


class EventCounter:
    """Counts each event of the store once, however many servers share it. A listener of the feed.

    Every server reads the whole log, and the log contains the elections. Each server counts the events from its own
    election (`instance` is its name there) to the next one, so the servers divide the log without communication and the
    sum over all is right. Events that a leader had not read when it was killed are not counted: at most one lease, and
    its counters ended with it.

    The elections are in the log of the home tenant. Events of other tenants are counted while this server leads by
    that log: at a change of leaders a few of them may be counted twice, or by none.

    A thread counts, one page at a time, and reads from the store the facts that neither the events nor this server's
    outcomes have. Nothing waits for it.
    """

    def __init__(
        self, engine: Engine, metrics: Metrics, instance: str, engine_of: Callable[[str], Engine] | None = None
    ) -> None:
        """`engine_of`: that of another tenant than the engine's; NotFound where it was closed."""
        self._metrics, self._instance = metrics, instance
        self._home, self._engine_of = engine.tenant, engine_of or (lambda _: engine)
        self._counts = False  # as of the last event received
        self._waiting: deque[tuple[str, Event]] = deque()  # with their tenants
        self._caches: OrderedDict[str, TaskCache] = OrderedDict()
        self._answered: deque[tuple[str, str, Outcome]] = deque(maxlen=limits.METRIC_ANSWERS)
        self._has_missed = False
        self._changed = threading.Condition()
        self._is_closing = self._is_busy = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        # A daemon: it must not delay the end of the process.
        self._thread = threading.Thread(target=self._run, name="tenure-counting", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current page; events that still wait are dropped."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(limits.METRIC_CLOSE)

    def hear(self, events: Sequence[Event], tenant: str = HOME) -> None:
        """Queue events, in the order of the log; fast, since the event loop calls it."""
        mine = [(tenant, event) for event in self._mine(events, is_home=tenant == self._home)]
        if not mine:
            return
        with self._changed:
            self._waiting.extend(mine)
            left_out = max(0, len(self._waiting) - MOST_WAITING)
            for _ in range(left_out):
                self._waiting.popleft()
                self._has_missed = True
            self._changed.notify_all()
        if left_out:
            self._metrics.uncounted(left_out)

    def observe(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        """Keep the outcome of a claim granted here: its tasks need not be read when its events arrive."""
        is_claim = isinstance(command, (ClaimTask, ClaimNext))
        if self._counts and is_claim and isinstance(answer, Outcome) and answer.ok:
            self._answered.append((principal.tenant or self._home, command.project, answer))

    def _mine(self, events: Iterable[Event], *, is_home: bool) -> Iterable[Event]:
        for event in events:
            if event.kind == ELECTED and event.details.get("for") == COORDINATOR:
                if not is_home:
                    continue
                self._counts = event.agent == self._instance
                if self._counts:
                    yield event
            elif self._counts and (event.task is not None or event.kind in _NO_TASK) and event.kind not in _IDLE:
                yield event

    def idle(self, timeout: float) -> bool:
        """Wait until all queued events are counted."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._is_busy, timeout)

    # --- the thread ---

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._is_closing)
                if self._is_closing:
                    return
                page = [self._waiting.popleft() for _ in range(min(PAGE, len(self._waiting)))]
                self._is_busy = True
                has_missed, self._has_missed = self._has_missed, False
            if has_missed or any(event.kind == ELECTED for _, event in page):
                self._caches.clear()
            try:
                self._learn_answers()
                by_tenant: dict[str, list[Event]] = {}
                for tenant, event in page:
                    by_tenant.setdefault(tenant, []).append(event)
                for tenant, events in by_tenant.items():
                    self._count(tenant, events)
            except Exception:  # noqa: BLE001 - a bug here must not stop the counting
                self._metrics.uncounted(len(page))
                self._caches.clear()

    def _cache(self, tenant: str) -> TaskCache:
        found = self._caches.get(tenant)
        if found is None:
            found = self._caches[tenant] = TaskCache()
            if len(self._caches) > limits.METRIC_TENANTS:
                self._caches.popitem(last=False)
        self._caches.move_to_end(tenant)
        return found

    def _learn_answers(self) -> None:
        while self._answered:
            tenant, project, outcome = self._answered.popleft()
            for granted in outcome.claims or (outcome,):
                if granted.task is not None:
                    self._cache(tenant).show(project, granted.task)

    def _count(self, tenant: str, page: Sequence[Event]) -> None:
        cache = self._cache(tenant)
        missing = cache.missing(page)
        try:
            if missing is not None:
                self._engine_of(tenant).read(lambda tx: cache.learn_rows(tx, missing))
        except (StoreError, NotFound):
            cache.forget_rows()  # the counters continue without the missing facts
        for event in page:
            if event.kind != ELECTED:
                self._metrics.event(event, cache.facts_of(event), tenant)
