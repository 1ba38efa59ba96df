"""Retention of artifacts: bytes without a reference are deleted a day later.

Only bytes that this store has counted are ever deleted: those whose last row was pruned or replaced, and those whose
row was refused. So other users of the same artifact store are not affected.

An upload may be under way while equal bytes are deleted. Therefore the row is first marked for deletion
(`dropped_at`); a put that began before the mark ends is refused and the sender uploads again. A sweep that has not
finished within half of that time leaves the rest to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import artifacts as rules
from tenure.core.errors import TenureError
from tenure.core.filters import Range
from tenure.core.records import Content, replace
from tenure.engine.runtime.effects import PAGE, Report
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine


def is_due(engine: Engine, project: str) -> bool:
    """Whether there is anything to delete or to forget."""
    if engine.context.artifacts is None:
        return False
    return engine.read_settled((), lambda work: bool(_page(work, project)))


def drop(engine: Engine, project: str) -> Report:
    """Delete what has had no reference for a day. An error is confined to one content, which is retried later."""
    report = Report()
    if engine.context.artifacts is None or not is_due(engine, project):
        return report
    began, going = engine.transact((project,), lambda work: _mark(work, project))
    if not going:
        return report
    place = engine.context.artifacts(project)
    gone = []
    for digest in going:
        if engine.read(lambda tx: tx.now) - began > rules.GOING // 2:
            break
        try:
            place.delete(digest)
            gone.append(digest)
        except TenureError as error:
            report.failed[digest] = error.message
    engine.transact((project,), lambda work: _gone(work, project, gone))
    report.settled = len(gone)
    return report


def _page(work: UnitOfWork, project: str) -> list[Content]:
    until = Range(high=work.now - rules.KEPT_IDLE + 1)
    found = work.find(Content, {"project": project, "idle_at": until}, order="idle_at", limit=PAGE)
    return [row for row in found if rules.is_to_drop(row, work.now) or rules.is_forgotten(row, work.now)]


def _mark(work: UnitOfWork, project: str) -> tuple[int, list[str]]:
    """Mark each for deletion; rows of contents deleted long ago are removed."""
    going = []
    for row in _page(work, project):
        if rules.is_forgotten(row, work.now):
            work.remove(row)
        else:
            work.put(replace(row, dropped_at=work.now))
            going.append(row.id)
    return work.now, going


def _gone(work: UnitOfWork, project: str, digests: list[str]) -> None:
    for row in work.get_many(Content, project, digests).values():
        if not row.uses:  # else it was put again since
            work.put(replace(row, gone=True))
