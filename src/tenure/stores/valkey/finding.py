"""The queries over rows, lanes and due tasks, including what the transaction itself has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tenure.core.filters import Prefix, Range, Where, matches, selected, sums_of
from tenure.core.records import KINDS, Row, Task
from tenure.stores.plain_finding import check, check_numbers
from tenure.stores.port import Head
from tenure.stores.valkey import keys as names
from tenure.stores.valkey.connection import Command
from tenure.stores.valkey.keys import END, ordered
from tenure.stores.valkey.rows import INDEXES, decoded, is_nullable, is_text, unique_alone, unique_field
from tenure.stores.valkey.session import Session

if TYPE_CHECKING:
    from tenure.stores.valkey.store import Valkey

R = TypeVar("R", bound=Row)
Key = tuple[str, str]
MANY = 1000  # rows that are loaded at once, at least


class Span(NamedTuple):
    """A part of an index: its members from `low` to `high`, in the server's notation."""

    field: str
    low: bytes
    high: bytes
    value: Any = None  # the only value in it, where there is one


class Finding(Session):
    def __init__(self, store: Valkey, tenant: str, write: bool) -> None:
        super().__init__(store, tenant, write)
        self._stored: dict[type[Row], dict[Key, Row | None]] = {}  # as the store has them; kept by writers alone
        self._mine: dict[type[Row], dict[Key, Row | None]] = {}  # as this transaction has changed them

    # --- rows by key ---

    def load(self, kind: type[R], keys: Collection[Key]) -> list[R]:
        return self._answer(lambda: self._current(kind, list(dict.fromkeys(keys)))) if keys else []

    def _current(self, kind: type[R], keys: Sequence[Key]) -> list[R]:
        """The rows as they now are, in this order."""
        mine = self._mine.get(kind, {})
        stored = self._load_stored(kind, [key for key in keys if key not in mine])
        rows = (mine[key] if key in mine else stored[key] for key in keys)
        return [row for row in rows if row is not None]  # type: ignore[misc]  # the kind's own

    def _load_stored(self, kind: type[R], keys: Iterable[Key]) -> dict[Key, Row | None]:
        known = self._stored.setdefault(kind, {})
        found = {key: known[key] for key in keys if key in known}
        by_project: dict[str, list[str]] = {}
        for project, id in dict.fromkeys(key for key in keys if key not in known):
            by_project.setdefault(project, []).append(id)
        if by_project:
            table = KINDS[kind].table
            answers = self._ask(
                by_project,
                *(("HMGET", self._keys.rows(table, project), *ids) for project, ids in by_project.items()),
            )
            for (project, ids), rows in zip(by_project.items(), answers, strict=True):
                for id, data in zip(ids, rows, strict=True):
                    found[project, id] = None if data is None else decoded(kind, data, self._store.url)
            if self._write:
                known.update(found)
        return found

    def _forget(self) -> None:
        super()._forget()
        self._stored.clear()

    # --- rows by filter ---

    def find(
        self,
        kind: type[R],
        where: Where,
        *,
        order: str = "id",
        after: tuple[Any, str] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        check(kind, where, order.removeprefix("-"))
        return self._answer(lambda: self._find(kind, where, order, after, limit))

    def _find(
        self, kind: type[R], where: Where, order: str, after: tuple[Any, str] | None, limit: int | None
    ) -> list[R]:
        if limit is not None and limit <= 0:
            return []
        project = where.get("project")
        if limit is not None and isinstance(project, str):
            walk = self._walk(kind, where, order, after)
            if walk is not None:
                return self._paged(kind, project, walk, where, order, after, limit)
        return selected(self._matching(kind, where), {}, order, after, limit)

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        check(kind, where, by)

        def counted() -> dict[Any, int]:
            counts = self._counted_by_index(kind, where, by)
            return dict(Counter(getattr(row, by) for row in self._matching(kind, where))) if counts is None else counts

        return self._answer(counted)

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        check(kind, where, by, *fields)
        check_numbers(kind, fields)
        return self._answer(lambda: sums_of(self._matching(kind, where), by, fields))

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        check(kind, where)

        def tallied() -> int:
            field = next((field for field in where if field != "project"), "")
            counts = self._counted_by_index(kind, where, field) if field else None
            return len(self._find(kind, where, "id", None, most)) if counts is None else sum(counts.values())

        return min(most, self._answer(tallied))

    def _matching(self, kind: type[R], where: Where) -> Iterator[R]:
        """Every row that matches, in any order."""
        mine = self._mine.get(kind, {})
        wanted = where.get("project")
        if isinstance(wanted, str):
            projects = [wanted]
        elif isinstance(wanted, tuple):
            projects = [name for name in dict.fromkeys(wanted) if isinstance(name, str)]
        else:
            projects = self._projects()
        for row in self._candidates(kind, projects, where):
            if (row.project, row.id) not in mine and matches(row, where):
                yield row
        for changed in mine.values():
            if changed is not None and matches(changed, where):
                yield changed  # type: ignore[misc]  # the kind's own

    def projects(self) -> list[str]:
        return self._answer(self._projects)

    def raw(self, project: str, *commands: Command) -> list[Any]:
        """The server's answers, for `check`."""
        return self._answer(lambda: self._ask((project,), *commands, everywhere=True))

    def _projects(self) -> list[str]:
        """Every project that was ever written to."""
        ((fields),) = self._ask((), ("HKEYS", self._keys.versions), everywhere=True)
        return sorted(field[1:].decode() for field in fields if field[:1] == b":")

    def _candidates(self, kind: type[R], projects: Sequence[str], where: Where) -> Iterable[R]:
        """Stored rows of these projects, among them each that matches."""
        if not projects:
            return []
        ids = where.get("id")
        if isinstance(ids, (str, tuple)):
            wanted = [id for id in _each(ids) if isinstance(id, str)]
            found = self._load_stored(kind, [(project, id) for project in projects for id in dict.fromkeys(wanted)])
            return (row for row in found.values() if row is not None)  # type: ignore[misc]  # the kind's own
        table, keys = KINDS[kind].table, self._keys
        for field, number in unique_alone(kind).items():
            if _is_equality(kind, field, where.get(field)):
                values = [unique_field(kind, number, value) for value in _each(where[field])]
                if not values:
                    return []
                answers = self._ask(projects, *(("HMGET", keys.unique(project), *values) for project in projects))
                known = [(p, id.decode()) for p, some in zip(projects, answers, strict=True) for id in some if id]
                return (row for row in self._load_stored(kind, known).values() if row is not None)  # type: ignore[misc]
        spans = _spans(kind, where)
        if spans is None:
            answers = self._ask(projects, *(("HVALS", keys.rows(table, project)) for project in projects))
            return (decoded(kind, data, self._store.url) for some in answers for data in some)
        asked = [(project, span) for project in projects for span in spans]
        if not asked:
            return []
        answers = self._ask(projects, *(self._range(kind, project, span) for project, span in asked))
        found_ids = [
            (project, _id_of(kind, span.field, member))
            for (project, span), members in zip(asked, answers, strict=True)
            for member in members
        ]
        return (row for row in self._load_stored(kind, found_ids).values() if row is not None)  # type: ignore[misc]

    def _range(self, kind: type[Row], project: str, span: Span) -> Command:
        return ("ZRANGE", self._keys.index(KINDS[kind].table, span.field, project), span.low, span.high, "BYLEX")

    # --- a page, without reading everything ---

    def _walk(self, kind: type[Row], where: Where, order: str, after: tuple[Any, str] | None) -> Span | None:
        """A part of an index whose order is the wanted one, behind `after`; None where there is none."""
        field = order.removeprefix("-")
        if any(isinstance(where.get(name), (str, tuple)) for name in ("id", *unique_alone(kind))):
            return None  # few rows, known by name
        spans = _spans(kind, where)
        if spans is not None:
            if len(spans) != 1 or not (spans[0].field == field or (field == "id" and spans[0].value is not None)):
                return None
            span = spans[0]
        elif field in INDEXES.get(kind, ()) and not is_nullable(kind, field):
            span = Span(field, b"-", b"+")
        else:
            return None
        if after is None:
            return span
        value = span.value if span.value is not None else after[0]
        if value is None or (span.value is not None and field == span.field and after[0] != span.value):
            return None
        here = after[1].encode() if span.field == "id" else ordered(value) + after[1].encode()
        if order != field:
            return span._replace(high=b"(" + here) if _inside(span, here) else None
        return span._replace(low=b"(" + here) if _inside(span, here) else None

    def _paged(
        self,
        kind: type[R],
        project: str,
        span: Span,
        where: Where,
        order: str,
        after: tuple[Any, str] | None,
        limit: int,
    ) -> list[R]:
        mine = self._mine.get(kind, {})
        is_exact = (span.value is not None and where.keys() <= {"project", span.field}) or where.keys() == {"project"}
        falling = order.startswith("-")
        size = limit if is_exact else max(2 * limit, 64)
        found: list[R] = []
        while len(found) < limit:
            ends = (span.high, span.low) if falling else (span.low, span.high)
            how = ("REV",) if falling else ()
            key = self._keys.index(KINDS[kind].table, span.field, project)
            (members,) = self._ask((project,), ("ZRANGE", key, *ends, "BYLEX", *how, "LIMIT", 0, size + len(mine)))
            ids = [(project, _id_of(kind, span.field, member)) for member in members]
            rows = self._load_stored(kind, [id for id in ids if id not in mine])
            found += [row for row in rows.values() if row is not None and matches(row, where)]  # type: ignore[misc]
            if len(members) < size + len(mine):
                break
            span = span._replace(high=b"(" + members[-1]) if falling else span._replace(low=b"(" + members[-1])
            size = min(2 * size, MANY)
        changed = [row for row in mine.values() if row is not None and matches(row, where)]
        return selected([*found, *changed], {}, order, after, limit)  # type: ignore[list-item]  # the kind's own

    def _counted_by_index(self, kind: type[Row], where: Where, by: str) -> dict[Any, int] | None:
        """Without reading rows, where the only filter is equality with values of an indexed field."""
        project = where.get("project")
        if by not in where or where.keys() != {"project", by} or not isinstance(project, str):
            return None
        if by not in INDEXES.get(kind, ()) or by == "id" or not _is_equality(kind, by, where[by]):
            return None
        values = list(dict.fromkeys(_each(where[by])))
        if not values:
            return {}
        key = self._keys.index(KINDS[kind].table, by, project)
        spans = [_equal(by, value) for value in values]
        answers = self._ask((project,), *(("ZLEXCOUNT", key, span.low, span.high) for span in spans))
        counts = Counter(dict(zip(values, answers, strict=True)))
        for id, row in self._mine.get(kind, {}).items():
            for version, change in ((self._stored[kind][id], -1), (row, 1)):
                if version is not None and matches(version, where):
                    counts[getattr(version, by)] += change
        return {value: n for value, n in counts.items() if n}

    # --- lanes and due tasks ---

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        def found() -> dict[str, list[Head]]:
            (stored,) = self._ask((project,), ("ZRANGE", self._keys.lanes(project), 0, -1))
            mine = {task.lane for task in self._changed(project) if task.lane is not None}
            lanes = sorted({name.decode() for name in stored} | mine)
            heads = zip(lanes, self._heads(project, lanes, None, depth), strict=True)
            return {lane: some for lane, some in heads if some}

        return self._answer(found)

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        return self._answer(lambda: self._heads(project, [lane], after, limit)[0])

    def _heads(self, project: str, lanes: Sequence[str], after: Head | None, limit: int) -> list[list[Head]]:
        if not lanes:
            return []
        mine = {id: task for (name, id), task in self._mine.get(Task, {}).items() if name == project}
        most, low = limit + len(mine), names.behind(after)
        answers = self._ask(
            (project,),
            *(("ZRANGE", self._keys.lane(project, lane), low, "+", "BYLEX", "LIMIT", 0, most) for lane in lanes),
        )
        found = []
        for lane, members in zip(lanes, answers, strict=True):
            heads = [head for head in map(names.head_of, members) if head.id not in mine]
            heads += [head for task in self._changed(project) if task.lane == lane and (head := _head(task))]
            found.append(sorted(head for head in heads if after is None or head > after)[:limit])
        return found

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        def found() -> list[Task]:
            mine = self._mine.get(Task, {})
            projects = [project] if project is not None else sorted({*self._projects(), *(name for name, _ in mine)})
            if limit <= 0 or not projects:
                return []
            most = limit + len(mine)
            # `until` itself is included
            high = b"+" if until >= (1 << 63) - 1 else b"(" + names.number(until + 1)
            answers = self._ask(
                projects,
                *(("ZRANGE", self._keys.due(p), "-", high, "BYLEX", "LIMIT", 0, most) for p in projects),
            )
            keys = [(p, m[8:].decode()) for p, some in zip(projects, answers, strict=True) for m in some]
            rows = self._current(Task, [key for key in keys if key not in mine])
            rows += [task for p in projects for task in self._changed(p)]
            return selected((t for t in rows if t.due_at is not None and t.due_at <= until), {}, "due_at", None, limit)

        return self._answer(found)

    def next_due(self, project: str) -> int | None:
        if any(name == project for name, _ in self._mine.get(Task, {})):
            tasks = self.due(project, (1 << 63) - 1, 1)
            return tasks[0].due_at if tasks else None

        def found() -> int | None:
            self._to_hold.setdefault(project)  # asks for it with the project's version
            self._enter((project,))
            if project not in self._first_due:
                self._ask(())
            members = self._first_due[project]
            return int.from_bytes(members[0][:8], "big") - (1 << 63) if members else None

        return self._answer(found)

    def is_due(self, project: str) -> bool:
        first = self.next_due(project)
        return first is not None and first <= self.now

    def _changed(self, project: str) -> list[Task]:
        """The tasks of a project that this transaction has changed, as they now are."""
        mine = self._mine.get(Task, {})
        return [task for (name, _), task in mine.items() if name == project and task is not None]  # type: ignore[misc]


def _each(wanted: Any) -> tuple[Any, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def _is_equality(kind: type[Row], field: str, wanted: Any) -> bool:
    """Whether the filter names values that an index has."""
    if wanted is None or not isinstance(wanted, (str, int, tuple)):
        return False
    fits = str if is_text(kind, field) else int
    return all(isinstance(value, fits) for value in _each(wanted))


def _spans(kind: type[Row], where: Where) -> list[Span] | None:
    """Parts of one index that have every row that matches; None where no index helps."""
    fields = [field for field in INDEXES.get(kind, ()) if field != "id"]
    for field in fields:
        if _is_equality(kind, field, where.get(field)):
            return [_equal(field, value) for value in dict.fromkeys(_each(where[field]))]
    for field in fields:
        wanted = where.get(field)
        if isinstance(wanted, Prefix) and wanted.text:
            start = names.text(wanted.text)[:-1]
            return [Span(field, b"[" + start, b"(" + start + END)]
        if isinstance(wanted, Range) and (wanted.low is not None or wanted.high is not None):
            low = b"-" if wanted.low is None else b"[" + ordered(wanted.low)
            return [Span(field, low, b"+" if wanted.high is None else b"(" + ordered(wanted.high))]
    return None


def _equal(field: str, value: Any) -> Span:
    start = ordered(value)
    return Span(field, b"[" + start, b"(" + start + END, value)


def _inside(span: Span, member: bytes) -> bool:
    """Whether that member would be in the part, so that one of its ends may be put there."""
    return (span.low == b"-" or member >= span.low[1:]) and (span.high == b"+" or member < span.high[1:])


def _id_of(kind: type[Row], field: str, member: bytes) -> str:
    if field == "id":
        return member.decode()
    return names.id_after_text(member) if is_text(kind, field) else names.id_after_number(member)


def _head(task: Task) -> Head:
    return Head(task.band, task.rank, task.sequence, task.id, task.plain)
