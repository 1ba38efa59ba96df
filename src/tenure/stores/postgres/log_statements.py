"""Questions to the log, written so that the planner has no choice.

Asked for the events of one project in their order, it may walk the log of all projects, since that is in order too:
quick where the project is busy, and without end where it sleeps. So the bounds and the order are those of the
project's own index, which no other index can give.
"""
# ruff: noqa: S608 - texts are made of the structs' names and of what `clauses` has checked, never of values

from __future__ import annotations

import re
from collections.abc import Collection

from tenure.core.filters import Range, Where
from tenure.core.ids import time_of
from tenure.stores.sql.clauses import Dialect, conditions
from tenure.stores.sql.statements import Statement, event_table

LAST = (1 << 63) - 1
_PLACE = re.compile(r'("tenant"|"project") =')  # of no help where the time is known, and must not look like one


def finding(tenant: str, where: Where, after: int, limit: int, last: bool, dialect: Dialect) -> Statement | None:
    """Events that match, in order or, with `last`, in falling order; None where nothing can match."""
    table = event_table(dialect)
    project = where.get("project")
    if not isinstance(project, str):
        return table.finding(tenant, where, after, limit, last)
    if "task" in where:
        # A task has few events: found by it and sorted, never walked to in the log of all.
        return table.finding(tenant, where, after, limit, last, by='("sequence" + 0)')
    if isinstance(where.get("session"), str):
        return _of_session(tenant, where, after, limit, last, dialect)
    if (made := time_of(str(where.get("causation_id")))) is not None:
        at = Range(made * 1000, (made + 1) * 1000)
        asked = table.finding(tenant, {**where, "time": at}, after, limit, last, by='("sequence" + 0)')
        return asked and (_PLACE.sub(r"(\1 || '') =", asked[0]), asked[1])
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


def _of_session(tenant: str, where: Where, after: int, limit: int, last: bool, dialect: Dialect) -> Statement | None:
    """Those of its claims by the tasks that it claimed, the others by their own index."""
    table = event_table(dialect)
    found = conditions(table.codec, where, dialect)
    if found is None:
        return None
    clauses, values = found
    both = " AND ".join(['"tenant" = ?', *clauses])
    text = (
        f'{table.select} WHERE {both} AND "sequence" > ? AND NOT of_claim'
        f' UNION ALL {table.select} WHERE {both} AND "sequence" + 0 > ? AND of_claim AND task = ANY('
        f"ARRAY(SELECT task FROM {dialect.schema}claim WHERE tenant = ? AND project = ? AND session = ?))"
        f' ORDER BY "sequence"{" DESC" if last else ""} LIMIT ?'
    )
    mine = [tenant, *values, after]
    return text, [*mine, *mine, tenant, where["project"], where["session"], limit]


def dropping(tenant: str, project: str, tasks: Collection[str], last: int, dialect: Dialect) -> Statement:
    """Removes the events of these tasks, but not the project's last; `+` keeps the planner from any other way."""
    place = event_table(dialect).place
    text = f'DELETE FROM {place} WHERE tenant = ? AND project = ? AND task = ANY(?) AND "sequence" + 0 < ?'
    return text, [tenant, project, list(dict.fromkeys(tasks)), last]
