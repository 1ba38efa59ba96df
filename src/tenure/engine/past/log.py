"""The log of a project up to an earlier moment, with the events of tasks that were archived since."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from tenure.core import archive
from tenure.core.errors import HistoryPruned, InvalidInput
from tenure.core.events import Event, kinds_of
from tenure.core.filters import Range, Where
from tenure.core.moments import Moment
from tenure.core.records import Archived
from tenure.core.written_times import SECOND, spell_instant
from tenure.engine.runtime.rows import event_pages, row_pages
from tenure.stores.port import Transaction

EVENTS_A_PAGE = 1_000
DOCUMENTS_A_PAGE = 200
# Of later events, those that report something about the rows before them.
_LATER = ("task.lease_expired", "archive.moved", "archive.returned", "archive.pruned", "leader.elected", "leader.lost")
_OF_STORE = kinds_of(("leader", "budget"))  # of events without a project, those whose rows a project's queries read


class LaterArchived(NamedTuple):
    """A task that was not in the archive at the moment, but is now or was since: its row there, and its log."""

    row: Archived
    events: tuple[Event, ...]


class PastLog(NamedTuple):
    events: list[Event]  # up to the moment, in order
    later: list[Event]  # of those after it, the ones of _LATER
    now: int  # the moment as an instant
    archived: list[Archived]  # in the archive then, and unchanged since
    moved: list[LaterArchived]


def past_log(tx: Transaction, project: str, moment: Moment) -> PastLog:
    """Raises InvalidInput for a moment before the project or in the future, HistoryPruned for one before retention."""
    cut = _Cut(tx, project, moment)
    live = [event for name in ("", project) for event in cut.read(tx, name)]
    if not any(event.project == project for event in live):
        raise _before(tx, project, moment)
    live.sort(key=lambda event: event.sequence)
    now = moment.instant if moment.instant is not None else max(e.time for e in live if e.project == project)
    later = list(cut.later(tx, project))
    _refuse_pruned(later, now, moment)
    moves = _moves((*live, *later))
    archived, moved = _archive(tx, project, cut, moves)
    events = [(event.sequence, event) for event in live]
    for one in moved:
        places = _places(one, project, live, moves)
        pairs = list(zip(places, one.events, strict=True))
        events += [(place, event) for place, event in pairs if cut.has(event, place)]
        later += [e for place, e in pairs if e.kind in _LATER and not cut.has(e, place)]
    events.sort(key=lambda pair: pair[0])
    later.sort(key=lambda event: event.time)
    return PastLog([event for _, event in events], later, now, archived, moved)


class _Cut:
    """Which events were before the moment. Where the clock was set back, everything written before that counts."""

    def __init__(self, tx: Transaction, project: str, moment: Moment) -> None:
        self.sequence, self.instant, self.floor = moment.sequence, moment.instant, 0
        if self.instant is not None:
            if self.instant > tx.now:
                raise InvalidInput(f"at {moment.text} is in the future", f"it is {spell_instant(_second(tx.now))} now")
            turns = tx.events({"project": project, "kind": ("clock.accepted",)}, last=True)
            self.floor = max((turn.sequence for turn in turns if turn.time <= self.instant), default=0)
        elif not (last := tx.events({}, limit=1, last=True)) or (self.sequence or 0) > last[0].sequence:
            raise InvalidInput(f"at {moment.text}: no event has that sequence yet", "`log` shows the last ones")

    def has(self, event: Event, place: int) -> bool:
        if self.instant is None:
            return place <= (self.sequence or 0)
        return event.time <= self.instant or place <= self.floor

    def read(self, tx: Transaction, project: str) -> Iterator[Event]:
        where = {"project": project} if project else {"project": "", "kind": _OF_STORE}
        last = self.sequence if self.instant is None else self.floor
        if last:
            for event in _all(tx, where):
                if event.sequence > last:
                    break
                yield event
        if self.instant is not None:
            yield from _all(tx, {**where, "time": Range(high=self.instant + 1)}, after=self.floor)

    def later(self, tx: Transaction, project: str) -> Iterator[Event]:
        for name in ("", project):
            where = {"project": name, "kind": _LATER}
            if self.instant is None:
                yield from _all(tx, where, after=self.sequence or 0)
            else:
                yield from _all(tx, {**where, "time": Range(low=self.instant + 1)}, after=self.floor)

    def was_archived(self, row: Archived, moves: dict[int, list[int]]) -> bool:
        if row.out:
            return False
        if self.instant is not None:
            return row.archived_at <= self.instant
        ends = moves.get(row.archived_at, [])
        if len(ends) > 1:  # several moves at one instant
            ends = [end for end in ends if end > archive.events_in(row)[-1].sequence]
        return min(ends, default=0) <= (self.sequence or 0)


def _all(tx: Transaction, where: Where, after: int = 0) -> Iterator[Event]:
    for page in event_pages(tx, where, EVENTS_A_PAGE, after):
        yield from page


def _moves(events: Iterable[Event]) -> dict[int, list[int]]:
    """When tasks went to the archive: time → sequences."""
    found: dict[int, list[int]] = {}
    for event in events:
        if event.kind == "archive.moved":
            found.setdefault(event.time, []).append(event.sequence)
    return found


def _archive(
    tx: Transaction, project: str, cut: _Cut, moves: dict[int, list[int]]
) -> tuple[list[Archived], list[LaterArchived]]:
    archived, moved = [], []
    for page in row_pages(tx, Archived, {"project": project}, DOCUMENTS_A_PAGE):
        for row in page:
            if cut.was_archived(row, moves):
                archived.append(row)
            else:
                moved.append(LaterArchived(row, archive.events_in(row)))
    return archived, moved


def _places(one: LaterArchived, project: str, live: list[Event], moves: dict[int, list[int]]) -> list[int]:
    """Where the events of a document belong in the log: by sequence.

    A project that was copied has new sequences, but not in documents: their events are placed by time.
    """
    own = [event.sequence for event in one.events]
    ends = moves.get(one.row.archived_at, [])
    begin = next(event.sequence for event in live if event.project == project)
    if own and ends and begin < own[0] and own[-1] < max(ends):
        return own
    times = list(accumulate((event.time for event in live), max))
    return [live[max(0, bisect_right(times, event.time) - 1)].sequence for event in one.events]


def _second(instant: int) -> int:
    return instant // SECOND * SECOND


def _before(tx: Transaction, project: str, moment: Moment) -> InvalidInput:
    first = tx.events({"project": project}, limit=1)
    began = (
        f", which began at {spell_instant(_second(first[0].time + SECOND - 1))} with event {first[0].sequence}"
        if first
        else ""
    )
    return InvalidInput(f"{moment.text} is before project {project[:80]}{began}")


def _refuse_pruned(later: Iterable[Event], now: int, moment: Moment) -> None:
    pruned = [event for event in later if event.kind == "archive.pruned"]
    horizon = max((event.details.get("until", event.time) for event in pruned), default=0)
    if now < horizon:
        raise HistoryPruned(
            f"at {moment.text}: retention has deleted tasks of that time",
            f"the past is whole from {spell_instant(horizon)} on; the limit history_retention says how long",
        )
