"""The coordinator's status, from any process: who leads and how it gets on, recent events; and `recover`.

The leader's row has all of it, so every server gives the same answer, leading or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import lifecycle, limits, team
from tenure.core.commands import OWNER, Principal
from tenure.core.errors import NotFound
from tenure.core.events import levels_from
from tenure.core.filters import Present, Range
from tenure.core.records import STORE, Agent, Cycles, Leader, Pool, Project, Task, replace
from tenure.core.roles import owns_deployment
from tenure.engine.duties import sweep
from tenure.engine.duties.coordinator import Coordinator, Note
from tenure.engine.reads.event_log import event_view, tasks_of
from tenure.engine.runtime.effects import PAGE, Report
from tenure.engine.runtime.engine import Engine
from tenure.engine.verbs.lead import COORDINATOR
from tenure.stores.port import Transaction

if TYPE_CHECKING:
    from tenure.core.views.project_views import SpawnerHealth

WAITING = (lifecycle.PENDING, lifecycle.READY, lifecycle.RETRYING)
MOST_LOGGED = limits.COORDINATOR_LOG
NOTE = "coordinator.note"  # the kind of a cycle's notes, which only this process keeps

# What time brings about, and what leaders do.
KINDS = (
    "leader.elected", "leader.lost", "epoch.started", "task.lease_expired", "task.process_gone", "task.retry_due",
    "task.offer_ended", "task.warned", "task.aborted", "task.deadline_missed", "task.dead_lettered", "dag.failed",
    "agent.stale", "agent.died", "session.ended", "archive.moved", "archive.pruned",
)  # fmt: skip


def status(
    engine: Engine,
    here: Coordinator | None = None,
    only: Collection[str] = (),
    home: Engine | None = None,
    who: Principal = OWNER,
) -> dict[str, Any]:
    """Who leads, since when, how its cycles go; how much waits and runs, in all projects or `only` in these.

    `here` is this process's own coordinator; `home` the engine of the tenant whose row names the leader, by default
    `engine`. Only the home tenant learns which tenants are led, and of those who ask only the owner the host.
    """

    def ask(tx: Transaction) -> tuple[int, Mapping[str, Any]]:
        projects = [project.id for project in tx.find(Project, {}) if not only or project.id in only]
        overdue = sum(task.project in projects for task in tx.due(None, tx.now, PAGE))
        return tx.now, {"projects": projects, **_counts(tx, projects), "overdue_tasks": overdue}

    found = (home or engine).read(lambda tx: tx.load(Leader, ((STORE, COORDINATOR),)))
    now, counted = engine.read(ask)
    leader = found[0] if found and found[0].until > now else None
    cycles = leader.cycles if leader else Cycles()
    if here is not None and leader is not None and here.instance == leader.holder:
        cycles = here.cycles  # the row has the count of its last renewal
    if home is not None and home.tenant != engine.tenant:
        cycles = replace(cycles, error=None, error_at=None)  # it may be another tenant's
    owns = owns_deployment(who)
    return {
        "active": leader is not None,
        "instance": leader.holder if leader and owns else None,
        "term": found[0].term if found else 0,
        "since": leader.elected_at if leader else None,
        "leads_for": _seconds(now, leader.elected_at) if leader else None,
        "last_heartbeat_at": leader.until - leader.lease if leader else None,
        "lease": _seconds(leader.until, now) if leader else None,
        "cycles": cycles.count,
        "last_cycle_at": cycles.last_at,
        "last_error": {"message": cycles.error, "at": cycles.error_at} if cycles.error else None,
        **counted,
        "tenants": _tenants_led(engine, here),
        "here": {"instance": here.instance if owns else None, "leads": here.term is not None} if here else None,
        "now": now,
    }


def _tenants_led(engine: Engine, here: Coordinator | None) -> list[str]:
    """The tenants in which this process has led in its term; the home tenant is first."""
    if here is None or here.term is None or engine.tenant != here.engine.tenant:
        return []
    return [engine.tenant, *(here.tenants.led() if here.tenants is not None else ())]


def spawners(engine: Engine) -> list[SpawnerHealth]:
    """Each spawner that pools use, by name: failing where a pool's last process claimed nothing."""
    pools = engine.read(lambda tx: tx.find(Pool, {}))
    named: dict[str, list[Pool]] = {}
    for pool in pools:
        named.setdefault(pool.spawner, []).append(pool)
    return [{"name": name, "state": _state(using), "pools": len(using)} for name, using in sorted(named.items())]


def _state(pools: Sequence[Pool]) -> str:
    enabled = [pool for pool in pools if pool.enabled]
    return "paused" if not enabled else "failing" if any(pool.error is not None for pool in enabled) else "ok"


def _seconds(later: int, earlier: int) -> float:
    return round((later - earlier) / 1e6, 3)


def _counts(tx: Transaction, projects: Iterable[str]) -> dict[str, int]:
    """Tasks as stored: overdue ones have not been settled by any cycle."""
    states: Counter[str] = Counter()
    stale: Counter[bool] = Counter()
    for project in projects:
        states.update(tx.count(Task, {"project": project, "state": (*WAITING, *lifecycle.HELD)}, "state"))
        there = tx.find(Agent, {"project": project, "left_at": Present(False)})
        stale.update(team.is_stale(agent, tx.now) for agent in there if team.is_expected(agent))
    return {
        "pending_tasks": sum(states[state] for state in WAITING),
        "running_tasks": sum(states[state] for state in lifecycle.HELD),
        "healthy_agents": stale[False],
        "stale_agents": stale[True],
    }


def logs(
    engine: Engine, notes: Iterable[Note] = (), *, level: str = "info", limit: int = 100, since: int | None = None
) -> list[dict[str, Any]]:
    """The latest events of at least this level that time brought about, oldest first; of the engine's tenant alone.

    Among them are the tenant's `notes`.
    """
    levels = levels_from(level)
    limit = max(1, min(limit, MOST_LOGGED))
    where: dict[str, Any] = {"kind": KINDS, "level": levels}
    if since is not None:
        where["time"] = Range(since, None)

    def read(tx: Transaction) -> list[dict[str, Any]]:
        events = tx.events(where, limit=limit, last=True)
        tasks = tasks_of(tx, events)
        return [dict(event_view(event, tasks.get(event.task or ""), engine.tenant)) for event in events]

    lines = engine.read(read)
    lines += [
        {"time": note.time, "kind": NOTE, "level": note.level, "message": note.message}
        for note in list(notes)
        if note.level in levels and (since is None or note.time >= since) and note.tenant == engine.tenant
    ]
    return sorted(lines, key=lambda line: line["time"])[-limit:]


def recover(engine: Engine, project: str | None = None) -> dict[str, Any]:
    """Settle everything due and tidy up, now, in one project or all; return the result of each.

    Needs no leader, as sweeps need none: for a person, when nobody seems to lead.
    """
    known = sweep.projects(engine)
    if project is not None and project not in known:
        raise NotFound(f"no project {project!r}")
    done = {name: sweep.sweep(engine, name) for name in (known if project is None else [project])}
    return {"settled": sum(report.settled for report in done.values()), "projects": _summaries(done.items())}


def _summaries(done: Iterable[tuple[str, Report]]) -> Sequence[dict[str, Any]]:
    return [
        {"project": name, "settled": report.settled, "events": dict(report.events), "failed": report.failed}
        for name, report in done
    ]
