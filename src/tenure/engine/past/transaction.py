"""A read transaction on rows of the past, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from tenure.core.errors import Bug
from tenure.core.events import Event
from tenure.core.filters import Where, matches
from tenure.core.records import Row
from tenure.core.row_queries import RowQueries

R = TypeVar("R", bound=Row)
Tables = Mapping[type[Row], Mapping[tuple[str, str], Row]]


class PastTransaction(RowQueries):
    """Implements the reading half of the port's Transaction."""

    behind = jump = 0

    def __init__(self, tables: Tables, log: Sequence[Event], now: int, epoch: str) -> None:
        self._tables, self._log, self.now, self.epoch = tables, log, now, epoch
        self._by_value: dict[tuple[type[Row], str], dict[Any, list[Row]]] = {}

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        found = [event for event in self._log if event.sequence > after and matches(event, where)]
        return found[-limit:] if last else found[:limit]

    def lock(self, name: str, projects: Collection[str]) -> None:
        """Does nothing: nobody else has these rows."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Bug("the past cannot be written to, and nobody can claim in it")

    save = append = drop_events = set_epoch = accept_clock = lanes = ready = _refuse

    def _among(self, kind: type[R], where: Where, *fields: str) -> Collection[R]:
        """The rows that have the first text that `where` names, by an index made on its first use: others cannot match.

        Without one a screen of 250 agents scanned all tasks 250 times.
        """
        field = next((name for name, wanted in where.items() if name != "project" and type(wanted) is str), None)
        if field is None:
            return self._rows(kind).values()
        index = self._by_value.get((kind, field))
        if index is None:
            index = self._by_value[kind, field] = {}
            for row in self._rows(kind).values():
                index.setdefault(getattr(row, field), []).append(row)
        return index.get(where[field], [])  # type: ignore[return-value]  # rows of that kind

    def _rows(self, kind: type[R]) -> Mapping[tuple[str, str], R]:
        return self._tables[kind]  # type: ignore[return-value]  # rows of a kind under their kind
