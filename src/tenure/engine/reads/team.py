"""Agents: what each does, how it is, what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenure.core import inputs, lifecycle, limits, team
from tenure.core import queries as q
from tenure.core.errors import InvalidInput
from tenure.core.inputs import SECOND
from tenure.core.records import Agent, HealthMinute, Task
from tenure.engine.budgets.budget_reads import headroom
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import brief_of, fields_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs.agents import agent_view, ended_holders, known_or_refused

if TYPE_CHECKING:
    from tenure.core import views as v


def agents(
    work: UnitOfWork, project: str, *, managed: bool | None = None, status: tuple[str, ...] | None = None
) -> list[v.AgentView]:
    for word in status or ():
        inputs.check_choice(word, team.STATUSES, "status")
    where: dict[str, Any] = {"project": project} | ({} if managed is None else {"managed": managed})
    dead = ended_holders(work, project)
    found = [agent_view(work, row, dead) for row in work.find(Agent, where)]
    return found if status is None else [view for view in found if view["status"] in status]


def agent(work: UnitOfWork, project: str, name: str) -> v.AgentInFull:
    """One agent with its last hour."""
    row = known_or_refused(work, project, name)
    return {
        **_shown(work, row), "heartbeat": row.heartbeat / SECOND, "stale_after": row.stale_after / SECOND,
        "budgets": headroom(work, project, name)["budgets"], "minutes": _last_hour(work, row),
    }  # fmt: skip


def _shown(work: UnitOfWork, row: Agent) -> v.AgentView:
    return agent_view(work, row, ended_holders(work, row.project))


def health(work: UnitOfWork, project: str, name: str) -> v.HealthView:
    row = known_or_refused(work, project, name)
    shown: Any = _shown(work, row)
    parts = ("name", "status", "health", "last_seen", "next_heartbeat_at", "task", "step", "percent", "expected_at")
    answer: v.HealthView = {
        **{part: shown[part] for part in (*parts, "memory_mb", "cpu_percent", "metadata")},  # type: ignore[typeddict-item]
        "silent_for": max(0, work.now - row.last_seen) / SECOND,
        "heartbeat": row.heartbeat / SECOND,
        "stale_after": row.stale_after / SECOND,
        "minutes": _last_hour(work, row),
    }
    return answer


def tasks(work: UnitOfWork, project: str, name: str, state: tuple[str, ...] | None = None) -> list[v.TaskView]:
    known_or_refused(work, project, name)
    held = work.find(Task, {"project": project, "agent": name} | ({} if state is None else {"state": _held(state)}))
    held.sort(key=lambda task: (task.claimed_at or 0, task.id))
    return [task_view.task_view(work, task, brief_of(work, task)) for task in held]


def _held(wanted: tuple[str, ...]) -> tuple[str, ...]:
    for word in wanted:
        state = inputs.check_choice(lifecycle.state_named(word), lifecycle.STATES, "state")
        if state not in lifecycle.HELD:
            raise InvalidInput(f"no agent holds a task that is {state}", "the events of an agent name what it ended")
    return tuple(map(lifecycle.state_named, wanted))


def _last_hour(work: UnitOfWork, row: Agent) -> list[v.MinuteView]:
    since = work.now - limits.HEALTH_MINUTES * team.MINUTE
    ids = [team.minute_id(row.id, minute * team.MINUTE) for minute in range(limits.HEALTH_MINUTES)]
    rows = [r for r in work.get_many(HealthMinute, row.project, ids).values() if r.at >= since]
    minutes: list[v.MinuteView] = [
        fields_of(r, "at memory_mb cpu_percent percent") | {"health": team.health_word(r.health)}
        for r in sorted(rows, key=lambda r: r.at)
    ]
    return minutes


READS: Reads = {q.Agents: agents, q.ShowAgent: agent, q.AgentHealth: health, q.AgentTasks: tasks}
