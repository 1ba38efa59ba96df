"""Queries of the log, written so that the planner has no choice.

For the events of one project in order, the planner may read the log of all projects, since that is in order too: fast
where the project is busy, and endless where it is idle. So the bounds and the order are those of the project's index,
which no other index has. Those of all projects of a tenant have the bounds and the order of the primary key: no
statement reads the log of another tenant, and none orders the log without the tenant.
"""
# ruff: noqa: S608 - texts consist of names that were checked against the structs, never of values

from __future__ import annotations

import re
from collections.abc import Sequence

from tenure.core.events import Event
from tenure.core.filters import Range, Where
from tenure.core.ids import time_of
from tenure.stores.postgres.bulk_inserts import given
from tenure.stores.postgres.narrow_rows import space_of
from tenure.stores.sql.statements import Dialect, Statement, conditions, event_table, joined, marks

LAST = (1 << 63) - 1
_PLACE = re.compile(r'("tenant"|"project") =')  # to be hidden from the planner where the time is known


def appending(tenant: str, events: Sequence[Event], dialect: Dialect) -> Statement:
    """Appends them in their order; returns the last sequence, and the transaction."""
    table = event_table(dialect)
    text, values = given(table.codec, events, leave_out="sequence")
    names = ", ".join(f'"{column.name}"' for column in table.codec.columns if column.name != "sequence")
    insert = f'INSERT INTO {table.place} ("tenant", {names}) SELECT ?, g.* FROM ({text}) AS g RETURNING "sequence", xid'
    return f"WITH made AS ({insert}) SELECT max(sequence), min(xid::text) FROM made", [tenant, *values]


def finding(tenant: str, where: Where, after: int, limit: int, last: bool, dialect: Dialect) -> Statement:
    """Events that match, in order or, with `last`, in falling order."""
    table = event_table(dialect)
    project = where.get("project")
    if not isinstance(project, str):
        return _in_order(("tenant",), [tenant], where, after, limit, last, dialect)
    if "task" in where:
        # A task has few events: found by its index and sorted.
        return table.finding(tenant, where, after, limit, last, by='("sequence" + 0)')
    if isinstance(where.get("session"), str):
        return _of_session(tenant, where, after, limit, last, dialect)
    if (made := time_of(str(where.get("causation_id")))) is not None:
        at = Range(made * 1000, (made + 1) * 1000)
        text, values = table.finding(tenant, {**where, "time": at}, after, limit, last, by='("sequence" + 0)')
        return _PLACE.sub(r"(\1 || '') =", text), values
    others = {field: wanted for field, wanted in where.items() if field != "project"}
    return _in_order(("project", "tenant"), [project, tenant], others, after, limit, last, dialect)


def _in_order(
    prefix: Sequence[str],
    within: Sequence[str],
    where: Where,
    after: int,
    limit: int,
    last: bool,
    dialect: Dialect,
) -> Statement:
    """By the index whose columns are `prefix` and the sequence, where `prefix` has the values `within`."""
    table = event_table(dialect)
    clauses, values = conditions(table.codec, where, dialect)
    names = [f'"{name}"' for name in (*prefix, "sequence")]
    place, bound = f"({', '.join(names)})", f"({marks(len(names))})"
    bounds = [f"{place} > {bound}", f"{place} <= {bound}", *clauses]
    order = ", ".join(f"{name} DESC" if last else name for name in names)
    text = f"{table.select} WHERE {' AND '.join(bounds)} ORDER BY {order} LIMIT ?"
    return text, [*within, after, *within, LAST, *values, limit]


def _of_session(tenant: str, where: Where, after: int, limit: int, last: bool, dialect: Dialect) -> Statement:
    """Events of its claims are found by the tasks that it claimed, the others by their index."""
    table = event_table(dialect)
    clauses, values = conditions(table.codec, where, dialect)
    both = joined(clauses)
    text = (
        f'{table.select} WHERE {both} AND "sequence" > ? AND NOT of_claim'
        f' UNION ALL {table.select} WHERE {both} AND "sequence" + 0 > ? AND of_claim AND task = ANY('
        f"ARRAY(SELECT task FROM {dialect.schema}claim_row WHERE tenant = ? AND project = ? AND session = ?"
        f" UNION ALL SELECT task FROM {dialect.schema}claim_narrow WHERE session = ?"
        f" AND space = {space_of(dialect.schema, '?', '?')}))"
        f' ORDER BY "sequence"{" DESC" if last else ""} LIMIT ?'
    )
    mine = [tenant, *values, after]
    project, session = where["project"], where["session"]
    return text, [*mine, *mine, tenant, project, session, session, tenant, project, limit]
