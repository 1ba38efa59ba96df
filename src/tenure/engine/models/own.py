"""A user's own tables, which come before those that ship as data: paths of files; `tiering` and `pricing` read them."""

from __future__ import annotations

from typing import NamedTuple


class Own(NamedTuple):
    """None: what ships is all."""

    prices: str | None = None
    tiers: str | None = None
