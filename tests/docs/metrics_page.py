"""The reference page of metrics."""

from __future__ import annotations

from tenure.server.metric_definitions import GROUPS, PER_PROCESS, SAME, SUM, Metric
from tests.docs.tables import table, ticked

INTRODUCTION = """\
# Metrics

`GET /metrics` of [a server](../how-to/run-a-team-server.md), for Prometheus. Beside these it has the `process_…` and
`python_gc_…` metrics of every Python program.

Several servers may share a store. *Over servers* says how a query puts them together, given one `job` for all of them:

| over servers | means | as in |
| --- | --- | --- |
| sum | each server counts its own part, and nothing twice | `sum by (project) (rate(tenure_claims_total[5m]))` |
| same | each reads it from the store they share: take it once | `max by (project) (tenure_pending_tasks)` |
| apart | it is about this one process | `tenure_store_up == 0` |

Label values are bounded: after 100 projects, 200 agents, 20 models, 50 types and 30 classes of failure the rest is
`other`. A series that is not there is 0. `result` is an [outcome](outcomes.md) or the code of an [error](errors.md).
"""
NOTES = {
    "Events in the store": """\
Of agents through any server, and of commands on the store itself. The leading server counts them from the log, so that
each is counted once; the next leader continues. A series that begins with its first event has no `increase` for that
one yet: `(x unless x offset 1h) or increase(x[1h])` counts it.
""",
    "Tasks by state": """\
Read from the store for a scrape, at most every five seconds, and less often where a reading takes long: never more than
a twentieth of the time. While the store is unavailable they are missing, and `tenure_store_up` is 0.
""",
    "Spending and agents": """\
Read from the store for a scrape, at most every 30 seconds, and never more than a twentieth of the time, apart from the
gauges above. A budget of tokens is in `tenure_budget_left`. [Names of other systems](../how-to/read-metrics.md) maps
metrics of other queues and proxies to these.
""",
}


def page() -> str:
    parts = [INTRODUCTION]
    for title, group in GROUPS.items():
        parts.append(f"\n## {title}\n")
        if title in NOTES:
            parts.append("\n" + NOTES[title])
        parts.append(
            "\n" + table(("metric", "kind", "labels", "over servers", "meaning"), [_row(*m) for m in group.items()])
        )
    return "".join(parts)


def _row(name: str, measure: Metric) -> tuple[str, ...]:
    across = {SUM: "sum", SAME: "same", PER_PROCESS: "apart"}[measure.across]
    meaning = measure.meaning
    if measure.buckets:
        meaning += f" (up to {', '.join(f'{bucket:g}' for bucket in measure.buckets)})"
    return f"`{name}`", measure.kind, ticked(measure.labels), across, meaning
