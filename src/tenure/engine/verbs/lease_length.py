"""How long the lease of a claim is: as requested, or `auto`: by the task's estimate, else by what its type takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tenure.core import inputs, limits
from tenure.core.records import Claim, Project, Task
from tenure.engine.runtime.unit_of_work import UnitOfWork

SAMPLES = limits.LEASE_SAMPLES


class Lease(msgspec.Struct, frozen=True):
    length: int
    why: str | None = None  # of an automatic one


def leases_of(work: UnitOfWork, project: Project, asked: float | str | None) -> Callable[[Task], Lease]:
    """The lease for each task of one claim; raises InvalidInput where the requested one is outside of the limits."""
    if asked != inputs.AUTO:
        fixed = Lease(inputs.lease_of(asked, work.limits_of(project)))
        return lambda _: fixed
    by_type: dict[str, Lease] = {}

    def automatic(task: Task) -> Lease:
        if task.estimate is not None:
            return _within(work.limits_of(project), task.estimate, "the task's estimate")
        if task.type not in by_type:
            by_type[task.type] = _of_type(work, project, task.type)
        return by_type[task.type]

    return automatic


def _of_type(work: UnitOfWork, project: Project, type: str) -> Lease:
    lengths, given = lengths_of(work, project.id, type), work.limits_of(project)
    if len(lengths) < SAMPLES:
        found = f"{len(lengths)} of the {SAMPLES} completed tasks needed for type {type}"
        return _within(given, round(limits.LEASE * inputs.SECOND), f"the default: {found}")
    longest = lengths[-(-len(lengths) * 95 // 100) - 1]
    return _within(given, longest, f"95 % of {len(lengths)} completed tasks of type {type} took no longer")


def lengths_of(work: UnitOfWork, project: str, type: str) -> list[int]:
    """How long the accepted claims of the newest completed tasks took, shortest first. Bounded: see `limits`."""
    done = work.find(
        Claim, {"project": project, "reason": "COMPLETED"}, order="-id", limit=limits.LEASE_SAMPLED
    )  # fmt: skip
    tasks = work.get_many(Task, project, {claim.task for claim in done})
    return sorted(
        (claim.released_at or claim.acquired_at) - claim.acquired_at
        for claim in done
        if claim.task in tasks and tasks[claim.task].type == type
    )


def _within(given: Mapping[str, int], length: int, why: str) -> Lease:
    low, high = (round(seconds * inputs.SECOND) for seconds in inputs.lease_limits(given))
    if length < low:
        return Lease(low, f"{why}; not below min_lease")
    if length > high:
        return Lease(high, f"{why}; not above max_lease")
    return Lease(length, why)
