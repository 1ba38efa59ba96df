"""Ready work in the order of the claim, lane by lane, with what this batch has changed taken into account."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from tenure.core.priority import Lane, Place, parse_lane
from tenure.core.records import Task
from tenure.engine.work import Work
from tenure.stores.port import Head

LARGEST_PAGE = 256


class LaneQueue:
    """The stored part of one lane, read page by page; rows that the batch has changed are dropped for good."""

    def __init__(self, work: Work, project: str, lane: str, first_page: int) -> None:
        self.work, self.project, self.lane = work, project, lane
        self.boost = parse_lane(lane).boost
        self.page = first_page
        self.heads: list[Head] = []
        self.first = 0  # of the heads that are not changed yet
        self.last: Head | None = None
        self.is_drained = False

    def __iter__(self) -> Iterator[Head]:
        work, project = self.work, self.project
        while self.first < len(self.heads) and work.is_changed(Task, project, self.heads[self.first].id):
            self.first += 1
        at = self.first
        while True:
            while at < len(self.heads):
                head = self.heads[at]
                at += 1
                if not work.is_changed(Task, project, head.id):
                    yield head
            if self.is_drained:
                return
            found = work.tx.ready(project, self.lane, after=self.last, limit=self.page)
            self.is_drained = len(found) < self.page
            self.page = min(LARGEST_PAGE, self.page * 8)
            if found:
                self.last = found[-1]
                self.heads += found


class Lanes:
    """All lanes of one project, for as long as one transaction lasts."""

    def __init__(self, work: Work, project: str, expected: int = 1) -> None:
        self.work, self.project = work, project
        self.expected = max(1, min(expected, LARGEST_PAGE))
        self.stored = {lane: LaneQueue(work, project, lane, self.expected) for lane in work.tx.lanes(project)}

    def names(self) -> list[str]:
        """Every lane that may have something to claim."""
        changed = (
            lane for (project, lane), tasks in self.work.lane_entries.items() if project == self.project and tasks
        )
        return list(dict.fromkeys((*self.stored, *changed)))

    def offer(self, fits: Callable[[Lane], bool]) -> Iterator[Task]:
        """Claimable tasks of the lanes that fit, best first."""
        streams = [self._places(lane) for lane in self.names() if fits(parse_lane(lane))]
        for place in heapq.merge(*streams) if len(streams) > 1 else (streams[0] if streams else ()):
            task = self.work.get(Task, self.project, place.id)
            if task is not None and task.lane is not None:
                yield task

    def _places(self, lane: str) -> Iterator[Place]:
        aged = parse_lane(lane).boost * self.work.now
        queue = self.stored.get(lane)
        entered = sorted(
            Place(t.band, t.rank - aged, t.sequence, t.id)
            for t in self.work.lane_entries.get((self.project, lane), {}).values()
        )
        if queue is None:
            return iter(entered)
        stored = (Place(h.band, h.rank - aged, h.sequence, h.id) for h in queue)
        return heapq.merge(stored, entered) if entered else stored
