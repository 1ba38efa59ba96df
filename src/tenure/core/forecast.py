"""Forecasts: when the remaining tasks end and what they cost, from many runs with attempts drawn from finished ones.

A *sample* is the attempts of finished tasks that a task may turn out like: of its type and size, else of its type, else
of the project. A task with its own estimate, or in a project without a history, gets a *guess*: the estimate times a
spread. Each run first draws a history from the history and then its attempts from that, so that few finished tasks give
a wide forecast: the bootstrap shows the doubt, not only the variation.

Everything follows from the seed: the fractions are bytes of a hash, the same on every machine.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tenure.core import budgets, limits
from tenure.core.models import ENOUGH, like, median, size_of
from tenure.core.records import Budget, replace
from tenure.core.simulation import AGENT, DEPENDENCY, START, TIME, Attempt, Draws, Played

LIKE, TYPE, PROJECT, ESTIMATE, NOTHING = SOURCES = ("like tasks", "same type", "other tasks", "estimate", "nothing")
MEASURED = (LIKE, TYPE)  # the other sources are guesses
USUAL = 15 * 60 * 1_000_000  # a task of which nothing is known
# What tasks take of their estimate, where the project has no finished ones to compare: from a half to three times it.
SPREAD = (0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.3, 1.6, 2.1, 3.0)
PERCENTILES = (10, 50, 90)
REASONS = (DEPENDENCY, AGENT, TIME, START)


class FinishedTask(NamedTuple):
    """One ended attempt of the history; `estimate` is the task's own, in microseconds."""

    type: str
    size: str
    attempt: Attempt
    estimate: int | None = None


class Sample(NamedTuple):
    """What a task may turn out like, and where that comes from."""

    source: str
    attempts: tuple[Attempt, ...]


class Samples:
    """The history, by what it is asked for."""

    def __init__(self, finished: Sequence[FinishedTask]) -> None:
        of_size: dict[str, list[Attempt]] = {}
        of_type: dict[str, list[Attempt]] = {}
        for one in finished:
            of_size.setdefault(like(one.type, one.size), []).append(one.attempt)
            of_type.setdefault(one.type, []).append(one.attempt)
        self._of_size = {name: sample for name, a in of_size.items() if (sample := _sample(LIKE, a))}
        self._of_type = {name: sample for name, a in of_type.items() if (sample := _sample(TYPE, a))}
        self._of_project = _sample(PROJECT, [one.attempt for one in finished])
        ratios = [
            one.attempt.duration / one.estimate for one in finished if one.estimate and not one.attempt.error_class
        ]
        self._spread = tuple(ratios[: limits.FORECAST_SAMPLE]) if len(ratios) >= ENOUGH else SPREAD
        self._guesses: dict[tuple[str, int], Sample] = {}

    def of(self, type: str, constraints: Mapping[str, Any]) -> Sample:
        """The sample of a task, by the best source that has enough."""
        found = self._of_size.get(like(type, size_of(constraints)))
        if found is not None:
            return found
        estimate = constraints.get("estimated_duration")
        if estimate:
            return self._guess(ESTIMATE, round(estimate * 1_000_000))
        return self._of_type.get(type) or self._of_project or self._guess(NOTHING, USUAL)

    def _guess(self, source: str, duration: int) -> Sample:
        if (source, duration) not in self._guesses:
            made = tuple(Attempt(max(1, round(duration * ratio))) for ratio in self._spread)
            self._guesses[source, duration] = Sample(source, made)
        return self._guesses[source, duration]


def _sample(source: str, attempts: Sequence[Attempt]) -> Sample | None:
    """Usable with enough successes. A missing cost is the median of the others, where there are enough of them."""
    if sum(a.error_class is None for a in attempts) < ENOUGH:
        return None
    kept = attempts[: limits.FORECAST_SAMPLE]
    costs = [a.cost for a in kept if a.cost is not None]
    tokens = [a.tokens for a in kept if a.tokens is not None]
    cost = median(costs) if len(costs) >= ENOUGH else None
    token = median(tokens) if len(tokens) >= ENOUGH else None
    return Sample(
        source,
        tuple(
            a._replace(
                cost=(cost if a.cost is None else a.cost) if cost is not None else None,
                tokens=(token if a.tokens is None else a.tokens) if token is not None else None,
            )
            for a in kept
        ),
    )


# --- draws --------------------------------------------------------------------------------------------------


class ExpectedJob(NamedTuple):
    """The source of a job's draws."""

    sample: Sample
    cost: int | None = None  # of an attempt whose sample has no cost: its estimate
    tokens: int | None = None
    elapsed: int | None = None  # of a held task: how long its attempt already takes
    spent: int = 0  # by the held attempt so far
    spent_tokens: int = 0


def fractions(*seed: object) -> Callable[[int], array[int]]:
    """Blocks of numbers below 2^32: the same seed gives the same ones."""
    base = hashlib.sha256(":".join(map(str, seed)).encode()).digest()

    def block(count: int) -> array[int]:
        made = array("I")
        made.frombytes(hashlib.shake_256(base).digest(made.itemsize * count))
        return made

    return block


_WHOLE = 1 << 32


def draws_of(expected: Sequence[ExpectedJob], seed: int, run: int) -> Draws:
    """The draws of one run: a history drawn from the history, then the first attempt of each job."""
    drawn = _redrawn(expected, seed, run)
    pools = [drawn[id(one.sample)] for one in expected]
    first = [
        pool[number * len(pool) // _WHOLE]
        for pool, number in zip(pools, fractions(seed, run, "first")(len(pools)), strict=True)
    ]
    for job, one in enumerate(expected):
        if one.elapsed is not None:
            first[job] = _beyond(pools[job], one, fractions(seed, run, job, "held")(1)[0])
        if one.cost is not None or one.tokens is not None:
            first[job] = _priced(first[job], one)

    def later(job: int, number: int) -> Attempt:
        pool = pools[job]
        return _priced(pool[fractions(seed, run, job, number)(1)[0] * len(pool) // _WHOLE], expected[job])

    def fraction(job: int, number: int) -> float:
        return fractions(seed, run, job, number, "delay")(1)[0] / _WHOLE

    return Draws(first, later, fraction)


def _priced(attempt: Attempt, one: ExpectedJob) -> Attempt:
    """The attempt with the task's own estimates where its sample has none."""
    return attempt._replace(
        cost=one.cost if attempt.cost is None else attempt.cost,
        tokens=one.tokens if attempt.tokens is None else attempt.tokens,
    )


def _redrawn(expected: Sequence[ExpectedJob], seed: int, run: int) -> dict[int, list[Attempt]]:
    """Each sample, drawn from itself; a guess stays as it is, since more of it would not make it surer."""
    found: dict[int, list[Attempt]] = {}
    for one in expected:
        sample = one.sample
        if id(sample) not in found:
            size = len(sample.attempts)
            numbers = fractions(seed, run, "history", len(found))(size)
            is_history = sample.source not in (ESTIMATE, NOTHING)
            drawn = [sample.attempts[n * size // _WHOLE] for n in numbers] if is_history else list(sample.attempts)
            found[id(sample)] = drawn
    return found


def _beyond(pool: Sequence[Attempt], one: ExpectedJob, number: int) -> Attempt:
    """An attempt that takes longer than the held one already does; where none did, a tenth longer."""
    elapsed = one.elapsed or 0
    longer = [a for a in pool if a.duration > elapsed] or [a for a in one.sample.attempts if a.duration > elapsed]
    found = longer[number * len(longer) // _WHOLE] if longer else Attempt(elapsed + elapsed // 10 + 1)
    cost = None if found.cost is None else max(0, found.cost - one.spent)
    tokens = None if found.tokens is None else max(0, found.tokens - one.spent_tokens)
    return found._replace(cost=cost, tokens=tokens)


# --- figures ------------------------------------------------------------------------------------------------


class Percentiles(NamedTuple):
    p10: int
    p50: int
    p90: int


def percentiles(values: Sequence[int]) -> Percentiles | None:
    """The values that 10, 50 and 90 per cent of them do not exceed; between two neighbours in proportion."""
    if not values:
        return None
    ordered = sorted(values)

    def at(percent: int) -> int:
        place = (len(ordered) - 1) * percent
        low = ordered[place // 100]
        high = ordered[min(place // 100 + 1, len(ordered) - 1)]
        return low + (high - low) * (place % 100) // 100

    return Percentiles(*map(at, PERCENTILES))


class PlayedSpending(NamedTuple):
    cost: int  # nano-dollars
    tokens: int
    unknown: frozenset[int]  # jobs of which an attempt has no cost


def spending(played: Played, draws: Draws, jobs: frozenset[int] | None = None) -> PlayedSpending:
    """The sums over all attempts of these jobs in a run."""
    cost = tokens = 0
    unknown = set()
    for span in played.spans:
        if jobs is None or span.job in jobs:
            attempt = draws.attempt(span.job, span.number)
            cost += attempt.cost or 0
            tokens += attempt.tokens or 0
            if attempt.cost is None:
                unknown.add(span.job)
    return PlayedSpending(cost, tokens, frozenset(unknown))


def runs_out(budget: Budget, played: Played, draws: Draws, jobs: frozenset[int] | None, now: int) -> int | None:
    """When the run has spent more than the budget has; None where it lasts. A new period begins at zero."""
    budget = budgets.settled(budget, now)
    used = budget.consumed
    is_usd = budget.currency == budgets.USD
    for span in played.spans:  # in the order of their ends
        if jobs is not None and span.job not in jobs:
            continue
        if budget.until is not None and span.ended >= budget.until:
            budget = budgets.settled(replace(budget, consumed=used), span.ended)
            used = budget.consumed
        attempt = draws.attempt(span.job, span.number)
        used += (attempt.cost if is_usd else attempt.tokens) or 0
        if used > budget.allocated:
            return span.ended
    return None


class Step(NamedTuple):
    """One job on the path that decides a run's end."""

    job: int
    why: str  # why it did not begin earlier: one of REASONS


def deciding_path(played: Played, jobs: frozenset[int] | None = None) -> list[Step]:
    """The chain that ends with the last job: each waited for the one before it, or for the agent that held it."""
    ends = {**played.completed, **played.dead}
    wanted = [n for n in ends if jobs is None or n in jobs]
    job: int | None = max(wanted, key=lambda n: (ends[n], n), default=None)
    path: list[Step] = []
    seen: set[int] = set()
    while job is not None and job not in seen:
        seen.add(job)
        why, by = played.reasons.get(job, (START, job))
        path.append(Step(job, why))
        job = by if why in (DEPENDENCY, AGENT) else None
    return path[::-1]
