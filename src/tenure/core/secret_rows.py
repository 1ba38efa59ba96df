"""The rows of sealing; `sealed.py` has the rules."""

from __future__ import annotations

from tenure.core.row import Row


class DataKey(Row, frozen=True, kw_only=True):
    """A key that seals the secrets of one project, wrapped by the master key; without that one it is useless.

    The row with the id `digest` is the project's digest key; it is never retired.
    """

    wrapped: bytes
    created_at: int
    retired_at: int | None = None  # since then it only opens: a newer key seals
