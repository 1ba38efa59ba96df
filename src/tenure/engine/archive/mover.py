"""The mover: finished tasks that nothing open can reach become rows of the archive, and are later deleted from it.

A sweep like the others: anyone may run it, it is idempotent, takes about 500 rows per transaction and confines an error
to its task. No answer depends on it: see `recall.py`. A task with events that some reader of the log has not passed
stays: see `log_readers.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tenure.core import archive, graph, ids, lifecycle
from tenure.core.budgets import TASK, budget_id
from tenure.core.compliance import kept_days
from tenure.core.events import Event
from tenure.core.filters import Present, Range
from tenure.core.ids import with_number
from tenure.core.log_seals import document_leaf, leaf, pruned_digest
from tenure.core.records import (
    KINDS,
    Archived,
    Artifact,
    Body,
    Budget,
    Dag,
    DeadLetter,
    Edge,
    Project,
    PrunedLeaves,
    Row,
    Task,
    Track,
    Usage,
    replace,
)
from tenure.core.task_records import referred
from tenure.engine.archive.log_readers import unread_by_some
from tenure.engine.archive.totals import count, fold, stated, use_less
from tenure.engine.audit.sealer import sealed_to
from tenure.engine.runtime.effects import dead_letter_id, descendants
from tenure.engine.runtime.rows import event_pages
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, Patch, UnitOfWork
from tenure.engine.verbs.create import lower_height

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine

KIND_OF = {kind.table: row for row, kind in KINDS.items()}
PAGE = 100  # tasks per transaction, with four or five rows each; a lineage moves as a whole
EVENTS_PER_QUERY = 5000

# How far this process's sweeps have come, so that they do not examine only tasks that must stay.
_reached: WeakKeyDictionary[Engine, dict[tuple[str, str], str]] = WeakKeyDictionary()


class Moved:
    """What a sweep of the archive did."""

    def __init__(self) -> None:
        self.tasks = 0
        self.pruned = 0
        self.bytes = 0  # of the stored documents
        self.held_back = 0  # tasks that stay because a reader has not passed all of their events
        self.failed: dict[str, str] = {}  # task → error

    def add(self, other: Moved) -> None:
        self.tasks += other.tasks
        self.pruned += other.pruned
        self.bytes += other.bytes
        self.held_back += other.held_back
        self.failed |= other.failed


def sweep(engine: Engine, project: str) -> Moved:
    """Move and prune due tasks, from where the last sweep stopped, until a page has nothing to move."""
    moved = Moved()
    reached = _reached.setdefault(engine, {})
    waiting, has_old = _waiting(engine, project)
    for state in waiting:
        while True:
            page, last = _move_page(engine, project, state, reached.get((project, state), ""))
            reached[project, state] = last
            moved.add(page)
            if not page.tasks or not last:
                break
    return _pruned(engine, project, moved) if has_old else moved


def is_due(engine: Engine, project: str) -> bool:
    """Whether a sweep has tasks to examine, or to prune."""
    return any(_waiting(engine, project))


def _waiting(engine: Engine, project: str) -> tuple[list[str], bool]:
    """The states with tasks that ended long ago, and whether any in the archive is old enough to be pruned."""

    def ask(work: UnitOfWork) -> tuple[list[str], bool]:
        until = _until(work, project)
        waiting = [state for state in lifecycle.FINISHED if _candidates(work, project, state, until, "")[0]]
        return waiting, bool(_old(work, project, None, 1))

    return engine.read_settled((project,), ask)


def move_all(engine: Engine, project: str, *, older: int | None = None) -> Moved:
    """Move everything that may go, and prune; `older` replaces the project's own time, in microseconds."""
    moved = Moved()
    for state in lifecycle.FINISHED:
        place = ""
        while True:
            page, place = _move_page(engine, project, state, place, older)
            moved.add(page)
            if not place:
                break
    return _pruned(engine, project, moved)


def could_move(engine: Engine, project: str, *, older: int | None = None) -> Moved:
    """What `move_all` would move now, and what readers hold back; nothing is written."""

    def ask(work: UnitOfWork) -> tuple[set[str], set[str]]:
        going: set[str] = set()
        held_back: set[str] = set()
        until = _until(work, project, older)
        for state in lifecycle.FINISHED:
            place = ""
            while True:
                page, place = _candidates(work, project, state, until, place)
                free = [one for one in _lineages(work, page) if not _stays(work, one, until)]
                read = _read_by_all(work, project, free)
                going |= {task.id for lineage in read for task in lineage}
                held_back |= {task.id for lineage in free for task in lineage} - going
                if not place:
                    break
        return going, held_back

    going, held_back = engine.read_settled((project,), ask)
    moved = Moved()
    moved.tasks, moved.held_back = len(going), len(held_back - going)
    return moved


# --- moving -------------------------------------------------------------------------------------------------


def _move_page(engine: Engine, project: str, state: str, place: str, older: int | None = None) -> tuple[Moved, str]:
    """Move what may go of one page after `place`; return where the next one begins, "" where there is none."""

    def decide(work: UnitOfWork) -> tuple[Moved, str]:
        moved = Moved()
        until = _until(work, project, older)
        page, last = _candidates(work, project, state, until, place)
        going: list[list[Task]] = []
        for lineage in _lineages(work, page):
            try:
                if not _stays(work, lineage, until):
                    going.append(lineage)
            except OUR_FAULTS as error:
                moved.failed[lineage[0].id] = f"{type(error).__name__}: {error}"
        read = _read_by_all(work, project, going)
        moved.held_back += sum(map(len, going)) - sum(map(len, read))
        leaving = {task.id: task for lineage in read for task in lineage}
        if leaving:
            _move(work, project, leaving, moved)
        return moved, last

    return engine.transact((project,), decide)


def _read_by_all(work: UnitOfWork, project: str, lineages: Sequence[list[Task]]) -> list[list[Task]]:
    """Those of which every reader of the log has passed all events."""
    unread = unread_by_some(work, project, [task.id for lineage in lineages for task in lineage])
    return [lineage for lineage in lineages if unread.isdisjoint(task.id for task in lineage)]


def _until(work: UnitOfWork, project: str, older: int | None = None) -> int:
    row = work.get(Project, project, project)
    after = (
        older if older is not None else archive.archive_after(work.limits_of(row)) if row is not None else archive.AFTER
    )
    return work.now - after


def _candidates(work: UnitOfWork, project: str, state: str, until: int, place: str) -> tuple[list[Task], str]:
    """A page of tasks in that state created before `until`, by id, which sorts by time."""
    if until < 0:
        return [], ""
    bound = ids.IdMaker(until + 1000, bytes(ids.IdMaker.RANDOM_BYTES)).next("task")
    where = {"project": project, "state": state, "id": Range(high=bound)}
    page = work.find(Task, where, after=(place, place) if place else None, limit=PAGE)
    return page, page[-1].id if len(page) == PAGE else ""


def _lineages(work: UnitOfWork, tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Each task with its parents and subtasks, if any; every lineage once."""
    seen = set()
    for task in tasks:
        first = task if task.root is None else work.get(Task, task.project, task.root)
        if first is not None and first.id not in seen:
            seen.add(first.id)
            yield [first, *descendants(work, first)]


def _stays(work: UnitOfWork, lineage: Sequence[Task], until: int) -> bool:
    """Whether it must stay: one of its tasks is too young, or something open is near."""
    if not all(archive.may_go(task, until) for task in lineage):
        return True
    project = lineage[0].project
    ids_ = tuple(task.id for task in lineage)
    if work.find(Usage, {"project": project, "task": ids_, "doubtful": Present()}, limit=1):
        return True  # a person has to decide, and usage in the archive is summed up
    if ids.has_dag_row(lineage[0]):
        dag = work.get(Dag, project, lineage[0].dag)
        if dag is None or dag.completed + dag.cancelled != dag.total:
            return True
    if any(task.dependents for task in lineage):
        edges = work.find(Edge, {"project": project, "needs": ids_})
        below = work.get_many(Task, project, [edge.task for edge in edges])
        if any(task.state not in lifecycle.FINISHED for task in below.values()):
            return True
    return _is_below_open(work, project, [task.id for task in lineage if task.waits_on])


def _is_below_open(work: UnitOfWork, project: str, waited: Sequence[str]) -> bool:
    """Whether one of these waited, directly or transitively, for a task that is open again or a dead letter.

    Retrying a dead letter restores the tasks its cascade cancelled, and the claim order counts the tasks below.
    """
    seen, todo = set(waited), list(waited)
    while todo:
        edges = work.find(Edge, {"project": project, "task": tuple(todo)})
        above = {edge.needs for edge in edges} - seen
        seen |= above
        # as stored: the tasks above an archived one were checked when it moved
        found = work.find(Task, {"project": project, "id": tuple(above)})
        tasks = [task for task in found if not work.is_recalled(task)]
        if any(task.state not in lifecycle.FINISHED for task in tasks):
            return True
        todo = [task.id for task in tasks if task.waits_on]
    return False


def _move(work: UnitOfWork, project: str, leaving: Mapping[str, Task], moved: Moved) -> None:
    tasks = dict(leaving)
    rows: dict[str, list[Row]] = {id: [] for id in tasks}
    for kind, field in archive.OWNED.items():
        for row in _owned(work, project, tasks, kind, field):
            rows[getattr(row, field)].append(row)
    events = _events(work, project, tuple(tasks))
    earlier = work.get_many(Archived, project, tasks)  # of recalled tasks: their earlier log
    is_audited = sealed_to(work, project) is not None
    documents: dict[str, str] = {}  # task → the digest of its document, for the audit
    broken = set()
    for id, task in tasks.items():
        log = [*(archive.events_in(earlier[id]) if id in earlier else ()), *events.get(id, ())]
        if [event.version for event in log] != list(range(1, task.version + 1)):
            moved.failed[id] = f"{task.key}: version {task.version}, but {len(log)} events"
            broken.add(task.root or id)
            continue
        try:
            bodies = work.get_many(Body, project, referred(rows[id])).values()
            leaves = b"".join(map(leaf, log)) if is_audited else b""
            kept = work.put(archive.archived(task, rows[id], log, work.now, bodies, leaves))
            if is_audited:
                documents[id] = document_leaf(kept).hex()
        except OUR_FAULTS as error:
            moved.failed[id] = f"{type(error).__name__}: {error}"
            broken.add(task.root or id)
            continue
        moved.bytes += len(kept.document)
    for id in [id for id, task in tasks.items() if (task.root or id) in broken]:  # a lineage moves whole or not at all
        _keep(work, earlier.get(id), project, id)
        del tasks[id]
    if tasks:
        for id in tasks:
            use_less(work, project, referred(rows[id]))
        _remove(work, tasks, [row for id in tasks for row in rows[id]])
        moved.tasks += len(tasks)
        _count(work, tasks.values())
        patch = stated(_touched_rows(work, project, [e for id in tasks for e in events.get(id, ())], tasks))
        # events of budgets belong to the project and stay
        own = [row for id in tasks for row in rows[id] if isinstance(row, Budget)]
        patch += tuple((KINDS[Budget].table, row.id, None) for row in own)
        # their recall event stays in the log, about rows that are gone
        patch += tuple((table, row, None) for id in tasks if id in earlier for table, row, _ in stated(rows[id]))
        details: dict[str, Any] = {"tasks": len(tasks)}
        if is_audited:
            details["documents"] = {id: documents[id] for id in tasks}
        work.append("archive.moved", project, patch, details=details)
        work.dropped.append((project, tuple(tasks)))


def _owned(work: UnitOfWork, project: str, tasks: Mapping[str, Task], kind: type[Row], field: str) -> Iterable[Row]:
    if kind is DeadLetter:  # found by id: it has no index
        letters = [dead_letter_id(replace(t, run=run)) for t in tasks.values() for run in range(1, t.run + 1)]
        return work.get_many(DeadLetter, project, letters).values()
    if kind is Budget:
        return work.get_many(Budget, project, [budget_id(TASK, id) for id in tasks]).values()
    return work.find(kind, {"project": project, field: tuple(tasks)})


def _keep(work: UnitOfWork, earlier: Archived | None, project: str, id: str) -> None:
    if earlier is not None:
        work.put(earlier)
    elif (made := work.get(Archived, project, id)) is not None:
        work.remove(made)


def _events(work: UnitOfWork, project: str, tasks: tuple[str, ...]) -> dict[str, list[Event]]:
    """The log of each task, oldest first."""
    found: dict[str, list[Event]] = {}
    for page in event_pages(work.tx, {"project": project, "task": tasks}, EVENTS_PER_QUERY):
        for event in page:
            found.setdefault(event.task or "", []).append(event)
    return found


def _remove(work: UnitOfWork, tasks: dict[str, Task], rows: Iterable[Row]) -> None:
    """Remove the rows; the tasks' dependencies lose dependents and may have a shorter path below."""
    fewer: dict[str, int] = {}
    used: list[Usage] = []
    project = next(iter(tasks.values())).project
    for row in rows:
        if isinstance(row, Edge) and row.needs not in tasks:
            fewer[row.needs] = fewer.get(row.needs, 0) + 1
        elif isinstance(row, Usage):
            used.append(row)
        work.remove(row)
    fold(work, used, 1)
    for id, by in fewer.items():
        needs = work.get(Task, project, id)
        if needs is not None and not work.is_recalled(needs):
            work.put(replace(needs, dependents=needs.dependents - by))
            lower_height(work, needs)


def _count(work: UnitOfWork, tasks: Iterable[Task]) -> None:
    for task in tasks:
        count(work, task.project, task.track, **{task.state: 1})


def _touched_rows(work: UnitOfWork, project: str, events: Iterable[Event], tasks: Mapping[str, Task]) -> list[Row]:
    """Rows that stay although dropped events described them: mainly the tracks whose numbers grew."""
    wanted: dict[type[Row], dict[str, None]] = {Track: {task.track: None for task in tasks.values()}}
    for event in events:
        for table, id, _ in event.patch:
            kind = KIND_OF[table]
            if not (kind in archive.OWNED and id.partition("@")[0] in tasks):
                wanted.setdefault(kind, {})[id] = None
    rows = (row for kind, found in wanted.items() for row in work.get_many(kind, project, found).values())
    return [row for row in rows if not work.is_recalled(row)]


# --- pruning ------------------------------------------------------------------------------------------------


def _pruned(engine: Engine, project: str, moved: Moved) -> Moved:
    """Delete rows of the archive that were kept long enough."""
    place: tuple[int, str] | None = None
    while True:
        behind = place

        def decide(work: UnitOfWork, behind: tuple[int, str] | None = behind) -> tuple[int, tuple[int, str] | None]:
            return _prune_page(work, project, behind)

        gone, place = engine.transact((project,), decide)
        moved.pruned += gone
        if place is None:
            return moved


def _old(work: UnitOfWork, project: str, place: tuple[int, str] | None, most: int) -> list[Archived]:
    """A page of archive rows whose tasks were created before its retention period began."""
    kept = _kept(work, project)
    if kept is None:
        return []
    where = {"project": project, "created_at": Range(high=work.now - kept + 1)}
    return work.find(Archived, where, order="created_at", after=place, limit=most)


def _kept(work: UnitOfWork, project: str) -> int | None:
    row = work.get(Project, project, project)
    return None if row is None else archive.kept_for(kept_days(row, work.tenant_limits, work.limits_of(row)))


def _prune_page(work: UnitOfWork, project: str, place: tuple[int, str] | None) -> tuple[int, tuple[int, str] | None]:
    sealed = sealed_to(work, project)
    if sealed == 0:
        return 0, None  # documents from before the audit are not sealed yet
    page = _old(work, project, place, PAGE)
    kept = _kept(work, project)
    going: dict[str, Archived] = {}
    for row in page:
        lineage = [row]
        if row.root is not None:
            lineage = work.find(Archived, {"project": project, "dag": row.dag, "root": row.root})
        if kept is not None and _may_be_pruned(work, lineage, work.now - kept):
            going |= {member.id: member for member in lineage}
    if going:
        patch = [*stated(_crossed_off(work, going.values())), *_uncounted(work, going.values())]
        for row in going.values():
            _let_go(work, row)
            work.remove(row)
        details: dict[str, Any] = {"tasks": len(going), "until": work.now - (kept or 0)}  # all were archived by then
        leaves = b"" if sealed is None else b"".join(map(_leaves_of, going.values()))
        if leaves:
            details["leaves"] = pruned_digest(leaves)
        work.append("archive.pruned", project, tuple(patch), details=details)
        if leaves:
            work.put(PrunedLeaves(project=project, id=work.events[-1].id, leaves=leaves, at=work.now))
    return len(going), (page[-1].created_at, page[-1].id) if len(page) == PAGE else None


def _leaves_of(row: Archived) -> bytes:
    """The leaves by which an audit distinguishes its events from removed ones."""
    return archive.leaves_of(row) or b"".join(map(leaf, archive.events_in(row)))


def _let_go(work: UnitOfWork, archived: Archived) -> None:
    """One reference fewer to the bytes of its artifacts."""
    digests = Counter(row.digest for row in archive.rows_in(archived) if isinstance(row, Artifact))
    if digests:
        from tenure.engine.artifacts.artifact_verbs import let_go

        let_go(work, archived.project, digests)


def _may_be_pruned(work: UnitOfWork, lineage: Sequence[Archived], until: int) -> bool:
    """Whether it was kept long enough and no unarchived task waits for it."""
    if any(row.out or row.archived_at > until for row in lineage):
        return False
    return not work.find(Edge, {"project": lineage[0].project, "needs": tuple(row.id for row in lineage)}, limit=1)


def _crossed_off(work: UnitOfWork, going: Iterable[Archived]) -> list[Track]:
    """The tracks, which remember their counts and that their keys were used."""
    tracks: dict[str, Track] = {}
    for row in going:
        track = count(work, row.project, row.track, pruned=1)
        key = ids.parse_key(row.ref)
        if key is not None:
            track = work.put(replace(track, gone=with_number(track.gone, key.sequence)))
        tracks[track.id] = track
    return list(tracks.values())


def _uncounted(work: UnitOfWork, going: Iterable[Archived]) -> Patch:
    """A dag counts the tasks that can still be read; without any it is deleted too."""
    patch = []
    for row in going:
        dag = work.get(Dag, row.project, row.dag) if row.dag is not None else None
        if dag is None:
            continue
        fewer = replace(dag, total=dag.total - 1, **{row.state: getattr(dag, row.state) - 1})
        if fewer.total:
            work.put(replace(fewer, status=graph.status(fewer)))
        else:
            work.remove(dag)
            patch.append((KINDS[Dag].table, dag.id, None))
    return tuple(patch)
