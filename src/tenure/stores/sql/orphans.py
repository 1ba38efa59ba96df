"""Rows that speak of a task that is not there: what every SQL store counts when it is checked."""

from __future__ import annotations

_SPEAKERS = (
    ("brief", "id"),
    ("claim", "task"),
    ("edge", "task"),
    ("edge", "needs"),
    ("result", "task"),
    ("checkpoint", "id"),
    ("dead_letter", "task"),
)


def orphans(schema: str = "") -> dict[str, str]:
    """Statements that count them, by what they are about; `schema` stands before a table's name."""
    return {
        f"{table}.{field}": f"SELECT count(*) FROM {schema}{table} AS r WHERE NOT EXISTS"  # noqa: S608 - constants
        f" (SELECT 1 FROM {schema}task AS t WHERE t.tenant = r.tenant AND t.project = r.project AND t.id = r.{field})"
        for table, field in _SPEAKERS
    }
