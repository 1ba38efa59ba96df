"""Where a handler keeps its result when the tool keeps none: a table of the application, the last writer wins."""

from __future__ import annotations

import psycopg


def make(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as link:
        link.execute("CREATE TABLE own_result (job text PRIMARY KEY, value text NOT NULL)")


def write(url: str, value: str) -> None:
    with psycopg.connect(url, autocommit=True) as link:
        link.execute(
            "INSERT INTO own_result VALUES ('job', %s) ON CONFLICT (job) DO UPDATE SET value = excluded.value", (value,)
        )


def read(url: str) -> str | None:
    with psycopg.connect(url) as link:
        row = link.execute("SELECT value FROM own_result").fetchone()
    return None if row is None else str(row[0])
