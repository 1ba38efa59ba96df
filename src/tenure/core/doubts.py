"""How much of a stated cost is believed before a person has looked: ten times what its tokens are worth.

Everything that is reported is booked and shown. The part of an attempt's cost beyond the limit is *doubtful*: budgets
do not count it until a person confirms it. The sum of the attempt is judged, not the single report, so that many small
ones are one large one; tokens that arrive later lift the doubt by themselves. What a person rejects is taken out of
the cost and kept beside it, so that the same total sent again adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tenure.core import limits, money
from tenure.core.budgets import TOKENS, USD
from tenure.core.models import tokens_of
from tenure.core.records import Usage, replace

TIMES = limits.USAGE_BELIEVED
LEAST = limits.USAGE_NOT_DOUBTED * money.NANO  # of an attempt: below it nothing is doubted


class Worth(NamedTuple):
    """What a cost is compared with, in nano-dollars."""

    tokens: Callable[[Usage], int]  # of a row with tokens: what they cost, at the dearest price where theirs is unknown
    task: Callable[[], int]  # where a cost came without tokens: what the task may or will probably cost


def counted(row: Usage) -> int:
    """The part of the row's cost that budgets count."""
    return (row.cost or 0) - (row.doubtful or 0)


# What budgets count of a row, by their currency.
AMOUNT: dict[str, Callable[[Usage], int]] = {USD: counted, TOKENS: tokens_of}


def judged(rows: Iterable[Usage], worth: Worth) -> tuple[Usage, ...]:
    """Those rows of one attempt whose doubtful part changes.

    The rows furthest above what they are worth hold it.
    """
    rows = sorted(rows, key=lambda row: row.id)
    doubt = sum(row.cost or 0 for row in rows) - LEAST
    over: dict[str, int] = {}
    if doubt > 0:
        doubt, over = _beyond(rows, worth)
    held: dict[str, int | None] = {}
    for row in sorted(rows, key=lambda row: -over.get(row.id, 0)):
        part = max(0, min(doubt, row.cost or 0)) if row.id in over else 0
        held[row.id] = part or None
        doubt -= part
    return tuple(replace(row, doubtful=held[row.id]) for row in rows if row.doubtful != held[row.id])


def _beyond(rows: Sequence[Usage], worth: Worth) -> tuple[int, dict[str, int]]:
    """How far the attempt's cost is above the believed one, and each stated cost above its worth."""
    believed, over = 0, {}
    stated_alone = False
    for row in rows:
        if row.computed:
            believed += row.cost or 0
        elif row.cost is not None:
            has_tokens = bool(row.fresh or row.cached or row.written or row.output)
            of_row = worth.tokens(row) if has_tokens else 0
            stated_alone |= bool(row.cost) and not has_tokens
            believed += of_row
            over[row.id] = row.cost - TIMES * of_row
    if stated_alone:
        believed += worth.task()
    limit = max(LEAST, TIMES * believed) + sum(row.confirmed for row in rows)
    return sum(row.cost or 0 for row in rows) - limit, over


def confirmed(row: Usage) -> Usage:
    """A person has confirmed it: all of it counts, also a rejected part."""
    return replace(
        row, cost=_with_rejected(row), confirmed=row.confirmed + (row.doubtful or 0) + row.rejected, doubtful=None,
        rejected=0,
    )  # fmt: skip


def rejected(row: Usage) -> Usage:
    """A person has rejected it: it was not spent, nor was a confirmed part."""
    out = min(row.cost or 0, (row.doubtful or 0) + row.confirmed)
    if not out:
        return row
    return replace(row, cost=(row.cost or 0) - out, confirmed=0, doubtful=None, rejected=row.rejected + out)


def undecided(row: Usage) -> Usage:
    """As if nobody had decided: to be judged again."""
    return replace(row, cost=_with_rejected(row), confirmed=0, rejected=0)


def _with_rejected(row: Usage) -> int | None:
    return row.cost if not row.rejected else (row.cost or 0) + row.rejected
