"""The current rows of one transaction: the rows read, overlaid with the changed ones; found by id, filter or name.

`UnitOfWork` changes rows and appends events; here they are only found. Each question goes to the store once: a row that
was read is kept, and what one query over many values has shown (`learn_absent`, `learn`) is not asked again.
A name is an id, a key, a short key or an unambiguous prefix. Archived tasks are found too, where no other has that
name; changing one brings it back (see `archive/recall.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tenure.core import claims, ids, limits, roles
from tenure.core.errors import Ambiguous, InvalidInput, NotFound
from tenure.core.events import Event
from tenure.core.filters import Prefix, Where, matches, sums_of
from tenure.core.ids import Receipt
from tenure.core.records import Agent, Archived, Brief, Claim, Dag, Pool, Project, Row, Task
from tenure.stores.port import Asked, Transaction

if TYPE_CHECKING:
    from tenure.stores.fast_path import Receipts

R = TypeVar("R", bound=Row)
Key = tuple[type[Row], str, str]
UNREAD: Any = object()
FOREVER = (1 << 62) - 1
ROWS_A_PAGE = 500
SHORTEST_BEGINNING = limits.PREFIX_MIN
TRACKS_LISTED = "`tenure track list` shows them; `tenure track define` adds one"

BY_ID, ALIKE, ABSENT = "by id", "alike", "absent"


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """To be read in any case: rows with these ids, rows with these values of the field, or which values no row has."""

    how: str
    kind: type[Row]
    project: str
    field: str
    values: tuple[str, ...]


class Rows:
    def __init__(self, tx: Transaction) -> None:
        self.tx = tx
        self._rows: dict[Key, Row | None] = {}
        self._loaded: dict[Key, Row | None] = {}
        self._changed: dict[type[Row], dict[Key, None]] = {}  # keys in the order of their first change
        self._changed_by: dict[type[Row], dict[str, dict[Any, set[Key]]]] = {}  # kind → field → value → see _like
        self._journal: list[tuple[Key, Any]] = []
        self._learned: dict[tuple[type[Row], str, str], dict[str, Sequence[Any]]] = {}  # of each kind, project, field
        self._tallied: dict[tuple[type[Row], tuple[tuple[str, Any], ...]], tuple[int, int]] = {}  # most, and the count
        self.by_ref: dict[tuple[str, str], str] = {}  # project and short key of tasks that were found by it → id
        self.recalled: dict[Key, str] = {}  # rows in the archive → the lineage with which they return

    def get(self, kind: type[R], project: str, id: str) -> R | None:
        key = (kind, project, id)
        row = self._rows.get(key, UNREAD)
        if row is UNREAD:
            row = next(iter(self.tx.load(kind, (key[1:],))), None)
            self._rows[key] = self._loaded[key] = row
            if row is None and kind is Task:
                self._recall(project, (id,))
                row = self._rows[key]
        return row  # type: ignore[no-any-return]  # the key's kind is the row's

    def require(self, kind: type[R], project: str, id: str) -> R:
        """A row that must exist: another row refers to it."""
        row = self.get(kind, project, id)
        assert row is not None, f"no {kind.__name__} {id!r} in project {project!r}"
        return row

    def peek(self, kind: type[R], project: str, id: str) -> R | None:
        """The row, if it was already read."""
        row = self._rows.get((kind, project, id), UNREAD)
        return None if row is UNREAD else row

    def get_many(self, kind: type[R], project: str, wanted: Iterable[str]) -> dict[str, R]:
        """The rows that exist, by id, with one query for those not read yet."""
        keys: dict[str, Key] = {id: (kind, project, id) for id in wanted}
        rows = self._rows
        unread = [key for key in keys.values() if key not in rows]
        if unread:
            for key in unread:
                rows[key] = self._loaded[key] = None
            for row in self.tx.load(kind, [key[1:] for key in unread]):
                self._keep(row)
            if kind is Task:
                self._recall(project, [key[2] for key in unread if rows[key] is None])
        current: Any = rows  # the key's kind is the row's
        return {id: found for id, key in keys.items() if (found := current[key]) is not None}

    def find(
        self,
        kind: type[R],
        where: Where,
        *,
        order: str = "id",
        after: tuple[Any, str] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        """As the store's `find`, including what this unit of work has changed."""
        stored: Sequence[Any] | None = self._learnt(kind, where, after) if self._learned else None
        alike = self._like(kind, where)
        if not alike and stored is not None and not stored:
            return []
        changed = self._changed.get(kind, {})
        if stored is None:
            asked = None if limit is None else limit + len(changed)
            stored = self.tx.find(kind, where, order=order, after=after, limit=asked)
        found: dict[Key, Any] = {}  # ids repeat across projects
        for row in stored:
            key = (kind, row.project, row.id)
            if key not in changed:
                found[key] = self._rows.setdefault(key, row)
                self._loaded.setdefault(key, row)
        mine = [r for key in alike if (r := self._rows[key]) is not None and matches(r, where)]
        if not mine:
            return list(found.values())[:limit]
        field, falling = order.lstrip("-"), order.startswith("-")

        def place(row: Any) -> tuple[bool, Any, str]:
            value = getattr(row, field)
            return value is not None, value, row.id

        if after is not None:
            edge = (after[0] is not None, *after)
            mine = [r for r in mine if (place(r) < edge if falling else place(r) > edge)]
        found |= {(kind, row.project, row.id): row for row in mine}
        return sorted(found.values(), key=place, reverse=falling)[:limit]

    def changed_rows(self) -> Iterator[tuple[type[Row], tuple[str, str], Row | None]]:
        """Kind, (project, id) and the row as it now is, of each row that this unit of work changed; None: deleted."""
        for kind, keys in self._changed.items():
            yield from ((kind, key[1:], self._rows[key]) for key in keys)

    def take(self, wanted: Wanted) -> Collection[Any]:
        """Read them; the rows that were found."""
        if wanted.how == BY_ID:
            return self.get_many(wanted.kind, wanted.project, wanted.values).values()
        if wanted.how == ALIKE:
            return self.learn(wanted.kind, wanted.project, wanted.field, wanted.values)
        self.learn_absent(wanted.kind, wanted.project, wanted.field, wanted.values)
        return ()

    def learn_absent(self, kind: type[Row], project: str, field: str, values: Collection[str]) -> None:
        """Find out at once which of these values no stored row has, so that `find` need not ask for each."""
        has_rows = self.tx.count(kind, {"project": project, field: tuple(values)}, field)
        known = self._learned.setdefault((kind, project, field), {})
        known.update({value: () for value in values if value not in has_rows})

    def has_none(self, kind: type[Row], project: str, field: str, value: str) -> bool:
        """Whether it is known without a query that no row has this value. False where it is not known."""
        known = self._learned.get((kind, project, field))
        return known is not None and known.get(value) == () and not self._like(kind, {field: value})

    def learn(self, kind: type[R], project: str, field: str, values: Collection[str]) -> list[R]:
        """The stored rows with these values of the field; `find` need not ask for each."""
        rows = self.tx.find(kind, {"project": project, field: tuple(values)})
        known = self._learned.setdefault((kind, project, field), {})
        known.update(dict.fromkeys(values, ()))
        found: dict[str, list[R]] = {}
        for row in rows:
            found.setdefault(getattr(row, field), []).append(row)
            self._keep_new(row)
        known.update(found)
        return rows

    def learn_holders(self, project: str, receipts: Collection[Receipt]) -> None:
        """The stored tasks that receipts name, their claims, and their holders."""
        tx: Receipts = self.tx  # type: ignore[assignment]  # the store declares it
        found = tx.holders(project, [(receipt.name, receipt.generation) for receipt in receipts])
        known = self._learned.setdefault((Task, project, "ref"), {})
        known.update({receipt.name: () for receipt in receipts} | {task.ref: (task,) for task in found.tasks})
        for row in (*found.tasks, *found.claims, *found.agents, *found.sessions):
            self._keep_new(row)

    def _learnt(self, kind: type[Row], where: Where, after: tuple[Any, str] | None) -> Sequence[Any] | None:
        """The stored rows that match; None where this is not known. None match if one of the values has no rows."""
        project = where.get("project", "")
        for field, wanted in where.items():
            known = self._learned.get((kind, project, field))
            if known is None or type(wanted) is not str:
                continue
            rows = known.get(wanted)
            if rows is not None and (not rows or (len(where) == 2 and after is None)):
                return rows
        return None

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        """How many current rows match, for each value of the field `by`."""
        counts = dict(self.tx.count(kind, where, by))
        for key in self._changed.get(kind, {}):
            for row, change in ((self._loaded[key], -1), (self._rows[key], 1)):
                if row is not None and matches(row, where):
                    value = getattr(row, by)
                    counts[value] = counts.get(value, 0) + change
        return {value: n for value, n in counts.items() if n}

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        """As the store's `sums`; where this unit of work has changed rows of that kind, it adds them up itself.

        Rows from the archive are among the sums of their project, which the store has, but not among those of a task.
        """
        changed = self._changed.get(kind, {})
        if not changed or ("task" not in where and changed.keys() <= self.recalled.keys()):
            return self.tx.sums(kind, where, by, fields)
        return sums_of(self.find(kind, where), by, fields)

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        """How many current rows match, counted up to `most`."""
        changed = self._changed.get(kind, {})
        count = self._stored_tally(kind, where, most + len(changed))
        for key in changed:
            before, after = self._loaded[key], self._rows[key]
            count += (after is not None and matches(after, where)) - (before is not None and matches(before, where))
        return min(most, count)

    def _stored_tally(self, kind: type[Row], where: Where, most: int) -> int:
        """Counted once for all claims of a batch: what it has changed is not stored before its end."""
        key = (kind, tuple(where.items()))
        asked, count = self._tallied.get(key, (0, 0))
        if count < asked or most <= asked:
            return count
        count = self.tx.tally(kind, where, most)
        self._tallied[key] = most, count
        return count

    def _like(self, kind: type[Row], where: Where) -> Collection[Key]:
        """Keys of changed rows of which any version had the first text that `where` names: the others cannot match.

        Scanning all of them made a batch quadratic: half of the time at 100 claims.
        """
        changed = self._changed.get(kind)
        if not changed:
            return ()
        for field, wanted in where.items():
            if type(wanted) is str and field != "project":
                break
        else:
            return changed
        fields = self._changed_by.setdefault(kind, {})
        if field not in fields:
            fields[field] = {}
            versions = [*self._journal, *((key, self._rows[key]) for key in changed)]
            for key, row in versions:
                if key[0] is kind:
                    self._note_version(key, row, fields)
        return fields[field].get(wanted, ())

    @staticmethod
    def _note_version(key: Key, row: Row | None, fields: dict[str, dict[Any, set[Key]]]) -> None:
        if row is not None:
            for field, keys in fields.items():
                value = getattr(row, field)
                if value is not None:  # only texts are searched for
                    keys.setdefault(value, set()).add(key)

    def next_due(self, project: str) -> int | None:
        """When something in the project next falls due, as far as is known."""
        changed = self._changed.get(Task, {})
        if not changed:
            return self.tx.next_due(project)
        stored = self.tx.due(project, FOREVER, len(changed) + 1)
        times = [t.due_at for t in stored if (Task, project, t.id) not in changed]
        for key in changed:
            mine = self._rows[key]
            if mine is not None and mine.project == project:
                times.append(mine.due_at)  # type: ignore[attr-defined]  # a task's key
        return min((t for t in times if t is not None), default=None)

    def _keep(self, row: Row) -> None:
        key = (type(row), row.project, row.id)
        self._rows[key] = self._loaded[key] = row

    def _keep_new(self, row: Row) -> None:
        key = (type(row), row.project, row.id)
        if key not in self._rows:
            self._rows[key] = self._loaded[key] = row
        if type(row) is Task:
            self.by_ref[row.project, row.ref] = row.id

    def _recall(self, project: str, ids: Collection[str]) -> None:
        """Tasks that are not in their table may be in the archive."""
        if ids:
            from tenure.engine.archive.recall import recall  # few transactions ask for rows that do not exist

            recall(self, project, ids)

    def remember(self, row: Row, lineage: str) -> None:
        """Take in a row from the archive: found and read like any other, stored again only if its lineage changes."""
        key = (type(row), row.project, row.id)
        self._rows[key] = self._loaded[key] = row
        self._changed.setdefault(key[0], {}).setdefault(key)
        self._note_version(key, row, self._changed_by.get(key[0], {}))
        self.recalled[key] = lineage

    def is_recalled(self, row: Row) -> bool:
        """Whether the row is known to lie in the archive."""
        return (type(row), row.project, row.id) in self.recalled

    def changed(self, kind: type[Row]) -> Collection[Key]:
        return self._changed.get(kind, {})

    def versions(self, key: Key) -> tuple[Row | None, Row | None]:
        """A row as loaded, and its current version."""
        return self._loaded.get(key), self._rows.get(key)

    def recreated(self, key: Key) -> Row:
        """A row as archived; it is stored as a new one."""
        row, self._loaded[key] = self._loaded[key], None
        assert row is not None
        return row

    def take_back(self, key: Key) -> None:
        self._rows[key] = self._loaded[key]

    def is_changed(self, kind: type[Row], project: str, id: str) -> bool:
        return (kind, project, id) in self._changed.get(kind, {})


def query_of(wanted: Wanted) -> Asked:
    """The query that `Rows.take` makes for it, if nothing of it was read before."""
    kind, project, field, values = wanted.kind, wanted.project, wanted.field, wanted.values
    if wanted.how == BY_ID:
        return Asked("load", (kind, [(project, value) for value in values]))
    where = {"project": project, field: values}
    return Asked("find", (kind, where)) if wanted.how == ALIKE else Asked("count", (kind, where, field))


def holders_query(project: str, receipts: Iterable[Receipt]) -> Asked:
    """That of `Rows.learn_holders`."""
    return Asked("holders", (project, [(receipt.name, receipt.generation) for receipt in receipts]))


def row_pages(tx: Transaction, kind: type[R], where: Where, size: int) -> Iterator[list[R]]:
    """The stored rows, by id; no page is empty."""
    after = None
    while page := tx.find(kind, where, after=after, limit=size):
        yield page
        if len(page) < size:
            return
        after = (page[-1].id, page[-1].id)


def pages_by(work: Rows, kind: type[R], where: Where, order: str, size: int) -> Iterator[list[R]]:
    """The rows as this unit of work has them, in that order; no page is empty."""
    after = None
    while page := work.find(kind, where, order=order, after=after, limit=size):
        yield page
        if len(page) < size:
            return
        after = (getattr(page[-1], order.lstrip("-")), page[-1].id)


def event_pages(tx: Transaction, where: Where, size: int, after: int = 0) -> Iterator[list[Event]]:
    """The events after that sequence, oldest first; no page is empty."""
    while page := tx.events(where, after=after, limit=size):
        yield page
        if len(page) < size:
            return
        after = page[-1].sequence


def archived_events(work: Rows, project: str, where: Where) -> list[Event]:
    """Those of `where["task"]` that are in the archive, of a task that has returned too."""
    row = work.get(Archived, project, where["task"])
    if row is None:
        return []
    from tenure.core.archive import events_in  # few tasks have been archived

    return [event for event in events_in(row) if matches(event, where)]


def fields_of(row: Any, names: str) -> Any:
    """These fields of a row, for a view. Untyped: a test holds every query to the type of its view."""
    return {name: getattr(row, name) for name in names.split()}


# --- rows of a task -----------------------------------------------------------------------------------------


def current(work: Rows, task: Task) -> Task:
    """The task as this unit of work currently has it."""
    return work.get(Task, task.project, task.id) or task


def current_claim(work: Rows, task: Task) -> Claim:
    """The claim of the task's current generation; every task that was ever claimed has one."""
    return work.require(Claim, task.project, claims.claim_id(task.id, task.generation))


def lineage(work: Rows, task: Task) -> list[Claim]:
    """The claims of a task, oldest first."""
    return work.find(Claim, {"project": task.project, "task": task.id}, order="generation")


def brief_of(work: Rows, task: Task) -> Brief:
    return work.require(Brief, task.project, task.id)


# --- by name ------------------------------------------------------------------------------------------------


def is_known_agent(work: Rows, project: str, name: str) -> bool:
    """Whether an agent has this name, or a place of a pool, whose agent may not have been started yet."""
    if work.get(Agent, project, name) is not None:
        return True
    pool, _, place = name.rpartition("-")
    found = work.get(Pool, project, pool) if place.isdecimal() else None
    if found is None:
        return False
    from tenure.core.pools import agent_of  # few names are of a pool; keeps startup fast

    return name in (agent_of(pool, number + 1) for number in range(found.size))


def check_agent_name(work: Rows, project: str, name: str, what: str = "agent") -> None:
    """Of an agent that is known, any name that is stored; of a new one a new name."""
    if not ids.is_new_name(name) and not is_known_agent(work, project, name):
        ids.check_new_name(name, what)


def project_of(work: Rows, name: str) -> Project:
    project = work.get(Project, name, name)
    if project is None:
        raise roles.no_project(name)
    return project


def check_without_project(work: Rows, project: str, what: str, hint: str | None = None) -> None:
    """Rows of the tenant as a whole are written under the lock of the project ""."""
    if project:
        project_of(work, project)
        raise InvalidInput(f"{what} belong to the store: leave out the project", hint)


def task_named(work: Rows, project: str, name: str) -> Task:
    """The one task with that name; raises NotFound or Ambiguous otherwise."""
    task = find_task(work, project, name)
    if task is None:
        key = ids.parse_key(name)
        near = task_by_ref(work, project, key.ref) if key is not None else None
        meant = f"; did you mean {near.key}?" if near is not None else ""
        raise NotFound(f"no task {name[:80]!r} in project {project}{meant}", "`tenure list` shows the keys of tasks")
    return task


def find_task(work: Rows, project: str, name: str) -> Task | None:
    if name.startswith("task_"):
        task = work.get(Task, project, name)
        return task or _by_beginning(work, project, "id", name)
    key = ids.parse_key(name)
    if key is not None:
        task = task_by_ref(work, project, key.ref)
        if task is not None and (not key.slug or task.key == name or _begins(task, key)):
            return task
    return _by_beginning(work, project, "key", name)


def task_by_ref(work: Rows, project: str, ref: str) -> Task | None:
    known = work.by_ref.get((project, ref))
    task = None if known is None else work.get(Task, project, known)
    if task is not None:
        return task
    found = work.find(Task, {"project": project, "ref": ref}, limit=1)
    if not found:
        # by key, so that the archive needs no index: `A-001-slug`, `A-001-slug::2`, or without a slug
        beginning = Prefix(ref.partition("::")[0] + "-")
        found = _archived(work, project, ref=ref, key=beginning) or _archived(work, project, key=ref)
    if not found:
        return None
    work.by_ref[project, ref] = found[0].id
    return found[0]


def tasks_by_idempotency(work: Rows, project: str, keys: str | Prefix | tuple[str, ...]) -> list[Task]:
    """The tasks with that idempotency key, or those whose name begins so."""
    found = work.find(Task, {"project": project, "idempotency_key": keys})
    there = {task.id for task in found}
    return [*found, *(t for t in _archived(work, project, idempotency_key=keys) if t.id not in there)]


def _archived(work: Rows, project: str, **where: Any) -> list[Task]:
    from tenure.engine.archive.recall import recall_by  # only after a search found nothing

    return recall_by(work, project, **where)


def _begins(task: Task, key: ids.Key) -> bool:
    own = ids.parse_key(task.key)
    return own is not None and own.slug.startswith(key.slug)


def _by_beginning(work: Rows, project: str, field: str, text: str) -> Task | None:
    if len(text) < SHORTEST_BEGINNING or len(text) > 200:
        return None
    found = work.find(Task, {"project": project, field: Prefix(text)}, order=field, limit=4)
    if not found:
        found = _archived(work, project, **{field: Prefix(text)}, most=4)
    if len(found) > 1:
        some = ", ".join(t.key for t in found[:3])
        raise Ambiguous(f"{text!r} is a prefix of several tasks: {some}{' …' if len(found) > 3 else ''}")
    return found[0] if found else None


def dag_named(work: Rows, project: str, id: str) -> Dag:
    dag = work.get(Dag, project, id)
    if dag is None:
        raise NotFound(f"no dag {id[:80]!r} in project {project}")
    return dag
