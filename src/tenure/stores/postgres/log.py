"""Questions to the log, written so that the planner has no choice.

Asked for the events of one project in their order, it may walk the log of all projects, since that is in order too:
quick where the project is busy, and without end where it sleeps. So the bounds and the order are those of the
project's own index, which no other index can give.
"""

from __future__ import annotations

from tenure.core.filters import Where
from tenure.stores.sql.clauses import Dialect, conditions
from tenure.stores.sql.statements import Statement, event_table

_OWN_INDEX = {"task", "session", "causation_id"}
LAST = (1 << 63) - 1


def finding(tenant: str, where: Where, after: int, limit: int, last: bool, dialect: Dialect) -> Statement | None:
    """Events that match, in order or, with `last`, in falling order; None where nothing can match."""
    table = event_table(dialect)
    project = where.get("project")
    if not isinstance(project, str) or _OWN_INDEX & where.keys():
        # A task has few events: found by it and sorted, never walked to in the log of all.
        by = '("sequence" + 0)' if isinstance(project, str) and "task" in where else '"sequence"'
        return table.finding(tenant, where, after, limit, last, by=by)
    found = conditions(table.codec, {field: wanted for field, wanted in where.items() if field != "project"}, dialect)
    if found is None:
        return None
    clauses, values = found
    place = '("tenant", "project", "sequence")'
    bounds = [f"{place} > (?, ?, ?)", f"{place} <= (?, ?, ?)", *clauses]
    way = " DESC" if last else ""
    text = (
        f'{table.select} WHERE {" AND ".join(bounds)} ORDER BY "tenant"{way}, "project"{way}, "sequence"{way} LIMIT ?'
    )
    return text, [tenant, project, after, tenant, project, LAST, *values, limit]
