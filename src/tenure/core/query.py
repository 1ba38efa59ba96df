"""What every query has: its declaration and its project. And the queries of the sealed log.

Each of those first seals the committed events, so that the answer is about all of them; but what a viewer asks writes
nothing, so it is about the seals that there are. `store`: about the events that belong to no project, as those of keys
and members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from tenure.core import limits
from tenure.core.commands.command import PROJECT, Declaration
from tenure.core.errors import InvalidInput

T = TypeVar("T")
AT = "at"  # a text, although fields of that name are instants elsewhere


class Page(list[T]):
    """The rows of a list that stops at its `limit`, and whether there are more.

    `next` is `after` of the next page: None at the end, and in lists that have one page. `largest`: `limit` at most.
    """

    def __init__(self, rows: Iterable[T] = (), *, more: bool = False, next: Any = None, largest: int = 0) -> None:
        super().__init__(rows)
        self.more, self.next, self.largest = more, next, largest


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="query", tag=str.lower, forbid_unknown_fields=True):
    """`project` is the scope; queries of the store as a whole have the project ""."""

    declaration: ClassVar[Declaration]
    largest: ClassVar[int] = 0
    """The largest `limit`. A query that has this field sets it, and its answer is a Page."""

    project: str = ""

    @property
    def is_costly(self) -> bool:
        """Whether few of it are answered at once."""
        return self.declaration.costly or getattr(self, AT, None) is not None

    def cursor(self, last: Mapping[str, Any]) -> Any:
        """`after` of the page behind this row; None for a list that has one page."""
        return None

    def kept(self, rows: Sequence[T], limit: int) -> Sequence[T]:
        """The rows that the page has, of more than it may have."""
        return rows[:limit]


class EventQuery(Query, frozen=True, kw_only=True):
    """Events, oldest first: the newest `limit`, or with `last` off the first behind `after`."""

    largest: ClassVar = limits.EVENTS_LISTED

    after: int = 0
    limit: int = 100
    last: bool = True

    @property
    def is_costly(self) -> bool:
        return self.limit > limits.LISTED

    def cursor(self, last: Mapping[str, Any]) -> int | None:
        return None if self.last else last["sequence"]

    def kept(self, rows: Sequence[T], limit: int) -> Sequence[T]:
        return rows[-limit:] if self.last else rows[:limit]


def check_limit(query: Query) -> None:
    """Refuse a `limit` that no answer keeps: with fewer rows than were asked for, a list would look whole."""
    if query.largest and not 1 <= (limit := _limit(query)) <= query.largest:
        has_pages = "after" in query.__struct_fields__
        way = "`after` takes the `next` of the page before" if has_pages else "narrow the filters"
        raise InvalidInput(f"limit must be from 1 to {query.largest} (got {limit})", way if limit > 1 else None)


def page_of(query: Query, found: Sequence[Any]) -> Page[Any]:
    """The page of a query that was asked for one row more than its limit. `found` may be a page already."""
    limit = _limit(query)
    if len(found) <= limit:
        more, next = (found.more, found.next) if isinstance(found, Page) else (False, None)
        return Page(found, more=more, next=next, largest=query.largest)
    rows = query.kept(found, limit)
    return Page(rows, more=True, next=query.cursor(rows[-1]), largest=query.largest)


def _limit(query: Query) -> int:
    limit: int = query.limit  # type: ignore[attr-defined]  # a query with `largest` has this field
    return limit


_AUDIT = PROJECT + "/audit"


class AuditHead(Query, frozen=True, kw_only=True):
    """The head of the sealed log: keep it elsewhere, and `verify` finds a log that was cut off or written again."""

    declaration: ClassVar = Declaration("audit", "viewer", "GET", _AUDIT + "/head", costly=True)

    store: bool = False


class VerifyAudit(Query, frozen=True, kw_only=True):
    """Check every sealed event and every signature; `head` is one that was kept elsewhere, as NUMBER:SHA256."""

    declaration: ClassVar = Declaration("audit", "viewer", "GET", _AUDIT + "/verify", costly=True)

    head: str | None = None
    store: bool = False


class AuditPage(Query, frozen=True, kw_only=True):
    """A page of the export: its lines, and `next`, which is `after` of the next page."""

    declaration: ClassVar = Declaration("audit", "owner", "GET", _AUDIT + "/export", costly=True)

    after: str | None = None
    store: bool = False


class Attest(Query, frozen=True, kw_only=True):
    """The head, signed with the server's key."""

    declaration: ClassVar = Declaration("audit", "member", "GET", _AUDIT + "/attestation", costly=True)

    store: bool = False
