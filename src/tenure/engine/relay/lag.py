"""The leader's duty that cuts off a sink that is too far behind, so that it no longer holds the archive back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure.core.events import Event
from tenure.core.records import STORE, Sink, replace
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.port import Transaction

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine


def stores_behind(engine: Engine, now: int) -> Sequence[str]:
    """The store, where a sink is further behind than it may be."""
    is_behind = engine.read(lambda tx: any(_is_behind(tx, row, now) for row in tx.find(Sink, {"project": STORE})))
    return [STORE] if is_behind else []


def cut_off(engine: Engine, project: str) -> Report:
    report = Report()

    def decide(work: UnitOfWork) -> None:
        for row in work.find(Sink, {"project": STORE}):
            if not _is_behind(work.tx, row, work.now):
                continue
            details = {"sink": row.id, "after": row.sequence}
            message = f"sink {row.id} is more than {row.max_lag // 86_400_000_000} days behind"
            work.record("sink.behind", project=STORE, level="error", message=message, details=details)
            work.put(replace(row, cut_off_at=work.now))
            report.events["sink.behind"] += 1

    engine.transact((), decide)
    return report


def _is_behind(tx: Transaction, row: Sink, now: int) -> bool:
    first = first_unread(tx, row)
    return row.cut_off_at is None and first is not None and first.time + row.max_lag < now


def first_unread(tx: Transaction, row: Sink) -> Event | None:
    where = {"project": (STORE, *row.projects)} if row.projects else {}
    found = tx.events(where, after=row.sequence, limit=1)
    return found[0] if found else None
