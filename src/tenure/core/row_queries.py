"""The queries of a transaction whose rows are in memory: the memory store's, and one on the past."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from tenure.core.filters import Where, matches, selected, sums_of
from tenure.core.records import Row, Task

R = TypeVar("R", bound=Row)
Key = tuple[str, str]  # project and id


class RowQueries:
    now: int

    def _rows(self, kind: type[R]) -> Mapping[Key, R]:
        raise NotImplementedError

    def _among(self, kind: type[R], where: Where, *fields: str) -> Collection[R]:
        """All rows that match, and others. `fields`: those that the query sorts or groups by, or adds up."""
        return self._rows(kind).values()

    def load(self, kind: type[R], keys: Collection[Key]) -> list[R]:
        rows = self._rows(kind)
        return [rows[key] for key in dict.fromkeys(keys) if key in rows]

    def find(
        self,
        kind: type[R],
        where: Where,
        *,
        order: str = "id",
        after: tuple[Any, str] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        return selected(self._among(kind, where, order.removeprefix("-")), where, order, after, limit)

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        return dict(Counter(getattr(row, by) for row in self._among(kind, where, by) if matches(row, where)))

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        return sums_of((row for row in self._among(kind, where, by, *fields) if matches(row, where)), by, fields)

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        return min(most, sum(matches(row, where) for row in self._among(kind, where)))

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        found = [task for task in self._due(project) if (task.due_at or 0) <= until]
        return sorted(found, key=lambda task: (task.due_at, task.id))[:limit]

    def next_due(self, project: str) -> int | None:
        return min((task.due_at or 0 for task in self._due(project)), default=None)

    def is_due(self, project: str) -> bool:
        first = self.next_due(project)
        return first is not None and first <= self.now

    def _due(self, project: str | None) -> list[Task]:
        tasks = self._rows(Task).values()
        return [task for task in tasks if task.due_at is not None and project in (None, task.project)]

    def expect(self, queries: Sequence[object]) -> None:
        """Does nothing: a query needs no round trip."""
