"""Every metric, one line each: the one table. Registry, reference page and the tests of rules and dashboards go by it.

`across` says how a query puts several servers of one store together: what each counts for itself is summed up, what
each reads from the store they share is the same everywhere and is not, and what is of the process stays apart.
"""

from __future__ import annotations

from typing import NamedTuple

SUM, SAME, APART = "sum", "same", "apart"
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

WHERE = ("tenant", "project")
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG = (1, 5, 15, 60, 300, 900, 3600, 14400, 86400)


class Measure(NamedTuple):
    kind: str
    across: str
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()


# What came through this server, counted as it was answered.
ANSWERED: dict[str, Measure] = {
    "tenure_claims_total": Measure(
        COUNTER, SUM, (*WHERE, "result"), "claims asked for, by outcome or error; each task granted counts"
    ),
    "tenure_claim_conflicts_total": Measure(
        COUNTER, SUM, (*WHERE, "reason"), "claims denied because of another's claim, reservation or offer"
    ),
    "tenure_results_total": Measure(COUNTER, SUM, (*WHERE, "result"), "results handed in, by outcome or error"),
    "tenure_lease_renewals_total": Measure(COUNTER, SUM, (*WHERE, "result"), "renewals of claims, by outcome or error"),
    "tenure_commands_total": Measure(
        COUNTER, SUM, ("command", "role", "result"), "commands of every kind, by who asked and outcome or error"
    ),
    "tenure_command_seconds": Measure(
        HISTOGRAM, SUM, ("command",), "how long a command took; waiting for work is no part of it", QUICK
    ),
    "tenure_http_requests_total": Measure(COUNTER, SUM, ("method", "route", "status"), "HTTP requests answered"),
    "tenure_http_request_seconds": Measure(
        HISTOGRAM,
        SUM,
        ("method", "route"),
        "from a request's arrival to the end of its answer, however long it waited",
        QUICK,
    ),
    "tenure_held_requests": Measure(
        GAUGE, SUM, ("kind",), "requests that wait for something to happen: claims, events, news"
    ),
    "tenure_store_errors_total": Measure(COUNTER, SUM, ("code",), "times that the store could not do its part"),
    "tenure_connection_errors_total": Measure(
        COUNTER, SUM, ("target",), "times that something this server needs could not be reached, or an answer was lost"
    ),
}

# What happened in the store, whoever did it: counted from the log by the server that leads.
HAPPENED: dict[str, Measure] = {
    "tenure_generation_increments_total": Measure(COUNTER, SUM, WHERE, "claims granted: generations that began"),
    "tenure_lease_expirations_total": Measure(COUNTER, SUM, WHERE, "leases that ran out before the holder's word"),
    "tenure_claims_ended_total": Measure(COUNTER, SUM, (*WHERE, "reason"), "claims that ended, and how"),
    "tenure_claim_duration_seconds": Measure(
        HISTOGRAM, SUM, WHERE, "from a claim to its end, however it ended", (1, 5, 15, 60, 300, 900, 3600)
    ),
    "tenure_tasks_completed_total": Measure(COUNTER, SUM, (*WHERE, "type"), "tasks whose result was accepted"),
    "tenure_task_completion_seconds": Measure(
        HISTOGRAM, SUM, WHERE, "from the first claim of a run to the accepted result", (10, 60, 300, 900, 3600, 7200)
    ),
    "tenure_task_latency_seconds": Measure(HISTOGRAM, SUM, WHERE, "from a task's making to its accepted result", LONG),
    "tenure_task_wait_seconds": Measure(HISTOGRAM, SUM, WHERE, "from ready to claimed", LONG),
    "tenure_generations_per_task": Measure(
        HISTOGRAM, SUM, WHERE, "generations that it took until a result was accepted", (1, 2, 3, 5, 10, 20, 50)
    ),
    "tenure_attempts_failed_total": Measure(
        COUNTER, SUM, (*WHERE, "type", "error_class"), "attempts that failed, by the class that their holder gave"
    ),
    "tenure_retries_total": Measure(
        COUNTER, SUM, (*WHERE, "error_class"), "tasks put back to be tried again after a while"
    ),
    "tenure_dead_letters_total": Measure(
        COUNTER, SUM, (*WHERE, "type", "reason"), "tasks that ran out of attempts, by the last failure's class"
    ),
    "tenure_heartbeat_misses_total": Measure(COUNTER, SUM, WHERE, "agents found silent for longer than they promised"),
    "tenure_events_uncounted_total": Measure(
        COUNTER, SUM, (), "events that the numbers of this group leave out, since they came too fast or rows were away"
    ),
}

# What the store says when it is asked, at most every few seconds: the same on each server.
STANDING: dict[str, Measure] = {
    "tenure_pending_tasks": Measure(GAUGE, SAME, WHERE, "tasks that wait to be worked on: pending, ready, retrying"),
    "tenure_active_claims": Measure(GAUGE, SAME, WHERE, "tasks that are held"),
    "tenure_completed_tasks": Measure(GAUGE, SAME, WHERE, "tasks that are completed, the archive included"),
    "tenure_queue_depth": Measure(
        GAUGE, SAME, (*WHERE, "state", "tier"),
        "open tasks; the tier is `any` where a project has more than 100,000 and the state more than 500",
    ),
    "tenure_oldest_ready_seconds": Measure(
        GAUGE, SAME, WHERE, "how long the longest waiting has been ready, of the hundred made first"
    ),
    "tenure_clock_behind_seconds": Measure(
        GAUGE, SAME, WHERE, "how far the clock is behind the store's time, which never goes back by itself"
    ),
    "tenure_overdue_tasks": Measure(
        GAUGE, SAME, WHERE, "tasks that fell due and were not settled yet, counted no further than 10,000"
    ),
    "tenure_overdue_retries": Measure(
        GAUGE, SAME, WHERE, "retries that fell due and were not promoted yet, counted no further than 10,000"
    ),
    "tenure_archive_held_back": Measure(
        GAUGE, SAME, (*WHERE, "reader"), "seconds since the first event that a reader of the log has not passed: "
        "what came later stays out of the archive; 0 where it has passed all"
    ),
    "tenure_agents": Measure(GAUGE, SAME, (*WHERE, "status"), "agents heard of in the last day"),
    "tenure_budget_allocated": Measure(
        GAUGE, SAME, (*WHERE, "currency"), "what the project may spend in this period, in dollars or tokens"
    ),
    "tenure_budget_spent": Measure(GAUGE, SAME, (*WHERE, "currency"), "what of it is spent"),
    "tenure_budget_reserved": Measure(GAUGE, SAME, (*WHERE, "currency"), "what of it claims that live hold"),
    "tenure_budget_left": Measure(
        GAUGE, SAME, (*WHERE, "currency"), "what of it is neither spent nor reserved; below nought after an overrun"
    ),
    "tenure_stale_agents": Measure(GAUGE, SAME, WHERE, "agents silent for longer than they promised, in the last day"),
}  # fmt: skip

# What is of this process.
OWN: dict[str, Measure] = {
    "tenure_build": Measure(GAUGE, APART, ("version", "python"), "always 1; the labels say what runs"),
    "tenure_store_up": Measure(GAUGE, APART, (), "1 while the store answers"),
    "tenure_store_read_seconds": Measure(GAUGE, APART, (), "how long the last look at the store for metrics took"),
    "tenure_coordinator_leader": Measure(GAUGE, APART, (), "1 on the server that leads"),
    "tenure_coordinator_term": Measure(GAUGE, APART, (), "the term in which this server leads or led last"),
    "tenure_coordinator_cycle_seconds": Measure(HISTOGRAM, SUM, (), "how long a cycle of the coordinator took", QUICK),
    "tenure_coordinator_cycles_total": Measure(COUNTER, SUM, ("result",), "cycles of the coordinator: ok or failed"),
    "tenure_coordinator_last_cycle_age_seconds": Measure(
        GAUGE, APART, (), "since the last cycle that went well, or since the start"
    ),
    "tenure_settled_total": Measure(COUNTER, SUM, (), "rows that the coordinator brought up to date"),
    "tenure_unsettled_total": Measure(COUNTER, SUM, (), "rows that it could not: our fault, and logged"),
}

GROUPS: dict[str, dict[str, Measure]] = {
    "What this server answered": ANSWERED,
    "What happened in the store": HAPPENED,
    "How much stands where": STANDING,
    "This process": OWN,
}
MEASURES: dict[str, Measure] = {name: m for group in GROUPS.values() for name, m in group.items()}
