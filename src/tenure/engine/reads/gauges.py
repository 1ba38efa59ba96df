"""Tasks by state, in every project, for metrics: counted by index, cheap with a million tasks.

Rows are counted as stored, not settled: settling a long backlog would make the query most expensive when it must be
cheapest, and the unsettled backlog is one of the numbers. Writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import budgets, inputs, lifecycle, limits, pools, priority
from tenure.core import queries as q
from tenure.core.filters import Present, Range
from tenure.core.money import NANO
from tenure.core.records import Agent, Budget, Pool, Project, Spawn, Task, Track
from tenure.engine.archive.log_readers import holding_back, places_of
from tenure.engine.audit.sealer import sealed_to, unsealed
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import GaugesView
    from tenure.core.views.project_views import MoneyView

OTHER = "other"  # all projects beyond the first ones; not a project's name
ANY = "any"  # the tier of tasks that are too many to be classified
# No index has the tier. A few tasks are examined one by one; more are left to the store, which reads them all.
A_FEW = 500
MOST_READ = limits.GAUGE_TASKS
MOST_OVERDUE = limits.GAUGE_OVERDUE
MOST_EXAMINED = limits.GAUGE_READY
AT_ONCE = 100  # projects counted together
DAY = 24 * 3600 * inputs.SECOND  # agents silent for longer are not counted


def gauges(work: UnitOfWork, project: str, *, most: int = 100) -> list[GaugesView]:
    """One entry for each of the `most` oldest projects, and one for all the others."""
    made = sorted(work.find(Project, {}), key=lambda p: (p.created_at, p.id))
    names = [p.id for p in made]
    entries = [_entry(work, name, (name,)) for name in names[:most]]
    rest = names[most:]
    parts = [_entry(work, OTHER, rest[n : n + AT_ONCE]) for n in range(0, len(rest), AT_ONCE)]
    return entries + ([_together(parts)] if parts else [])


def _entry(work: UnitOfWork, name: str, projects: Sequence[str]) -> GaugesView:
    where = {"project": tuple(projects)}
    states: dict[str, int] = work.tx.count(Task, where, "state")
    can_read_all = sum(states.values()) <= MOST_READ
    fallen_due = {**where, "due_at": Range(high=work.now + 1)}
    return {
        "project": name,
        "depth": {
            state: _tiers(work, {**where, "state": state}, states[state], can_read_all=can_read_all)
            for state in lifecycle.OPEN
            if states.get(state)
        },
        "completed": states.get(lifecycle.COMPLETED, 0) + _moved_away(work, where),
        "overdue": work.tx.tally(Task, fallen_due, MOST_OVERDUE),
        "overdue_retries": work.tx.tally(Task, {**fallen_due, "state": lifecycle.RETRYING}, MOST_OVERDUE),
        "oldest_ready": _oldest_ready(work, projects) if states.get(lifecycle.READY) else 0.0,
        "clock_behind": work.tx.behind / 1e6,
        "agents": _agents(work, where),
        "pools": _pools(work, projects) if name != OTHER else {},
        "budget": _budget(work, projects) if name != OTHER else None,
        "readers": _readers(work, name) if name != OTHER else {},
        "unsealed": _unsealed(work, name) if name != OTHER else None,
    }


def _tiers(work: UnitOfWork, where: dict[str, Any], count: int, *, can_read_all: bool) -> dict[str, int]:
    bases: dict[int, int]
    if count <= A_FEW:
        bases = Counter(task.priority for task in work.tx.find(Task, where, limit=A_FEW))
    elif can_read_all:
        bases = work.tx.count(Task, where, "priority")
    else:
        return {ANY: count}
    tiers: dict[str, int] = {}
    for base, n in bases.items():
        tier = priority.tier_of(base)
        tiers[tier] = tiers.get(tier, 0) + n
    return tiers


def _moved_away(work: UnitOfWork, where: dict[str, Any]) -> int:
    """Completed tasks that no longer have rows."""
    return sum(completed or 0 for (completed,) in work.tx.sums(Track, where, "project", ("completed",)).values())


def _oldest_ready(work: UnitOfWork, projects: Sequence[str]) -> float:
    """How many seconds the longest waiting of the oldest tasks has been ready: ids grow with time."""
    since = []
    for project in projects:
        found = work.tx.find(Task, {"project": project, "state": lifecycle.READY}, limit=MOST_EXAMINED)
        since += [task.ready_at or task.updated_at for task in found]
    return max(0, work.now - min(since, default=work.now)) / inputs.SECOND


def _agents(work: UnitOfWork, where: dict[str, Any]) -> dict[str, int]:
    """How many agents of the last day have which status; stale are those whose staleness has been announced."""
    heard = {**where, "last_seen": Range(work.now - DAY)}
    here = {**heard, "left_at": Present(False)}
    awake = {**here, "draining": False, "stale": False}
    counted = {
        "offline": _number(work, {**heard, "left_at": Present()}),
        "draining": _number(work, {**here, "draining": True}),
        "stale": _number(work, {**here, "draining": False, "stale": True}),
    }
    up = _number(work, awake)
    # Holders are few compared with agents: the index of holders names them.
    active = 0
    for project in where["project"]:
        holders = work.tx.count(Task, {"project": project, "agent": Present()}, "agent")
        rows = work.tx.load(Agent, [(project, name) for name in holders])
        active += sum(not (a.draining or a.stale or a.left_at is not None) for a in rows)
    return counted | {"active": active, "idle": max(0, up - active)}


def _pools(work: UnitOfWork, projects: Sequence[str]) -> dict[str, dict[str, int]]:
    """Pools have names in their project alone, so those of several projects are not added up."""
    where = {"project": tuple(projects)}
    spawns = [one for one in work.tx.find(Spawn, {**where, "state": pools.OPEN}) if pools.is_live(one, work.now)]
    found = {}
    for row in work.tx.find(Pool, where):
        states = Counter(spawn.state for spawn in spawns if spawn.pool == row.id)
        size = row.size if row.enabled else 0
        found[row.id] = {"size": size, "starting": states[pools.STARTING], "running": states[pools.RUNNING]}
    return found


def _budget(work: UnitOfWork, projects: Sequence[str]) -> MoneyView | None:
    """As stored, in its current period; amounts of several projects cannot be added up, so `other` has none."""
    found = work.tx.load(Budget, [(project, budgets.PROJECT) for project in projects])
    if not found:
        return None
    row = budgets.settled(found[0], work.now)
    unit = NANO if row.currency == budgets.USD else 1
    return {
        "currency": row.currency,
        "allocated": row.allocated / unit,
        "spent": row.consumed / unit,
        "reserved": row.reserved / unit,
    }


def _readers(work: UnitOfWork, project: str) -> dict[str, float]:
    """How long each reader has held the archive back."""
    behind = holding_back(work, project)
    names = places_of(work, project)
    return {name: max(0, work.now - behind[name].time) / inputs.SECOND if name in behind else 0.0 for name in names}


def _unsealed(work: UnitOfWork, project: str) -> int | None:
    """Events younger than the last seal, counted no further than 10,000; None where the log is not sealed."""
    place = sealed_to(work, project)
    return None if place is None else unsealed(work, project, place)


def _number(work: UnitOfWork, where: dict[str, Any]) -> int:
    return sum(work.tx.count(Agent, where, "project").values())


def _together(parts: Sequence[GaugesView]) -> GaugesView:
    """The entries of several groups of projects as one."""
    depth: dict[str, dict[str, int]] = {}
    for part in parts:
        for state, tiers in part["depth"].items():
            _add(depth.setdefault(state, {}), tiers)
    agents: dict[str, int] = {}
    for part in parts:
        _add(agents, part["agents"])
    return {
        "project": OTHER,
        "depth": depth,
        "completed": sum(part["completed"] for part in parts),
        "overdue": sum(part["overdue"] for part in parts),
        "overdue_retries": sum(part["overdue_retries"] for part in parts),
        "oldest_ready": max(part["oldest_ready"] for part in parts),
        "clock_behind": max(part["clock_behind"] for part in parts),
        "agents": agents,
        "pools": {},
        "budget": None,
        "readers": {},
        "unsealed": None,
    }


def _add(totals: dict[str, int], more: dict[str, int]) -> None:
    for name, n in more.items():
        totals[name] = totals.get(name, 0) + n


READS: Reads = {q.Gauges: gauges}
