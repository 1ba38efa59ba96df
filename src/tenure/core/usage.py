"""Usage: running totals of a model under a claim, so that a repeated, late or out-of-order report adds nothing that was
not spent.

A report is a model's total under the claim, or with an operation (`review`, `tests`) the part for that. Each (model,
operation) has at most two rows: what the receipt reported while valid, and what it reported when stale. A report takes
what its other rows do not have. The row without an operation keeps the rest that no operation explains: it becomes
smaller by what an operation takes over. An operation that is named late may be a part of a timely total: that part
stays timely, under its name, and only the excess is late. No other row ever falls; except a computed
cost, which the agent's own report replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.core import inputs, limits, money
from tenure.core.commands import Totals
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.records import Claim, Usage, replace

MOST_TOKENS = limits.USAGE_TOKENS
LONGEST = limits.USAGE_DURATION
TOKENS = ("fresh", "cached", "written", "output")
SUMMED = (*TOKENS, "duration", "cost")
COUNTED = ("fresh", "written", "output")  # by budgets in tokens: cached tokens were counted when first read


class Spent(NamedTuple):
    """Checked totals, in the units of a row."""

    model: str
    fresh: int
    cached: int
    written: int
    output: int
    cost: int | None
    duration: int
    operation: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        return self.model, self.operation


def check_totals(totals: Totals) -> Spent:
    inputs.check_list((totals.model,), "model")
    if totals.operation:
        inputs.check_list((totals.operation,), "operation")
    for name in TOKENS:
        if not 0 <= getattr(totals, name) <= MOST_TOKENS:
            raise InvalidInput(f"{name} must be from 0 to {MOST_TOKENS} tokens (got {getattr(totals, name)})")
    return Spent(
        totals.model, totals.fresh, totals.cached, totals.written, totals.output,
        None if totals.cost_usd is None else money.parse_usd(totals.cost_usd),
        inputs.micros(totals.duration, "duration", high=LONGEST), totals.operation,
    )  # fmt: skip


def check_all(reported: Iterable[Totals]) -> tuple[Spent, ...]:
    checked = tuple(check_totals(totals) for totals in reported)
    check_pairs({spent.pair for spent in checked})
    return checked


def check_pairs(pairs: set[tuple[str, str]]) -> None:
    if len(pairs) > limits.USAGE_MODELS:
        raise TooLarge(
            f"a claim may report at most {limits.USAGE_MODELS} pairs of model and operation (got {len(pairs)})"
        )


def usage_id(claim: str, model: str, late: bool, operation: str = "") -> str:
    """A claim's id has no colon, and a model's name that ends in `:late` differs by the `|` that no name has."""
    return f"{claim}:{model}{named_part(operation)}{'|late' if late else ''}"


def named_part(operation: str) -> str:
    """What an operation adds to the id of its row; `=` keeps one called `late` apart."""
    return f"|operation={operation}" if operation else ""


def booked(
    claim: Claim,
    spent: Spent,
    kept: Usage | None,
    others: Sequence[Usage] = (),
    *,
    late: bool,
    now: int,
    price: Callable[[Usage], int | None] = lambda _: None,
) -> Usage:
    """The row after a report: each total at its highest reported value, less what the `others` of the report hold.

    `price` computes the cost where none was reported.
    """
    row = kept or _row(claim, spent, late=late, now=now)
    totals = {
        name: max(getattr(row, name), getattr(spent, name) - sum(getattr(other, name) for other in others))
        for name in (*TOKENS, "duration")
    }
    grown = replace(row, **totals)
    if spent.cost is not None:
        so_far = 0 if row.computed else row.cost or 0
        elsewhere = sum((other.cost or 0) + other.rejected for other in others) + row.rejected
        grown = replace(grown, cost=max(so_far, spent.cost - elsewhere), computed=False)
    elif (row.cost is None or row.computed) and (found := price(grown)) is not None:
        grown = replace(grown, cost=found, computed=True)
    return grown if grown == row else replace(grown, at=now)


def changed(
    claim: Claim,
    spent: Spent,
    rows: Mapping[str, Usage],
    *,
    late: bool,
    now: int,
    price: Callable[[Usage], int | None] = lambda _: None,
) -> dict[str, Usage]:
    """What a report changes in the claim's rows, by their ids."""
    found: dict[str, Usage] = {}
    if late:
        found = {row.id: row for row in _named_later(claim, spent, rows, price, now)}
    rows = {**rows, **found}
    kept = rows.get(usage_id(claim.id, spent.model, late, spent.operation))
    row = booked(claim, spent, kept, included(spent, late, rows.values()), late=late, now=now, price=price)
    is_new = kept is None and (not late or any(getattr(row, name) for name in SUMMED))
    if row != kept and (kept is not None or is_new):
        found[row.id] = row
        rest = rows.get(usage_id(claim.id, spent.model, late)) if spent.operation else None
        if rest is not None and (less := without(rest, kept, row, price)) != rest:
            found[less.id] = less
    return found


def _row(claim: Claim, spent: Spent, *, late: bool, now: int) -> Usage:
    return Usage(
        project=claim.project,
        id=usage_id(claim.id, spent.model, late, spent.operation),
        task=claim.task,
        generation=claim.generation,
        agent=claim.agent,
        session=claim.session,
        model=spent.model,
        late=late,
        at=now,
        operation=spent.operation,
    )


def included(spent: Spent, late: bool, rows: Iterable[Usage]) -> list[Usage]:
    """The other rows that this report includes: a model's total all of its rows, an operation's its own late or timely
    one."""
    return [
        row
        for row in rows
        if row.model == spent.model
        and (row.operation, row.late) != (spent.operation, late)
        and spent.operation in ("", row.operation)
    ]


def without(rest: Usage, before: Usage | None, after: Usage, price: Callable[[Usage], int | None]) -> Usage:
    """The row without an operation, less what the row of an operation has grown by: it was a part of the total."""
    grown = {name: getattr(after, name) - (getattr(before, name) if before else 0) for name in (*TOKENS, "duration")}
    less = replace(rest, **{name: max(0, getattr(rest, name) - by) for name, by in grown.items()})
    if rest.computed:
        return replace(less, cost=price(less))
    if rest.cost is None:
        return less
    return replace(less, cost=max(0, rest.cost - max(0, (after.cost or 0) - (before.cost or 0 if before else 0))))


def _named_later(
    claim: Claim, spent: Spent, rows: Mapping[str, Usage], price: Callable[[Usage], int | None], now: int
) -> tuple[Usage, ...]:
    """For an operation that is named late: the timely rest less what it explains, and the operation's timely row.

    It explains late reports first. The two rows keep their sum.
    """
    rest = rows.get(usage_id(claim.id, spent.model, late=False))
    if rest is None or not spent.operation:
        return ()
    known = [row for row in rows.values() if row.model == spent.model and row.operation == spent.operation]
    known += [row for row in (rows.get(usage_id(claim.id, spent.model, late=True)),) if row is not None]

    def part(name: str) -> int:
        reported = getattr(spent, name) or 0
        return max(0, min(reported - sum(getattr(row, name) or 0 for row in known), getattr(rest, name) or 0))

    moved = {name: part(name) for name in (*TOKENS, "duration")}
    if not any(moved.values()):
        return ()
    timely = rows.get(usage_id(claim.id, spent.model, False, spent.operation))
    before = timely or _row(claim, spent, late=False, now=now)
    after = replace(before, **{name: getattr(before, name) + by for name, by in moved.items()}, at=now)
    less = replace(rest, **{name: getattr(rest, name) - by for name, by in moved.items()})
    if rest.computed:
        return replace(less, cost=price(less)), replace(after, cost=price(after), computed=True)
    if rest.cost is None:
        return less, after
    cost = part("cost") if spent.cost is not None else min(price(replace(after, **moved)) or 0, rest.cost)
    return replace(less, cost=rest.cost - cost), replace(after, cost=(before.cost or 0) + cost)


# --- whether a result is worth its tokens -------------------------------------------------------------------
#
# Lines are as the submitter counts them; a test file counts for as many lines as a small test has.

BASELINE = 150  # tokens per changed line
TEST_FILE = 40  # lines


def is_thin(tokens: int, lines: int, test_files: int, baseline: int = BASELINE) -> bool:
    """Whether fewer than half of the expected lines were changed."""
    return tokens >= limits.EFFICIENCY_MIN and 2 * (lines + TEST_FILE * test_files) * baseline < tokens


def thin_text(tokens: int, lines: int, test_files: int, baseline: int = BASELINE) -> str:
    tests = f" and {test_files} test files" if test_files else ""
    return f"review: {lines} changed lines{tests} for {tokens:,} tokens, {tokens // baseline} lines expected"
