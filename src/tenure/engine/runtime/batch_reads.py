"""What a batch reads: the rows of its commands at once, to save round trips, and the lanes page by page.

A lane has ready tasks in the order of the claim. Lanes are read as far as needed, with what this batch has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heapreplace, merge

from tenure.core import commands, limits
from tenure.core.claims import claim_id
from tenure.core.commands import Command
from tenure.core.errors import InvalidInput
from tenure.core.ids import Receipt, parse_key, parse_receipt
from tenure.core.priority import Lane, LanePosition, parse_lane, place
from tenure.core.records import Agent, Archived, Brief, Claim, Project, Row, Session, Task, replace
from tenure.engine.runtime.rows import ABSENT, ALIKE, BY_ID, Wanted, holders_query, query_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.port import Asked, Head

LARGEST_PAGE = limits.LANE_PAGE


# --- rows ---------------------------------------------------------------------------------------------------


def queries_of(batch: Sequence[Command], rows: Sequence[Wanted], *, by_receipt: bool) -> list[Asked]:
    """The queries that a transaction of this batch begins with, for `Transaction.expect`; `rows` by `rows_of`."""
    claims: dict[str, int] = {}
    for command in batch:
        claims.setdefault(command.project, 0)
        if isinstance(command, commands.ClaimNext):
            claims[command.project] += command.n
    asked = [query_of(Wanted(BY_ID, Project, project, "id", (project,))) for project in claims]
    asked += [Asked("lanes", (project, _depth(n))) for project, n in claims.items() if n]
    asked += [query_of(wanted) for wanted in rows]
    if by_receipt:
        asked += [holders_query(project, receipts) for project, receipts in _receipts(batch).items()]
    return asked


def rows_of(batch: Iterable[Command]) -> list[Wanted]:
    """The rows that these commands read in any case: who claims, holds or is offered what; which tasks there are."""
    wanted: dict[tuple[str, type[Row], str, str], dict[str, None]] = {}

    def want(how: str, kind: type[Row], project: str, field: str, value: str | None) -> None:
        if value is not None:
            wanted.setdefault((how, kind, project, field), {})[value] = None

    for command in batch:
        project = command.project
        if isinstance(command, (commands.ClaimTask, commands.ClaimNext)):
            want(ABSENT, Claim, project, "request_id", command.request_id)
            want(BY_ID, Agent, project, "id", command.agent)
            want(ABSENT, Task, project, "offer_to", command.agent)
            want(BY_ID, Session, project, "id", command.session)
            want(ABSENT, Task, project, "session", command.session)
        if isinstance(command, commands.ClaimTask) and (key := parse_key(command.task)) is not None:
            want(ALIKE, Task, project, "ref", key.ref)
        if isinstance(command, commands.Add):
            want(ALIKE, Task, project, "idempotency_key", command.task.idempotency_key)
            want(ABSENT, Archived, project, "idempotency_key", command.task.idempotency_key)
    return [Wanted(*what, tuple(values)) for what, values in wanted.items()]


def read_ahead(work: UnitOfWork, batch: Sequence[Command], rows: Iterable[Wanted], *, by_receipt: bool) -> None:
    """Read all of it before the first command. `by_receipt`: the store finds holders by their receipts at once."""
    for wanted in rows:
        found = work.take(wanted)
        if wanted.kind is Task and wanted.field == "ref":
            work.get_many(Brief, wanted.project, [row.id for row in found])
    if by_receipt or len(batch) > 1:
        read_holders(work, batch, by_receipt=by_receipt)


def read_holders(work: UnitOfWork, batch: Iterable[Command], *, by_receipt: bool) -> None:
    """The tasks, claims and holders of the presented receipts."""
    for project, receipts in _receipts(batch).items():
        if by_receipt:
            work.learn_holders(project, receipts)
            continue
        tasks = {t.ref: t.id for t in work.learn(Task, project, "ref", {r.name for r in receipts})}
        ids = [claim_id(tasks[r.name], r.generation) for r in receipts if r.name in tasks]
        held = work.get_many(Claim, project, ids).values()
        work.get_many(Agent, project, [claim.agent for claim in held])
        work.get_many(Session, project, [claim.session for claim in held])


def _receipts(batch: Iterable[Command]) -> dict[str, dict[Receipt, None]]:
    """By project. Malformed ones are left out."""
    presented: dict[str, dict[Receipt, None]] = {}
    for command in batch:
        text = getattr(command, "receipt", None)
        if isinstance(text, str):
            with suppress(InvalidInput):
                receipt = parse_receipt(text)
                presented.setdefault(command.project, {})[receipt] = None
    return presented


# --- lanes --------------------------------------------------------------------------------------------------


class LaneQueue:
    """The stored part of one lane, read page by page; rows that the batch has changed are dropped for good."""

    def __init__(self, work: UnitOfWork, project: str, name: str, heads: Sequence[Head], page: int) -> None:
        """`heads` are the lane's first entries."""
        self.work, self.project, self.name = work, project, name
        self.lane = parse_lane(name)
        self.places: list[LanePosition] = []
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
        changed, project = self.work.changed(Task), self.project
        while at < len(self.places) or self.has_entry(at):
            if (Task, project, self.places[at].id) not in changed:
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
        _read_offered(self.work, self.project, [head.id for head in found])
        aged = self.lane.boost * self.work.now
        self.places += [LanePosition(h.band, h.rank - aged, h.sequence, h.id, h.plain) for h in found]


def _read_offered(work: UnitOfWork, project: str, ids: list[str]) -> None:
    """The next tasks in order, as many as the batch may take, with the rows that their claims return."""
    if work.expected_claims > 1:
        wanted = ids[: work.expected_claims]
        work.get_many(Task, project, wanted)
        work.get_many(Brief, project, wanted)


def queues(work: UnitOfWork, project: str, expected: int) -> list[LaneQueue]:
    """The stored lanes of a project, of which about this many tasks will be taken."""
    heads = work.tx.lanes(project, _depth(expected))
    page = max(8, min(LARGEST_PAGE, expected // max(1, len(heads))))
    return [LaneQueue(work, project, name, first, page) for name, first in heads.items()]


def _depth(expected: int) -> int:
    return max(1, min(LARGEST_PAGE, expected // 4))


SetBack = Callable[[Lane], int]


def _behind(position: LanePosition, by: int) -> LanePosition:
    return replace(position, effective=position.effective + by) if by else position


class Lanes:
    """All lanes of one project, for the duration of one transaction."""

    def __init__(self, work: UnitOfWork, project: str, expected: int = 1) -> None:
        self.work, self.project = work, project
        self.stored = queues(work, project, expected)

    def offer(self, fits: Callable[[Lane], bool], set_back: SetBack = lambda _: 0) -> Iterator[Task]:
        """Claimable tasks of the lanes that fit, best first; `set_back`: how far back those of a lane are."""
        stored, entered = self._stored(fits, set_back), self._entered(fits, set_back)
        for best in merge(stored, entered) if entered else stored:
            task = self.work.get(Task, self.project, best.id)
            if task is not None and task.lane is not None:
                yield task

    def _stored(self, fits: Callable[[Lane], bool], set_back: SetBack) -> Iterator[LanePosition]:
        """One entry of each lane in a heap: a lane is read on only when its turn comes."""
        heap = [
            (_behind(queue.places[at], set_back(queue.lane)), at, queue)
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
                place = _behind(queue.places[following], set_back(queue.lane))
                heapreplace(heap, (place, following, queue))

    def _entered(self, fits: Callable[[Lane], bool], set_back: SetBack) -> list[LanePosition]:
        """Tasks that the batch itself has made claimable."""
        return sorted(
            _behind(place(task, self.work.now), set_back(lane))
            for (project, name), tasks in self.work.lane_entries.items()
            if tasks and project == self.project and fits(lane := parse_lane(name))
            for task in tasks.values()
        )
