"""Looks that take several requests: lists beyond what a server gives at once, and names that one URL cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tenure.core import limits
from tenure.core.queries import Log, Query, States, Tasks
from tenure.core.records import replace

PAGE = 500
MOST_NAMED = limits.TASKS_PER_QUERY


def pieces(query: Query) -> Iterator[Query]:
    """The query, or several that ask for the same together."""
    if not isinstance(query, States):
        yield query
        return
    for start in range(0, len(query.tasks), MOST_NAMED):
        yield replace(query, tasks=query.tasks[start : start + MOST_NAMED])


def first_page(query: Query) -> Query:
    """The newest of the log come in one answer; other long lists page by page."""
    if isinstance(query, Tasks) or (isinstance(query, Log) and not query.last):
        return replace(query, limit=min(query.limit, PAGE))
    return query


def next_page(asked: Query, seen: Mapping[str, Any], so_far: int, wanted: Query) -> Query | None:
    """What to ask for next, until there are as many as were wanted, or no more."""
    if not isinstance(asked, (Tasks, Log)) or seen["next"] is None:
        return None
    assert isinstance(wanted, (Tasks, Log))
    left = wanted.limit - so_far
    if left <= 0 or (isinstance(asked, Log) and asked.last):
        return None
    after = seen["next"]
    if isinstance(asked, Tasks):
        value, id = msgspec.json.decode(after)
        return replace(asked, after=(value, id), limit=min(left, PAGE))
    return replace(asked, after=int(after), limit=min(left, PAGE))
