"""Tasks by state and track, including those in the archive: counted once, then kept up to date by the log.

Counting reads an index entry for every task: at 100,000 tasks that is most of what a status costs, and each open page
of the dashboard asks for one. A process that follows the log (the server) keeps the counts of a position and adds the
moves behind it. Every answer is exact: it adds the events that its transaction sees behind that position, and the moves
that are due and not written yet.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenure.core import inputs, lifecycle, limits
from tenure.core.events import Event
from tenure.core.records import Task, Track

if TYPE_CHECKING:
    from tenure.engine.runtime.unit_of_work import UnitOfWork

MOST_BEHIND = limits.COUNTED_BEHIND
LONGEST = int(limits.COUNTS_KEPT * inputs.SECOND)
RECENT = 10_000  # moves kept for projects that are being counted meanwhile

Counts = Mapping[str, Mapping[str, int]]  # state → track → tasks
_Key = tuple[str, str]  # state, track


class _Move(NamedTuple):
    sequence: int
    project: str
    track: str
    before: str | None
    after: str | None


class Before(NamedTuple):
    """Known before a transaction began: the position, and the counts there, if they were kept."""

    position: int
    counted_at: int = 0
    counts: Counter[_Key] | None = None


class _Kept:
    """The counts of one project after all events up to `position`."""

    def __init__(self, position: int, counted_at: int, counts: Counter[_Key]) -> None:
        self.position, self.counted_at, self.counts = position, counted_at, counts


class TaskCounts:
    """What a process keeps. `position` returns how far it has followed the log; below 0: not at all."""

    def __init__(self) -> None:
        self.position: Callable[[], int] = lambda: -1
        self._kept: dict[str, _Kept] = {}
        self._recent: deque[_Move] = deque()
        self._recent_since = 0
        self._mutex = threading.Lock()

    def hear(self, events: Sequence[Event]) -> None:
        """The next events of the log, in its order."""
        moves = list(_moves(events))
        with self._mutex:
            for move in moves:
                kept = self._kept.get(move.project)
                if kept is not None and move.sequence > kept.position:
                    _apply(kept.counts, move)
            for kept in self._kept.values():
                kept.position = max(kept.position, events[-1].sequence)
            for event in events:
                if event.kind == "project.created":
                    self._kept.pop(event.project, None)
                elif event.kind == "epoch.started":  # perhaps another state of the store
                    self._kept.clear()
            self._recent += moves
            while len(self._recent) > RECENT:
                self._recent_since = self._recent.popleft().sequence

    def before(self, project: str) -> Before:
        """For a transaction that has not begun: all events up to the position will be visible to it."""
        with self._mutex:
            found = self._kept.get(project)
            if found is None:
                return Before(self.position())
            return Before(found.position, found.counted_at, Counter(found.counts))

    def keep(self, project: str, position: int, now: int, counts: Counter[_Key]) -> None:
        """Counts after all events up to `position`; moves heard since then are added."""
        with self._mutex:
            if position < self._recent_since:
                return
            kept = _Kept(position, now, counts)
            for move in self._recent:
                if move.project == project and move.sequence > position:
                    _apply(kept.counts, move)
                    kept.position = max(kept.position, move.sequence)
            self._kept[project] = kept


def by_state(work: UnitOfWork, project: str) -> Counts:
    """The tasks of a project by state, then by track."""
    keeper, before = work.context.counts, work.counted_before
    if keeper is None or before is None or before.position < 0:
        return _shaped(_counted(work, project))
    behind = work.tx.events({"project": project}, after=before.position, limit=MOST_BEHIND)
    is_near = len(behind) < MOST_BEHIND
    moves = [move for move in _moves((*behind, *work.events)) if move.project == project]
    if before.counts is not None and is_near and work.now - before.counted_at <= LONGEST:
        for move in moves:
            _apply(before.counts, move)
        return _shaped(before.counts)
    counts = _counted(work, project)
    if is_near:
        kept = Counter(counts)
        for move in moves:
            _apply(kept, move._replace(before=move.after, after=move.before))
        keeper.keep(project, before.position, work.now, kept)
    return _shaped(counts)


def _counted(work: UnitOfWork, project: str) -> Counter[_Key]:
    counts: Counter[_Key] = Counter()
    tracks = work.find(Track, {"project": project})
    used = [track.id for track in tracks if track.last_sequence]
    if len(used) <= 1:  # as in most projects: counting states reads no row of a task
        for state, n in work.count(Task, {"project": project}, "state").items():
            counts[state, used[0]] += n
    else:
        # By state, which has an index: by track, every task would be read once for each track.
        for state in lifecycle.STATES:
            for track, n in work.count(Task, {"project": project, "state": state}, "track").items():
                counts[state, track] += n
    for row in tracks:
        for state in lifecycle.FINISHED:
            counts[state, row.id] += getattr(row, state)
    return counts


def _moves(events: Iterable[Event]) -> Iterable[_Move]:
    for event in events:
        if event.track is not None and event.previous_state != event.new_state:
            yield _Move(event.sequence, event.project, event.track, event.previous_state, event.new_state)


def _apply(counts: Counter[_Key], move: _Move) -> None:
    if move.before is not None:
        counts[move.before, move.track] -= 1
    if move.after is not None:
        counts[move.after, move.track] += 1


def _shaped(counts: Counter[_Key]) -> Counts:
    shaped: dict[str, dict[str, int]] = {}
    for (state, track), n in counts.items():
        if n > 0:
            shaped.setdefault(state, {})[track] = n
    return shaped
