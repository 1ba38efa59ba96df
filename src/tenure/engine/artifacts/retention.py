"""Retention of artifacts: bytes that no row refers to any more are deleted, a day later.

Only what this store has counted is ever deleted: bytes whose last row went with a pruned task or was replaced, and
those whose row was refused. So nothing of anybody else who uses the same place is touched.

A put may be on its way while its bytes are deleted: they are the same as some that nobody needed. Therefore the row
first says that a sweep goes to delete them (`dropped_at`), and a put that began before that is over is refused its row
and sends them again. A sweep that did not get through within half of that time leaves the rest to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import artifacts as rules
from tenure.core.errors import TenureError
from tenure.core.filters import Range
from tenure.core.records import Content, replace
from tenure.engine.runtime.settle import PAGE, Report
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine


def is_due(engine: Engine, project: str) -> bool:
    """Whether there is anything to delete or to forget."""
    if engine.places is None:
        return False
    with engine.reading() as work:
        return bool(_page(work, project))


def drop(engine: Engine, project: str) -> Report:
    """Delete what nobody has referred to for a day. An error on one is kept apart; it is tried again later."""
    report = Report()
    if engine.places is None or not is_due(engine, project):
        return report
    began, going = engine.transact((project,), lambda work: _mark(work, project))
    if not going:
        return report
    place = engine.places(project)
    gone = []
    for digest in going:
        with engine.store.begin(engine.tenant, write=False) as tx:
            if tx.now - began > rules.GOING // 2:
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
    """Say of each that it is being deleted; rows of those that long are go too."""
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
        if not row.uses:  # else somebody has put it anew meanwhile, long after
            work.put(replace(row, gone=True))
