"""Rows that speak of a task that is not there: what every SQL store counts when it is checked."""

from __future__ import annotations

# What a task waited for may have been archived before it.
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
        f"{table}.{field}": f"SELECT count(*) FROM {schema}{table} AS r WHERE "  # noqa: S608 - constants
        + " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {schema}{place} AS t"  # noqa: S608 - constants
            f" WHERE t.tenant = r.tenant AND t.project = r.project AND t.id = r.{field})"
            for place in (("task", "archived") if field == "needs" else ("task",))
        )
        for table, field in _SPEAKERS
    }
