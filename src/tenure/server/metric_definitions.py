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


# Requests to this server, counted with their responses.
REQUESTS: dict[str, Metric] = {
    "tenure_claims_total": Metric(
        COUNTER, SUM, (*WHERE, "result"), "claim requests, by outcome or error; each granted task counts"
    ),
    "tenure_claim_conflicts_total": Metric(
        COUNTER, SUM, (*WHERE, "reason"), "claims denied because of another's claim, reservation or offer"
    ),
    "tenure_results_total": Metric(COUNTER, SUM, (*WHERE, "result"), "results submitted, by outcome or error"),
    "tenure_lease_renewals_total": Metric(COUNTER, SUM, (*WHERE, "result"), "renewals of claims, by outcome or error"),
    "tenure_commands_total": Metric(
        COUNTER, SUM, ("command", "role", "result"), "commands by kind, role of the caller, and outcome or error"
    ),
    "tenure_command_seconds": Metric(
        HISTOGRAM, SUM, ("command",), "seconds that a command took, without waiting for work", QUICK
    ),
    "tenure_http_requests_total": Metric(COUNTER, SUM, ("method", "route", "status"), "HTTP requests"),
    "tenure_http_request_seconds": Metric(
        HISTOGRAM,
        SUM,
        ("method", "route"),
        "seconds from a request to the end of its response, including waits",
        QUICK,
    ),
    "tenure_held_requests": Metric(GAUGE, SUM, ("kind",), "open requests that wait for claims, events or news"),
    "tenure_store_errors_total": Metric(COUNTER, SUM, ("code",), "errors of the store"),
    "tenure_connection_errors_total": Metric(
        COUNTER, SUM, ("target",), "failed connections to the store or another service, and lost responses"
    ),
}

# Events in the store, whatever caused them: the leading server counts them from the log.
EVENTS: dict[str, Metric] = {
    "tenure_generation_increments_total": Metric(COUNTER, SUM, WHERE, "claims granted"),
    "tenure_lease_expirations_total": Metric(COUNTER, SUM, WHERE, "leases that expired"),
    "tenure_claims_ended_total": Metric(COUNTER, SUM, (*WHERE, "reason"), "claims that ended, by reason"),
    "tenure_claim_duration_seconds": Metric(
        HISTOGRAM, SUM, WHERE, "seconds from a claim to its end", (1, 5, 15, 60, 300, 900, 3600)
    ),
    "tenure_tasks_completed_total": Metric(COUNTER, SUM, (*WHERE, "type"), "tasks completed"),
    "tenure_task_completion_seconds": Metric(
        HISTOGRAM,
        SUM,
        WHERE,
        "seconds from the first claim of a run to the accepted result",
        (10, 60, 300, 900, 3600, 7200),
    ),
    "tenure_task_latency_seconds": Metric(
        HISTOGRAM, SUM, WHERE, "seconds from the creation of a task to its accepted result", LONG
    ),
    "tenure_task_wait_seconds": Metric(HISTOGRAM, SUM, WHERE, "seconds from ready to claimed", LONG),
    "tenure_generations_per_task": Metric(
        HISTOGRAM, SUM, WHERE, "generations until a result was accepted", (1, 2, 3, 5, 10, 20, 50)
    ),
    "tenure_attempts_failed_total": Metric(
        COUNTER, SUM, (*WHERE, "type", "error_class"), "failed attempts, by the error class that the holder gave"
    ),
    "tenure_retries_total": Metric(COUNTER, SUM, (*WHERE, "error_class"), "retries scheduled"),
    "tenure_dead_letters_total": Metric(
        COUNTER, SUM, (*WHERE, "type", "reason"), "tasks dead-lettered, by the class of the last failure"
    ),
    "tenure_heartbeat_misses_total": Metric(COUNTER, SUM, WHERE, "agents that became stale"),
    "tenure_events_uncounted_total": Metric(
        COUNTER,
        SUM,
        (),
        "events missing in the counters of this group: they arrived too fast, or their rows were unavailable",
    ),
}

# Read from the store at most every few seconds: the same on each server.
STORE_GAUGES: dict[str, Metric] = {
    "tenure_pending_tasks": Metric(GAUGE, SAME, WHERE, "tasks that wait: pending, ready or retrying"),
    "tenure_active_claims": Metric(GAUGE, SAME, WHERE, "tasks that are claimed or running"),
    "tenure_completed_tasks": Metric(GAUGE, SAME, WHERE, "completed tasks, including the archive"),
    "tenure_queue_depth": Metric(
        GAUGE, SAME, (*WHERE, "state", "tier"),
        "open tasks; the tier is `any` where a project has more than 100,000 and the state more than 500",
    ),
    "tenure_oldest_ready_seconds": Metric(
        GAUGE, SAME, WHERE, "seconds that the oldest ready task waits, among the hundred created first"
    ),
    "tenure_clock_behind_seconds": Metric(
        GAUGE, SAME, WHERE, "seconds that the clock is behind the store's time, which never goes back by itself"
    ),
    "tenure_overdue_tasks": Metric(
        GAUGE, SAME, WHERE, "due tasks that are not settled yet, at most 10,000"
    ),
    "tenure_overdue_retries": Metric(
        GAUGE, SAME, WHERE, "due retries that are not ready yet, at most 10,000"
    ),
    "tenure_archive_held_back": Metric(
        GAUGE, SAME, (*WHERE, "reader"), "seconds since the first event that a reader of the log has not read: "
        "later events stay out of the archive; 0 if it has read all"
    ),
    "tenure_agents": Metric(GAUGE, SAME, (*WHERE, "status"), "agents active in the last day, by status"),
    "tenure_budget_allocated": Metric(
        GAUGE, SAME, (*WHERE, "currency"), "the project's budget of this period, in dollars or tokens"
    ),
    "tenure_budget_spent": Metric(GAUGE, SAME, (*WHERE, "currency"), "the part that is spent"),
    "tenure_budget_reserved": Metric(GAUGE, SAME, (*WHERE, "currency"), "the part that live claims reserve"),
    "tenure_budget_left": Metric(
        GAUGE, SAME, (*WHERE, "currency"), "the part that is neither spent nor reserved; negative after an overrun"
    ),
    "tenure_stale_agents": Metric(GAUGE, SAME, WHERE, "agents that became stale in the last day"),
}  # fmt: skip

# Values of this process.
OWN: dict[str, Metric] = {
    "tenure_build": Metric(GAUGE, PER_PROCESS, ("version", "python"), "always 1; the labels have the versions"),
    "tenure_store_up": Metric(GAUGE, PER_PROCESS, (), "1 while the store responds"),
    "tenure_store_read_seconds": Metric(
        GAUGE, PER_PROCESS, (), "seconds that the last read of the store for metrics took"
    ),
    "tenure_coordinator_leader": Metric(GAUGE, PER_PROCESS, (), "1 on the leader"),
    "tenure_coordinator_term": Metric(GAUGE, PER_PROCESS, (), "the last term of this server as leader"),
    "tenure_coordinator_cycle_seconds": Metric(
        HISTOGRAM, SUM, (), "seconds that a cycle of the coordinator took", QUICK
    ),
    "tenure_coordinator_cycles_total": Metric(
        COUNTER, SUM, ("result",), "cycles of the coordinator, by result: ok or failed"
    ),
    "tenure_coordinator_last_cycle_age_seconds": Metric(
        GAUGE, PER_PROCESS, (), "seconds since the last successful cycle, or since the start"
    ),
    "tenure_settled_total": Metric(COUNTER, SUM, (), "rows that the coordinator settled"),
    "tenure_unsettled_total": Metric(COUNTER, SUM, (), "rows that the coordinator could not settle: a bug, and logged"),
}

GROUPS: dict[str, dict[str, Metric]] = {
    "Requests to this server": REQUESTS,
    "Events in the store": EVENTS,
    "Tasks by state": STORE_GAUGES,
    "This process": OWN,
}
METRICS: dict[str, Metric] = {name: m for group in GROUPS.values() for name, m in group.items()}
