"""Every metric, one line each. The registry, the reference page and the tests of rules and dashboards use this table.

`across` says how a query combines several servers of one store: counts of each server are summed, values read from the
shared store are the same on all, and values of the process stay separate.
"""

from __future__ import annotations

from typing import NamedTuple

SUM, SAME, PER_PROCESS = "sum", "same", "apart"
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

WHERE = ("tenant", "project")
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG = (1, 5, 15, 60, 300, 900, 3600, 14400, 86400)


class Metric(NamedTuple):
    kind: str
    across: str
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()


def counter(meaning: str, *labels: str) -> Metric:
    return Metric(COUNTER, SUM, labels, meaning)


def gauge(meaning: str, *labels: str, across: str = PER_PROCESS) -> Metric:
    return Metric(GAUGE, across, labels, meaning)


def store_gauge(meaning: str, *labels: str) -> Metric:
    return Metric(GAUGE, SAME, (*WHERE, *labels), meaning)


def store_counter(meaning: str, *labels: str) -> Metric:
    return Metric(COUNTER, SAME, (*WHERE, *labels), meaning)


def histogram(meaning: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(HISTOGRAM, SUM, labels, meaning, buckets)


# Requests to this server, counted with their responses.
REQUESTS = {
    "tenure_claims_total": counter("claim requests, by outcome or error; each granted task counts", *WHERE, "result"),
    "tenure_agent_claims_total": counter("claim requests of an agent, by outcome or error", *WHERE, "agent", "result"),
    "tenure_claim_conflicts_total": counter(
        "claims denied because of another's claim, reservation or offer", *WHERE, "reason"
    ),
    "tenure_results_total": counter("results submitted, by outcome or error", *WHERE, "result"),
    "tenure_lease_renewals_total": counter("renewals of claims, by outcome or error", *WHERE, "result"),
    "tenure_commands_total": counter(
        "commands by kind, role of the caller, and outcome or error", "command", "role", "result"
    ),
    "tenure_command_seconds": histogram("seconds that a command took, without waiting for work", QUICK, "command"),
    "tenure_http_requests_total": counter("HTTP requests", "method", "route", "status"),
    "tenure_http_request_seconds": histogram(
        "seconds from a request to the end of its response, including waits", QUICK, "method", "route"
    ),
    "tenure_held_requests": gauge("open requests that wait for claims, events or news", "kind", across=SUM),
    "tenure_store_errors_total": counter("errors of the store", "code"),
    "tenure_connection_errors_total": counter(
        "failed connections to the store or another service, and lost responses", "target"
    ),
}

# Events in the store, whatever caused them: the leading server counts them from the log.
EVENTS = {
    "tenure_generation_increments_total": counter("claims granted", *WHERE),
    "tenure_lease_expirations_total": counter("leases that expired", *WHERE),
    "tenure_claims_ended_total": counter("claims that ended, by reason", *WHERE, "reason"),
    "tenure_claim_duration_seconds": histogram(
        "seconds from a claim to its end", (1, 5, 15, 60, 300, 900, 3600), *WHERE
    ),
    "tenure_tasks_completed_total": counter("tasks completed", *WHERE, "type"),
    "tenure_task_completion_seconds": histogram(
        "seconds from the first claim of a run to the accepted result", (10, 60, 300, 900, 3600, 7200), *WHERE
    ),
    "tenure_task_latency_seconds": histogram(
        "seconds from the creation of a task to its accepted result", LONG, *WHERE
    ),
    "tenure_task_wait_seconds": histogram("seconds from ready to claimed", LONG, *WHERE),
    "tenure_generations_per_task": histogram(
        "generations until a result was accepted", (1, 2, 3, 5, 10, 20, 50), *WHERE
    ),
    "tenure_attempts_failed_total": counter(
        "failed attempts, by the error class that the holder gave", *WHERE, "type", "error_class"
    ),
    "tenure_retries_total": counter("retries scheduled", *WHERE, "error_class"),
    "tenure_dead_letters_total": counter(
        "tasks that became dead letters, by the class of the last failure", *WHERE, "type", "reason"
    ),
    "tenure_heartbeat_misses_total": counter("agents that became stale", *WHERE),
    "tenure_agent_heartbeat_misses_total": counter("times that an agent became stale", *WHERE, "agent"),
    "tenure_agents_spawned_total": counter("agents that pools asked a spawner for", *WHERE, "pool"),
    "tenure_spawns_ended_total": counter(
        "spawns that are over, by their last state and whether they had claimed a task",
        *WHERE,
        "pool",
        "state",
        "claimed",
    ),
    "tenure_events_uncounted_total": counter(
        "events missing in the counters of this group: they arrived too fast, or their rows were unavailable"
    ),
}

# Read from the store at most every few seconds: the same on each server.
STORE_GAUGES = {
    "tenure_pending_tasks": store_gauge("tasks that wait: pending, ready or retrying"),
    "tenure_active_claims": store_gauge("tasks that are claimed or running"),
    "tenure_completed_tasks": store_gauge("completed tasks, including the archive"),
    "tenure_queue_depth": store_gauge(
        "open tasks; the tier is `any` where a project has more than 100,000 and the state more than 500",
        "state",
        "tier",
    ),
    "tenure_oldest_ready_seconds": store_gauge(
        "seconds that the oldest ready task waits, among the hundred created first"
    ),
    "tenure_clock_behind_seconds": store_gauge(
        "seconds that the clock is behind the store's time, which never goes back by itself"
    ),
    "tenure_overdue_tasks": store_gauge("due tasks that are not settled yet, at most 10,000"),
    "tenure_overdue_retries": store_gauge("due retries that are not ready yet, at most 10,000"),
    "tenure_archive_held_back": store_gauge(
        "seconds since the first event that a reader of the log has not read: "
        "later events stay out of the archive; 0 if it has read all",
        "reader",
    ),
    "tenure_unsealed_events": store_gauge(
        "events younger than the last seal, at most 10,000, in projects that are audited"
    ),
    "tenure_agents": store_gauge("agents active in the last day, by status", "status"),
    "tenure_budget_allocated": store_gauge("the project's budget of this period, in dollars or tokens", "currency"),
    "tenure_budget_spent": store_gauge("the part that is spent", "currency"),
    "tenure_budget_reserved": store_gauge("the part that live claims reserve", "currency"),
    "tenure_budget_left": store_gauge(
        "the part that is neither spent nor reserved; negative after an overrun", "currency"
    ),
    "tenure_pool_size": store_gauge("places of a pool that is not paused", "pool"),
    "tenure_spawns": store_gauge("live processes of a pool, by state: starting or running", "pool", "state"),
    "tenure_stale_agents": store_gauge("agents that became stale in the last day"),
}

# Read from the store about twice a minute: the same on each server. Totals never fall, so their rate can be taken.
SPENDING = {
    "tenure_cost_usd_total": store_counter("reported cost in dollars, including late reports", "agent", "model"),
    "tenure_tokens_total": store_counter(
        "reported tokens: `fresh` and `cached` input, input `written` to a cache, `output`", "type", "agent", "model"
    ),
    "tenure_spend_today_usd": store_gauge("cost in dollars of the claims that reported usage since midnight UTC"),
    "tenure_budget_remaining_usd": store_gauge(
        "dollars of a budget that are neither spent nor reserved: of the tenant, the project, an agent or a dag",
        "scope",
        "name",
    ),
    "tenure_agent_utilization": store_gauge(
        "the part of its places that an agent used in the last 15 minutes, from 0 to 1", "agent"
    ),
}

# Sinks: their places are read from the store, the same on each server.
SINK_GAUGES = {
    "tenure_relay_lag_events": gauge(
        "events of the log that the sink has not passed, for it or not", "tenant", "sink", across=SAME
    ),
    "tenure_relay_lag_seconds": gauge(
        "seconds since the oldest event that is not sent; 0 if all are", "tenant", "sink", across=SAME
    ),
}
# Counted by the leading server.
RELAYS = {
    "tenure_relay_sent_total": counter("messages that the sink has acknowledged", "sink"),
    "tenure_relay_errors_total": counter("failed attempts to send to the sink", "sink"),
    "tenure_consumer_lag": gauge(
        "messages that the consumers of the sink have not acknowledged, where the sink knows", "sink", across=SUM
    ),
}

# Values of this process.
OWN = {
    "tenure_build": gauge("always 1; the labels have the versions", "version", "python"),
    "tenure_workers": gauge("processes of this server", across=SUM),
    "tenure_store_up": gauge("1 while the store responds"),
    "tenure_store_answer_age_seconds": gauge("seconds since the store last answered, or since the start"),
    "tenure_store_read_seconds": gauge("seconds that the last read of the store for metrics took"),
    "tenure_coordinator_leader": gauge("1 on the leader"),
    "tenure_coordinator_term": gauge("the last term of this server as leader"),
    "tenure_coordinator_cycle_seconds": histogram("seconds that a cycle of the coordinator took", QUICK),
    "tenure_coordinator_cycles_total": counter("cycles of the coordinator, by result: ok or failed", "result"),
    "tenure_coordinator_last_cycle_age_seconds": gauge("seconds since the last successful cycle, or since the start"),
    "tenure_settled_total": counter("rows that the coordinator settled"),
    "tenure_unsettled_total": counter("rows that the coordinator could not settle: a bug, and logged"),
}

GROUPS: dict[str, dict[str, Metric]] = {
    "Requests to this server": REQUESTS,
    "Events in the store": EVENTS,
    "Tasks by state": STORE_GAUGES,
    "Spending and agents": SPENDING,
    "Sinks": SINK_GAUGES | RELAYS,
    "This process": OWN,
}
METRICS: dict[str, Metric] = {name: m for group in GROUPS.values() for name, m in group.items()}
