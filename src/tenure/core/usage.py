"""Usage: running totals of a model under a claim, so that a repeated, late or out-of-order report adds nothing that was
not spent.

A claim has at most two rows per model: what its receipt reported while valid, and what it reported when stale. A report
is the total of both, so each row takes what the other does not have, and neither ever falls; except a computed cost,
which the agent's own report replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tenure.core import inputs, limits, money
from tenure.core.commands import Totals
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.records import Claim, Usage, replace

MOST_TOKENS = limits.USAGE_TOKENS
LONGEST = limits.USAGE_DURATION
TOKENS = ("fresh", "cached", "written", "output")
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


def check_totals(said: Totals) -> Spent:
    inputs.check_list((said.model,), "model")
    for name in TOKENS:
        if not 0 <= getattr(said, name) <= MOST_TOKENS:
            raise InvalidInput(f"{name} must be from 0 to {MOST_TOKENS} tokens (got {getattr(said, name)})")
    return Spent(
        said.model, said.fresh, said.cached, said.written, said.output,
        None if said.cost_usd is None else money.parse_usd(said.cost_usd),
        inputs.micros(said.duration, "duration", high=LONGEST),
    )  # fmt: skip


def check_all(said: Iterable[Totals]) -> tuple[Spent, ...]:
    checked = tuple(check_totals(totals) for totals in said)
    check_models({spent.model for spent in checked})
    return checked


def check_models(models: set[str]) -> None:
    if len(models) > limits.USAGE_MODELS:
        raise TooLarge(f"a claim may report at most {limits.USAGE_MODELS} models (got {len(models)})")


def usage_id(claim: str, model: str, late: bool) -> str:
    """A claim's id has no colon, and a model's name that ends in `:late` differs by the `|` that no name has."""
    return f"{claim}:{model}|late" if late else f"{claim}:{model}"


def booked(
    claim: Claim,
    spent: Spent,
    kept: Usage | None,
    other: Usage | None,
    *,
    late: bool,
    now: int,
    price: Callable[[Usage], int | None] = lambda _: None,
) -> Usage:
    """The row after a report: each total at its highest reported value, less what the other row holds.

    `price` computes the cost where none was reported.
    """
    row = kept or Usage(
        project=claim.project,
        id=usage_id(claim.id, spent.model, late),
        task=claim.task,
        generation=claim.generation,
        agent=claim.agent,
        session=claim.session,
        model=spent.model,
        late=late,
        at=now,
    )
    totals = {
        name: max(getattr(row, name), getattr(spent, name) - (getattr(other, name) if other else 0))
        for name in (*TOKENS, "duration")
    }
    grown = replace(row, **totals)
    if spent.cost is not None:
        so_far = 0 if row.computed else row.cost or 0
        grown = replace(grown, cost=max(so_far, spent.cost - (other.cost or 0 if other else 0)), computed=False)
    elif (row.cost is None or row.computed) and (found := price(grown)) is not None:
        grown = replace(grown, cost=found, computed=True)
    return grown if grown == row else replace(grown, at=now)


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
