"""Rows of models in trouble, and of what finished tasks took."""

from __future__ import annotations

import msgspec

from tenure.core.row import Row


class Model(Row, frozen=True, kw_only=True):
    """A model that was rate limited, by name; it goes with its next success."""

    troubles: int = 0
    cool_until: int | None = None
    tried_by: str | None = None  # half-open: the claim that tries it; while that lives nobody else does


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A task that came to its end, and what it took."""

    task: str
    estimate: int | None  # tokens that were expected before; None: nobody could say
    tokens: int
    cost: int | None  # nano-dollars; None: not known


class LikeTasks(Row, frozen=True, kw_only=True):
    """What the last tasks of one type and size took; its id is `TYPE|SIZE`. Rows of both are bounded."""

    type: str
    size: str  # as core/estimates.py names it
    finished: tuple[Finished, ...] = ()  # oldest first
