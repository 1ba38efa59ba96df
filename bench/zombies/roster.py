"""The cases: how each tool recovers by its documentation, its settings, and the form of its refusals."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    name: str
    module: str  # in bench/zombies/cases
    store: str  # PostgreSQL, Valkey, SQLite
    recovery: str  # what brings the job to another worker, as documented
    page: str
    refusal: str = ""  # what the tool or its server writes when it refuses a completion, as a regular expression
    package: str = ""
    is_ours: bool = False


ROSTER: tuple[Case, ...] = (
    Case(
        "tenure", "tenure", "SQLite", "the lease of the claim runs out", "claims.md", "STALE_GENERATION", is_ours=True
    ),
    Case(
        "tenure", "tenure", "PostgreSQL", "the lease of the claim runs out", "claims.md", "STALE_GENERATION",
        is_ours=True,
    ),
    Case(
        "Absurd", "absurd", "PostgreSQL", "`claim_timeout` of the worker",
        "https://github.com/earendil-works/absurd/blob/main/docs/concepts.md",
        "has already failed in queue|is not currently running", "absurd-sdk",
    ),
    Case(
        "DBOS", "dbos", "PostgreSQL", "a process with the same executor id starts and recovers pending workflows",
        "https://docs.dbos.dev/production/workflow-recovery",
        "[Cc]onflict|lost ownership|no longer own|another execution|has been superseded", "dbos",
    ),
    Case(
        "Procrastinate", "procrastinate", "PostgreSQL", "heartbeats of workers and the periodic `retry_stalled_jobs`",
        "https://procrastinate.readthedocs.io/en/stable/howto/production/retry_stalled_jobs.html",
        'Job was not found or not in "doing"', "procrastinate",
    ),
    Case(
        "PgQueuer", "pgqueuer", "PostgreSQL", "`heartbeat_timeout` of the worker",
        "https://github.com/janbjorge/pgqueuer/blob/main/docs/guides/heartbeat.md", "", "pgqueuer",
    ),
    Case(
        "pgmq", "pgmq", "PostgreSQL", "the visibility timeout of `read`", "https://pgmq.github.io/pgmq/",
        "archive answered False", "pgmq",
    ),
    Case(
        "SKIP LOCKED loop", "skip_locked", "PostgreSQL", "a column `locked_until`",
        "https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE", "completed 0 row", "psycopg",
    ),
    Case(
        "Celery", "celery", "Valkey", "`task_acks_late` with `visibility_timeout`",
        "https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout", "",
        "celery",
    ),
    Case(
        "dramatiq", "dramatiq", "Valkey", "`heartbeat_timeout` of the broker",
        "https://dramatiq.io/reference.html#dramatiq.brokers.redis.RedisBroker", "", "dramatiq",
    ),
    Case(
        "huey", "huey", "Valkey", "none: tasks are not acknowledged",
        "https://huey.readthedocs.io/en/latest/consumer.html#consumer-shutdown", "", "huey",
    ),
)  # fmt: skip


def title(case: Case) -> str:
    return f"{case.name} ({case.store})"


def chosen(names: str | None) -> tuple[Case, ...]:
    if not names:
        return ROSTER
    words = [word.strip().lower() for word in names.split(",")]
    return tuple(case for case in ROSTER if any(word in title(case).lower() for word in words))
