"""Rows that name a task that does not exist: the check of every SQL store counts them."""

from __future__ import annotations

_REFERENCES = (
    ("brief", "id"),
    ("claim", "task"),
    ("edge", "task"),
    ("edge", "needs"),
    ("result", "task"),
    ("checkpoint", "id"),
    ("dead_letter", "task"),
)


def orphans(schema: str = "") -> dict[str, str]:
    """Statements that count them, by table and column; `schema` stands before a table's name."""
    return {
        f"{table}.{field}": f"SELECT count(*) FROM {schema}{table} AS r WHERE "  # noqa: S608 - constants
        + " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {schema}{place} AS t"  # noqa: S608 - constants
            f" WHERE t.tenant = r.tenant AND t.project = r.project AND t.id = r.{field})"
            # a dependency may have been archived before the task that waited for it
            for place in (("task", "archived") if field == "needs" else ("task",))
        )
        for table, field in _REFERENCES
    }
