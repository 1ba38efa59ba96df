"""Whether tasks are where `narrow_rows.py` puts them: the check of the store counts those that are not.

Places are written by the store, not kept by the server as an index is. A ready task that is not in the queue would
never be claimed, a lease without its due block would never expire, and nothing else would show it.
"""
# ruff: noqa: S608 - constants alone

from __future__ import annotations

_SAME = "(({0}) EXCEPT ALL ({1})) UNION ALL (({1}) EXCEPT ALL ({0}))"
_HELD = "(agent IS NOT NULL OR session IS NOT NULL)"
# What a place has, and what it must have.
_PLACES = {
    "the queue": (
        "SELECT space, tenant, lane, band, rank, sequence, id, number, plain FROM {s}queue",
        "SELECT space, tenant, lane, band, rank, sequence, id, number, plain FROM {s}task WHERE lane IS NOT NULL",
    ),
    "held": (
        "SELECT space, tenant, session, number, agent FROM {s}held",
        "SELECT space, tenant, coalesce(session, ''), number, coalesce(agent, '') FROM {s}task WHERE " + _HELD,
    ),
    "standing": (
        "SELECT space, tenant, state, id, number FROM {s}standing",
        (
            "SELECT space, tenant, state, id, number FROM {s}task WHERE NOT CASE WHEN state = 'ready'"
            f" THEN lane IS NOT NULL WHEN state IN ('claimed', 'running') THEN {_HELD} ELSE false END"
        ),
    ),
    "due times": (  # a block outlives its tasks, so only missing ones count
        (
            "SELECT d.space, d.at, n.number FROM {s}due_block AS d, unnest(d.numbers) AS n (number)"
            " JOIN {s}task_hot AS h USING (number) WHERE h.space = d.space AND h.due_at = d.at GROUP BY 1, 2, 3"
        ),
        "SELECT space, due_at, number FROM {s}task_hot WHERE due_at IS NOT NULL",
    ),
    "base rows": ("SELECT space, tenant, number FROM {s}task_base", "SELECT space, tenant, number FROM {s}task_hot"),
    "grants": (  # live and finished claims without a separate row, and the commands that they name
        "SELECT g.space, g.session, g.number, n.number FROM {s}granted AS g, unnest(g.numbers) AS n (number)",
        (
            "SELECT space, session, granted, number FROM {s}task_hot WHERE granted IS NOT NULL"
            " UNION ALL SELECT space, session, granted, number FROM {s}done"
        ),
    ),
    "starts": (  # nothing is queued in front of a lane's start, or held below a session's
        (
            "SELECT q.space, q.number FROM {s}queue AS q JOIN {s}lane_start AS s USING (space, lane)"
            " WHERE (q.band, q.rank, q.sequence) < (s.band, s.rank, s.sequence)"
            " UNION ALL SELECT h.space, h.number FROM {s}held AS h JOIN {s}space AS p ON p.number = h.space"
            " JOIN {s}session AS s ON s.tenant = p.tenant AND s.project = p.project AND s.id = h.session"
            " WHERE h.number < s.held_from"
        ),
        "SELECT NULL::integer, NULL::bigint WHERE false",
    ),
}


def misplaced(schema: str) -> dict[str, str]:
    """Statements that count entries of a place that are wrong or missing; `schema` stands before a table's name."""
    return {
        name: f"SELECT count(*) FROM ({_SAME.format(has, must)}) AS wrong".replace("{s}", schema)
        for name, (has, must) in _PLACES.items()
    }
