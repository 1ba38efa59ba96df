"""Rows of models in trouble, and of the usage of finished tasks."""

from __future__ import annotations

import msgspec

from tenure.core.row import Row


class Model(Row, frozen=True, kw_only=True):
    """A rate-limited model, by name; deleted at its next success."""

    troubles: int = 0
    cool_until: int | None = None
    tried_by: str | None = None  # half-open: the claim that tries it; while it is live no other does


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A finished task and its usage."""

    task: str
    estimate: int | None  # expected tokens; None: no estimate
    tokens: int
    cost: int | None  # nano-dollars; None: not known


class LikeTasks(Row, frozen=True, kw_only=True):
    """Usage of the last tasks of one type and size; its id is `TYPE|SIZE`. Rows of both are bounded."""

    type: str
    size: str  # as in core/estimates.py
    finished: tuple[Finished, ...] = ()  # oldest first
