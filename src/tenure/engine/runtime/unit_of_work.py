"""The unit of work of one transaction: the rows it has read and changed, and the events it will append.

Commands of a batch run one after another on the same unit of work, so each sees the changes of those before it; a
refused or failed command is undone alone (`undo_to`). Nothing reaches the store before `save`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec
from msgspec.structs import astuple

from tenure.core import ids, lifecycle
from tenure.core.commands import Command, Principal
from tenure.core.commands.command import actor_of, operator_of
from tenure.core.decoders import defaults_of
from tenure.core.errors import Bug, TenureError
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.core.records import KINDS, Brief, Claim, Project, Reservation, Row, Task, replace
from tenure.core.settle import stamp
from tenure.core.tenant_limits import bounded
from tenure.engine.checks.evidence import Evidence, Question
from tenure.engine.runtime.context import DEFAULT, Context, Random
from tenure.engine.runtime.rows import UNREAD, Key, Rows
from tenure.stores.port import Change, Transaction

if TYPE_CHECKING:
    from tenure.engine.reads.task_counts import Before

R = TypeVar("R", bound=Row)
Compared = tuple[Row | None, Row | None, Sequence[int] | None]  # and the positions of fields that are not identical
_NOT_COMPARED: Compared = (None, None, None)
Patch = tuple[tuple[str, str, dict[str, Any] | None], ...]  # as in Event


class UnitOfWork(Rows):
    def __init__(self, tx: Transaction, random: Random, context: Context = DEFAULT) -> None:
        super().__init__(tx)
        self.random, self.context, self.tables = random, context, context.tables
        self.tenant_limits = {} if context.limits is None else context.limits()
        self.counted_before: Before | None = None  # see engine/reads/task_counts.py
        self.now = tx.now
        self.instant = tx.now  # the time of a change: earlier than `now` while settling
        self.epoch = tx.epoch
        self.events: list[Event] = []
        self._compared: dict[Key, Compared] = {}  # the two versions of a row that were compared last
        self.moved: deque[tuple[Task | None, Task]] = deque()  # transitions whose effects on others are pending
        self.overdue: list[tuple[str, str]] = []  # tasks left due at `now` by a command of this batch
        self.principal = Principal()
        self.speaker: str | None = None  # the agent that the command speaks for
        self.presented: Claim | Reservation | None = None  # the row whose genuine receipt the command presents
        self.is_time = True  # nobody's command runs: what happens, time does
        self.trace_id: str | None = None
        self.evidence: Evidence = {}  # collected for the command before the transaction
        self._command_id: str | None = None
        self._ids: ids.IdMaker | None = None
        self.lanes: dict[str, Any] = {}  # project → its Lanes, once read
        self.expected_claims = 1  # claims that the batch may make: the size of a first page
        self.lane_entries: dict[tuple[str, str], dict[str, Task]] = {}  # changed tasks that are claimable now
        self.dropped: list[tuple[str, Collection[str]]] = []  # project and tasks whose events are dropped at the end
        self.locked: frozenset[str] | None = None  # projects that it may write to; None: not limited
        self.is_unfinished = False  # the command has more to do than fits one transaction

    # --- principal ---

    def seconds_to(self, at: int | None) -> float | None:
        """The duration until then, for programs whose clock may be wrong."""
        return None if at is None else max(0.0, (at - self.now) / 1e6)

    def retry_at(self, at: int | None) -> dict[str, Any]:
        """The fields of an outcome that show when to try again."""
        return {"retry_at": at, "retry_in": self.seconds_to(at)}

    def leased_until(self, at: int | None) -> dict[str, Any]:
        """The fields of an outcome that show when its lease ends."""
        return {"lease_until": at, "lease": self.seconds_to(at)}

    def begin_command(
        self,
        principal: Principal | None,
        trace_id: str | None,
        command_id: str | None = None,
        *,
        speaker: str | None = None,
    ) -> None:
        """Without a principal nobody gives a command: time does what happens."""
        self.principal, self.is_time = principal or Principal(), principal is None
        self.speaker, self.presented = speaker, None
        self.trace_id = trace_id
        self._command_id = command_id

    @property
    def command_id(self) -> str:
        if self._command_id is None:
            self._command_id = self.new_id("cmd")
        return self._command_id

    def new_id(self, prefix: str) -> str:
        """Ids of one transaction sort in the order in which they were made."""
        if self._ids is None:
            self._ids = ids.IdMaker(self.now, self.random.token(ids.IdMaker.RANDOM_BYTES))
        return self._ids.next(prefix)

    def limits_of(self, project: Project) -> Mapping[str, int]:
        """The limits that apply in the project: its own, within those of its tenant."""
        return bounded(project.limits, self.tenant_limits) if self.tenant_limits else project.limits

    def need_locks(self, *projects: str, lasting: bool = True) -> None:
        """Ensure the write lock of these projects; raises NeedsMoreLocks where the transaction must restart with it.

        `lasting`: the next transactions of this project will need the same.
        """
        if self.locked is not None and not self.locked.issuperset(projects):
            raise NeedsMoreLocks(projects, is_lasting=lasting)

    # --- changing ---

    def put(self, row: R) -> R:
        """Put a new version of a row, without an event. A task gets its derived columns here and nowhere else."""
        if type(row) is Task:
            return self._put_task(row)  # type: ignore[return-value, arg-type]  # a task stays a task
        self._set((type(row), row.project, row.id), row)
        return row

    def _put_task(self, task: Task, **changes: Any) -> Task:
        task = stamp(task, self.now, **changes)
        if task.due_at is not None and task.due_at <= self.now:
            self.overdue.append((task.project, task.id))
        self._set((Task, task.project, task.id), task)
        return task

    def remove(self, row: Row) -> None:
        self._set((type(row), row.project, row.id), None)

    def _set(self, key: Key, row: Row | None) -> None:
        before = self._rows.get(key, UNREAD)
        if before is UNREAD:
            before = self._loaded[key] = self._rows[key] = None  # created here: the store has none
        self._journal.append((key, before))
        self._rows[key] = row
        kind = key[0]
        if kind not in self._changed:
            self._changed[kind] = {}
        self._changed[kind][key] = None
        fields = self._changed_by.get(kind)
        if fields:
            self._note_version(key, before, fields)
            self._note_version(key, row, fields)
        if kind is Task:
            self._enter_lane(before, row)

    def _enter_lane(self, before: Any, after: Any) -> None:
        if self.lane_entries and before is not None and before.lane is not None:
            self.lane_entries.get((before.project, before.lane), {}).pop(before.id, None)
        if after is not None and after.lane is not None:
            self.lane_entries.setdefault((after.project, after.lane), {})[after.id] = after

    @overload
    def record(self, kind: str, *rows: Row, task: Task, **fields: Any) -> Task: ...

    @overload
    def record(self, kind: str, *rows: Row, project: str, **fields: Any) -> None: ...

    def record(
        self,
        kind: str,
        *rows: Row,
        task: Task | None = None,
        project: str = "",
        removed: Collection[Row] = (),
        **fields: Any,
    ) -> Task | None:
        """Put new versions of rows together with their one event; returns the task as put.

        The event's patch holds what changed in each row, so the log can be replayed. `fields` as in `_append_event`.
        """
        patch: list[tuple[str, str, dict[str, Any] | None]] = []
        before: Task | None = None
        if task is not None:
            project = task.project
            before = self._rows.get((Task, project, task.id))  # type: ignore[assignment]  # a task under a task's key
            if before is not None:
                lifecycle.check_move(task.key, before.state, task.state)
            version = (before.version if before else 0) + 1
            task = self._put_task(task, version=version, updated_at=self.instant)
            patch.append(("task", task.id, self._difference(before, task)))
        for row in rows:
            old = self._rows.get((type(row), row.project, row.id))
            new, kind_of_row = self.put(row), KINDS[type(row)]
            if kind_of_row.logged:
                patch.append((kind_of_row.table, row.id, self._difference(old, new)))
        for row in removed:
            self.remove(row)
            patch.append((KINDS[type(row)].table, row.id, None))
        self._append_event(kind, project, before, task, tuple(patch), **fields)
        if task is not None and (before is None or before.state != task.state):
            self.moved.append((before, task))
        return task

    def _difference(self, old: Row | None, new: Row) -> dict[str, Any]:
        """The fields that differ. `replace` keeps the others as they are, so nearly all equal ones are identical."""
        kind = type(new)
        names, hidden, after = kind.__struct_fields__, KINDS[kind].unlogged, astuple(new)
        if old is None:
            values = zip(names, after, _defaults(kind), strict=True)
            return {n: value for n, value, usual in values if value is not usual and value != usual and n not in hidden}
        before = astuple(old)
        differ = [n for n in range(len(names)) if before[n] is not after[n]]
        self._compared[kind, new.project, new.id] = old, new, differ
        return {names[n]: after[n] for n in differ if names[n] not in hidden and before[n] != after[n]}

    def repeat(self, like: Repeated, task: Task, brief: Brief) -> Task:
        """As `record` for a new task, alike to one that was just recorded in everything but its names."""
        names = dict(zip(_NAMES, _names(task), strict=True))
        row = replace(like.task, **names)
        self._set((Task, row.project, row.id), row)
        if row.due_at is not None and row.due_at <= self.now:
            self.overdue.append((row.project, row.id))
        self._set((Brief, brief.project, brief.id), brief)
        of_task = {**(like.event.patch[0][2] or {}), **names}
        if row.idempotency_key is None:
            del of_task["idempotency_key"]
        of_brief = {**(like.event.patch[1][2] or {}), "id": brief.id, "title": brief.title}
        of_brief["description"] = brief.description
        if not brief.description:
            del of_brief["description"]
        patch = ((KINDS[Task].table, row.id, of_task), (KINDS[Brief].table, row.id, of_brief))
        details = {**like.event.details, "title": brief.title}
        self.events.append(
            replace(
                like.event, id=self.new_id("evt"), task=row.id, key=row.key, message=brief.title, details=details,
                patch=patch,
            )
        )  # fmt: skip
        if ids.has_dag_row(row):
            self.moved.append((None, row))
        return row

    def _append_event(
        self,
        kind: str,
        project: str,
        before: Task | None,
        task: Task | None,
        patch: Patch,
        *,
        level: str = "info",
        message: str = "",
        details: dict[str, Any] | None = None,
        agent: str | None = None,
        session: str | None = None,
        generation: int | None = None,
        holder: Task | Claim | Reservation | None = None,
    ) -> None:
        """Append the event; if the change fell due before `now`, the details give that instant.

        `agent` and `session`: whom an event is about that is of no claim, as of one that joins. `holder`: whose claim
        or reservation it is; without it the task's own holder, before the change or after it. `actor_of`
        says who acted.
        """
        details = details or {}
        if self.instant != self.now:
            details = details | {"at": self.instant}
        who, of = self.principal, holder
        if of is None and task is not None:
            of = before if before is not None and before.agent is not None else task
        if agent is None:
            spoken = (self.speaker if of is not None else None) or self._holder_who_acts(task, holder)
            agent, named = actor_of(who, spoken, of.agent if of is not None else None, is_time=self.is_time)
            session = (of.session if of is not None else None) or who.session
            if holder is not None:
                generation = holder.generation
        else:
            named = operator_of(who, self.speaker, agent)
            session = session or who.session
        details = named | details
        id = self.new_id("evt")
        if task is None:
            self.events.append(
                Event(
                    id=id, time=self.now, kind=kind, level=level, project=project, agent=agent, session=session,
                    user=who.person, address=who.address, message=message, details=details, patch=patch,
                    trace_id=self.trace_id, causation_id=self.command_id,
                )
            )  # fmt: skip
            return
        self.events.append(
            Event(
                id=id, time=self.now, kind=kind, level=level, project=project, task=task.id, key=task.key,
                version=task.version, track=task.track,
                generation=task.generation if generation is None else generation, agent=agent,
                session=session, user=who.person, address=who.address,
                previous_state=None if before is None else before.state, new_state=task.state, message=message,
                details=details, patch=patch, trace_id=self.trace_id, causation_id=self.command_id,
            )
        )  # fmt: skip

    def _holder_who_acts(self, task: Task | None, holder: Task | Claim | Reservation | None) -> str | None:
        """The agent of the receipt that the command presents, in an event about the same task or reservation."""
        receipt = self.presented
        if receipt is None or (task is None and holder is None):
            return None
        about = task.id if task is not None else getattr(holder, "task", None)
        return receipt.agent if receipt.task == about else None

    def append(self, kind: str, project: str, patch: Patch, *, details: dict[str, Any], first: bool = False) -> None:
        """Append an event with the caller's own patch; `first`: before all others, which are its consequences."""
        self._append_event(kind, project, None, None, patch, details=details)
        if first:
            self.events.insert(0, self.events.pop())

    # --- undo, save ---

    @property
    def is_untouched(self) -> bool:
        """Whether it has changed nothing so far."""
        return not self.events and not self._changed

    def bookmark(self) -> tuple[int, int]:
        return len(self._journal), len(self.events)

    def undo_to(self, bookmark: tuple[int, int]) -> None:
        """Undo everything since the bookmark: a command that is refused or fails changes nothing."""
        journal, events = bookmark
        while len(self._journal) > journal:
            key, before = self._journal.pop()
            if key[0] is Task:
                self._enter_lane(self._rows[key], before)
            self._rows[key] = before
        del self.events[events:]
        self.moved.clear()

    def save(self, *, last: bool = False) -> None:
        """`last`: the transaction ends here."""
        if last:
            self.lanes.clear()  # they refer to this unit of work: a cycle, with all rows of the batch
        if self.recalled:
            from tenure.engine.archive.recall import bring_back

            bring_back(self)
        changes = []
        for keys in self._changed.values():
            for key in keys:
                before, after = self._loaded[key], self._rows[key]
                if before is after or before == after:
                    continue
                old, new, fields = self._compared.get(key, _NOT_COMPARED)
                changes.append(Change(before, after, fields if old is before and new is after else None))
        if self.events:  # first: they are sent with the changes, and the commit need not wait for their answer
            self.tx.append(self.events)
        if changes:
            self.tx.save(changes, last=last and not self.dropped)
        for project, tasks in self.dropped:
            self.tx.drop_events(project, tasks)


@cache
def _defaults(kind: type[Row]) -> tuple[Any, ...]:
    defaults = defaults_of(kind)
    return tuple(defaults.get(name, UNREAD) for name in kind.__struct_fields__)


# What a broken rule of ours raises. One command or row is undone and reported; the others go on.
OUR_FAULTS = (Bug, AssertionError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError, AttributeError)


class Refused(Exception):
    """Ends a command with an outcome that changes nothing: "denied" and "stale" are answers, not errors."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.outcome)
        self.outcome = outcome


class NeedsMoreLocks(Exception):
    """Ends a transaction that must write to more projects than it has locked: it is run again with all of them locked.

    Taking a lock midway would take it in another order than other transactions do: a deadlock.
    """

    def __init__(self, projects: tuple[str, ...], *, is_lasting: bool) -> None:
        super().__init__(", ".join(projects))
        self.projects, self.is_lasting = projects, is_lasting


_NAMES = ("id", "key", "ref", "sequence", "dag", "idempotency_key")  # what differs between alike new tasks
_names = attrgetter(*_NAMES)


class Repeated(msgspec.Struct, frozen=True):
    """A new task as it was recorded: others that are alike are made from it."""

    task: Task
    brief: Brief
    event: Event


class Deferred(msgspec.Struct, frozen=True):
    """An answer that is built after the transaction has ended, so that no other waits for it. A query's is its view."""

    tell: Callable[[], Any]


class RunAgain(msgspec.Struct, frozen=True):
    """No answer yet, the command must run again: with answers to `questions`, or to go on after `so_far`.

    What it did is kept with `so_far` alone. For a command that waits for an earlier one of its caller it has neither.
    """

    questions: Sequence[Question] = ()
    so_far: Outcome | None = None


Answer = Outcome | TenureError
Reply = Answer | Deferred | RunAgain
Handlers = dict[type[Command], Callable[[UnitOfWork, Any], Outcome]]
Reads = dict[type[Query], Callable[..., Any]]
