"""Estimates of a task's tokens: as given in the task, from like tasks, or by its complexity, in this order.

Like tasks have the same type and size. The last few finished tasks of each such pair are kept (`LikeTasks`), and once
there are enough of them their median is the next one's estimate. Tokens are counted once: cached ones were counted
when they were first read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tenure.core import limits
from tenure.core.records import Finished, LikeTasks, Usage, replace

A_POINT = 1000  # tokens per point of complexity …
TESTS, BUFFER, PHASE = 1.2, 1.3, 1.15  # … and the factors on top of it
LARGEST_SIZE = limits.ESTIMATE_SIZE
ENOUGH = 5  # finished tasks until their median counts
KEPT = limits.FINISHED_KEPT
MOST_SIZES = limits.ESTIMATE_SIZES
NEAR = 0.2  # an estimate within 20 % of the actual usage was good

SAID, LIKE, COMPLEXITY, NOTHING = "said", "like tasks", "complexity", "nothing"
Typical = Mapping[str, tuple[int, int | None]]  # as in Project


class Expected(NamedTuple):
    tokens: int | None
    cost: int | None  # nano-dollars of like tasks; None where unknown
    source: str


def expected(type: str, constraints: Mapping[str, Any], typical: Typical) -> Expected:
    """The estimate of a task, and its basis."""
    tokens, cost = typical.get(like(type, size_of(constraints)), (None, None))
    said = constraints.get("estimated_tokens")
    if said is not None:
        return Expected(said, None, SAID)
    if tokens is not None:
        return Expected(tokens, cost, LIKE)
    complexity = constraints.get("complexity")
    if complexity is not None:
        return Expected(by_complexity(complexity), None, COMPLEXITY)
    return Expected(None, None, NOTHING)


def by_complexity(points: float) -> int:
    return max(1, round(points * A_POINT * TESTS * BUFFER * PHASE))


def split(tokens: int, hundredths: Mapping[str, int]) -> dict[str, int]:
    """This many tokens split by price class; none is lost in rounding."""
    parts = {kind: tokens * share // 100 for kind, share in hundredths.items()}
    last = next(reversed(parts))
    return parts | {last: parts[last] + tokens - sum(parts.values())}


def size_of(constraints: Mapping[str, Any]) -> str:
    """The size class: points of complexity, rounded up; `?` for a task of unknown size."""
    points = constraints.get("complexity")
    if points is None:
        said = constraints.get("estimated_tokens")
        if said is None:
            return "?"
        points = said / by_complexity(1)
    return f"{LARGEST_SIZE}+" if points > LARGEST_SIZE else str(max(1, -int(-points // 1)))


def like(type: str, size: str) -> str:
    """The id of the history of such tasks; no type has a `|`."""
    return f"{type}|{size}"


# --- learning -----------------------------------------------------------------------------------------------


def tokens_of(usage: Usage) -> int:
    return usage.fresh + usage.written + usage.output


def learnt(row: LikeTasks, finished: Finished) -> LikeTasks:
    """The row with one more task; a task already in it keeps its estimate and is counted once."""
    before = next((f for f in row.finished if f.task == finished.task), None)
    if before is not None:
        finished = replace(finished, estimate=before.estimate)
    others = tuple(f for f in row.finished if f is not before)
    return replace(row, finished=(*others, finished)[-KEPT:])


def typical_of(row: LikeTasks) -> tuple[int, int | None] | None:
    """Median tokens and cost, once there are enough."""
    if len(row.finished) < ENOUGH:
        return None
    costs = [f.cost for f in row.finished if f.cost is not None]
    return median([f.tokens for f in row.finished]), median(costs) if len(costs) >= ENOUGH else None


def median(values: Sequence[int]) -> int:
    """Of at least one; between the two in the middle of an even number."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) // 2


# --- how good estimates were ----------------------------------------------------------------------------------


class Goodness(NamedTuple):
    """Shares are of one: an error of 0.2 is 20 % of the actual usage."""

    tasks: int  # that had an estimate
    median_error: float | None
    within: float | None  # the share of them whose error was at most NEAR


def goodness(finished: Sequence[Finished]) -> Goodness:
    errors = [abs(f.estimate - f.tokens) / f.tokens for f in finished if f.estimate is not None and f.tokens > 0]
    if not errors:
        return Goodness(0, None, None)
    middle = median([round(error * 1_000_000) for error in errors]) / 1_000_000
    return Goodness(len(errors), middle, sum(error <= NEAR for error in errors) / len(errors))
