"""Ready tasks in the order of the claim, lane by lane, including what this batch has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace, merge

from tenure.core import limits
from tenure.core.priority import Lane, LanePosition, parse_lane, place
from tenure.core.records import Brief, Task
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.port import Head

LARGEST_PAGE = limits.LANE_PAGE


class LaneQueue:
    """The stored part of one lane, read page by page; rows that the batch has changed are dropped for good."""

    def __init__(
        self, work: UnitOfWork, project: str, name: str, heads: Sequence[Head], page: int, *, ahead: bool
    ) -> None:
        """`heads` are the lane's first entries; with `ahead` the tasks of each page are read with it."""
        self.work, self.project, self.name = work, project, name
        self.lane = parse_lane(name)
        self.places: list[LanePosition] = []
        self._ahead = ahead
        self._page = page
        self._first = 0  # all before it are changed
        self._is_drained = False
        self._add(heads)

    def first(self) -> int | None:
        found = self.seek(self._first)
        self._first = len(self.places) if found is None else found
        return found

    def seek(self, at: int) -> int | None:
        """The index in `places` of the next unchanged entry, at or after `at`."""
        while self.has_entry(at):
            if not self.work.is_changed(Task, self.project, self.places[at].id):
                return at
            at += 1
        return None

    def has_entry(self, at: int) -> bool:
        """Whether there is an entry with that index. Reads on as far as needed."""
        while at >= len(self.places):
            if self._is_drained:
                return False
            self._read_on()
        return True

    def _read_on(self) -> None:
        found = self.work.tx.ready(self.project, self.name, after=self._last, limit=self._page)
        self._is_drained = len(found) < self._page
        self._page = min(LARGEST_PAGE, self._page * 8)
        if found:
            self._add(found)

    def _add(self, found: Sequence[Head]) -> None:
        self._last = found[-1]
        if self._ahead:
            _read_offered(self.work, self.project, [head.id for head in found])
        aged = self.lane.boost * self.work.now
        self.places += [LanePosition(h.band, h.rank - aged, h.sequence, h.id, h.plain) for h in found]


def _read_offered(work: UnitOfWork, project: str, ids: list[str]) -> None:
    """The next tasks in order, as many as the batch may take, with the rows that their claims return."""
    if work.expected_claims > 1:
        wanted = ids[: work.expected_claims]
        work.get_many(Task, project, wanted)
        work.get_many(Brief, project, wanted)


def queues(work: UnitOfWork, project: str, expected: int, *, ahead: bool) -> list[LaneQueue]:
    """The stored lanes of a project, of which about this many tasks will be taken."""
    depth = max(1, min(LARGEST_PAGE, expected // 4))
    heads = work.tx.lanes(project, depth)
    page = max(8, min(LARGEST_PAGE, expected // max(1, len(heads))))
    return [LaneQueue(work, project, name, first, page, ahead=ahead) for name, first in heads.items()]


class Lanes:
    """All lanes of one project, for the duration of one transaction."""

    def __init__(self, work: UnitOfWork, project: str, expected: int = 1) -> None:
        self.work, self.project = work, project
        self.stored = queues(work, project, expected, ahead=True)

    def offer(self, fits: Callable[[Lane], bool]) -> Iterator[Task]:
        """Claimable tasks of the lanes that fit, best first."""
        stored, entered = self._stored(fits), self._entered(fits)
        for best in merge(stored, entered) if entered else stored:
            task = self.work.get(Task, self.project, best.id)
            if task is not None and task.lane is not None:
                yield task

    def _stored(self, fits: Callable[[Lane], bool]) -> Iterator[LanePosition]:
        """One entry of each lane in a heap: a lane is read on only when its turn comes."""
        heap = [
            (queue.places[at], at, queue)
            for queue in self.stored
            if fits(queue.lane) and (at := queue.first()) is not None
        ]
        heapify(heap)
        while heap:
            best, at, queue = heap[0]
            yield best
            following = queue.seek(at + 1)
            if following is None:
                heappop(heap)
            else:
                heapreplace(heap, (queue.places[following], following, queue))

    def _entered(self, fits: Callable[[Lane], bool]) -> list[LanePosition]:
        """Tasks that the batch itself has made claimable."""
        return sorted(
            place(task, self.work.now)
            for (project, name), tasks in self.work.lane_entries.items()
            if tasks and project == self.project and fits(parse_lane(name))
            for task in tasks.values()
        )
