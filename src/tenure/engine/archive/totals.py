"""Totals of tasks without rows: how many a track had, and their usage."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core.records import KINDS, Body, Row, Track, Usage, replace
from tenure.core.usage import named_part
from tenure.engine.runtime.unit_of_work import Patch, UnitOfWork

ARCHIVED = ""  # the task of summed usage
_ADDED = ("fresh", "cached", "written", "output", "duration", "pairs", "confirmed", "rejected")


def stated(rows: Iterable[Row]) -> Patch:
    """For an event: these rows in full, since the events that described them are gone."""
    return tuple(
        (kind.table, row.id, {f: getattr(row, f) for f in row.__struct_fields__ if f not in kind.unlogged})
        for row in rows
        if (kind := KINDS[type(row)]).logged
    )


def count(work: UnitOfWork, project: str, code: str, **more: int) -> Track:
    """Count this many more tasks of the track as archived or deleted."""
    track = work.require(Track, project, code)
    return work.put(replace(track, **{name: getattr(track, name) + by for name, by in more.items()}))


def fold(work: UnitOfWork, rows: Iterable[Usage], sign: int) -> None:
    """Add the usage of archived tasks to the sums of its agent, session, model and operation, or subtract it again.

    Unpriced usage is kept apart, so that it can still be counted.
    """
    for row in rows:
        id = _sum_id(row)
        kept = work.get(Usage, row.project, id)
        if kept is None:
            kept = replace(row, id=id, task=ARCHIVED, generation=0, cost=None, **dict.fromkeys(_ADDED, 0))
        cost = None if row.cost is None else (kept.cost or 0) + sign * row.cost
        added = {name: getattr(kept, name) + sign * getattr(row, name) for name in _ADDED}
        if added["pairs"]:
            work.put(replace(kept, cost=cost, at=max(kept.at, row.at), **added))
        else:
            work.remove(kept)


def use_less(work: UnitOfWork, project: str, bodies: Iterable[str]) -> None:
    """One reference fewer to these large values; a value without references is deleted."""
    for body in work.get_many(Body, project, bodies).values():
        if body.uses > 1:
            work.put(replace(body, uses=body.uses - 1))
        else:
            work.remove(body)


def _sum_id(row: Usage) -> str:
    parts = ["archived", row.agent, row.session, row.model + named_part(row.operation)]
    apart = {"late": row.late, "unpriced": row.cost is None, "computed": row.computed}
    return "|".join([*parts, *(name for name, is_so in apart.items() if is_so)])
