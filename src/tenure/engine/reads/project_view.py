"""The project as a whole: its settings, its tracks, their progress and the agents they are assigned to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import compliance, inputs, lifecycle, limits, tracks
from tenure.core import queries as q
from tenure.core.records import Task, Track
from tenure.engine.reads import task_counts
from tenure.engine.runtime.rows import fields_of, project_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs.agents import active_sessions, sessions_of_all
from tenure.engine.verbs.claim_shares import live_claims

if TYPE_CHECKING:
    from tenure.core.views import LimitView, ProjectView, TrackView
    from tenure.core.views.project_views import AssignedView
    from tenure.core.views.team_views import TrackProgress


def settings(work: UnitOfWork, project: str) -> ProjectView:
    row = project_of(work, project)
    answer: ProjectView = fields_of(
        row, "default_track agents_may_operate review_other_person limits routing router lead created_at"
    ) | {
        "project": row.id,
        "boost": row.boost / 100,
        "order": row.ordering,
        "audited_at": row.audited_at or None,
        "compliance": row.compliance or None,
    }
    return answer


# Without a value of the project; a limit that is not here does not apply then.
DEFAULT_LIMITS = {
    "max_lease": int(inputs.LONGEST_LEASE),
    "min_lease": int(inputs.MIN_LEASE),
    "max_generations_per_task": limits.GENERATIONS,
    "archive_after": limits.ARCHIVE_AFTER // inputs.SECOND,
}


def all_limits(work: UnitOfWork, project: str) -> list[LimitView]:
    """The limits of a project, also those that it leaves at their defaults."""
    row = project_of(work, project)
    held = {"project": project, "state": lifecycle.HELD}
    used = {
        "max_concurrent_claims": sum(work.count(Task, held, "state").values()),
        "max_active_sessions": active_sessions(work, project),
    }
    of_all = {"max_concurrent_claims": live_claims, "max_active_sessions": sessions_of_all}
    given = work.limits_of(row)

    def view(name: str, meaning: str) -> LimitView:
        source = "default" if name not in given else "project" if row.limits.get(name) == given[name] else "tenant"
        # What a tenant's limit counts is counted in all its projects.
        use = of_all[name](work) if source == "tenant" and name in of_all else used.get(name)
        value = given.get(name, DEFAULT_LIMITS.get(name))
        if name == compliance.LIMIT and row.compliance:
            value = compliance.kept_days(row, work.tenant_limits, given)
            if value != given.get(name):
                source = "preset"
        return {"name": name, "meaning": meaning, "value": value, "source": source, "used": use}

    return [view(name, meaning) for name, meaning in inputs.LIMITS.items()]


def all_tracks(work: UnitOfWork, project: str) -> list[TrackView]:
    """The project's tracks, by code."""
    found = sorted(work.find(Track, {"project": project}), key=lambda track: track.id)
    return [
        fields_of(track, "name purpose last_sequence max_agents")
        | {"code": track.id, "assigned": [_assigned(track, agent) for agent in tracks.assigned(track, work.now)]}
        for track in found
    ]


def _assigned(track: Track, agent: str) -> AssignedView:
    is_pinned = agent in track.pinned
    return {
        "agent": agent, "since": track.assigned[agent], "pinned": is_pinned, "until": tracks.ends_at(track, agent)
    }  # fmt: skip


def tracks_of(work: UnitOfWork, project: str, agent: str) -> list[str]:
    """The tracks that are assigned to an agent."""
    return [t.id for t in work.find(Track, {"project": project}) if agent in tracks.assigned(t, work.now)]


def track_progress(work: UnitOfWork, project: str) -> dict[str, TrackProgress]:
    """Completed, in progress and pending tasks of each track that has any."""
    return progress_of(work, project, task_counts.by_state(work, project))


def progress_of(work: UnitOfWork, project: str, by_state: task_counts.Counts) -> dict[str, TrackProgress]:
    in_progress = (*lifecycle.HELD, lifecycle.VALIDATING)
    shown = [state for state in lifecycle.STATES if state != lifecycle.CANCELLED]
    found: dict[str, TrackProgress] = {}
    for track in work.find(Track, {"project": project}):
        there = tracks.assigned(track, work.now)
        if not track.last_sequence and not there:
            continue
        counts = {state: by_state.get(state, {}).get(track.id, 0) for state in shown}
        progress: TrackProgress = {
            "completed": counts[lifecycle.COMPLETED],
            "in_progress": sum(counts[state] for state in in_progress),
            "pending": sum(counts[s] for s in shown if s not in (*in_progress, lifecycle.COMPLETED)),
        }
        if there:
            progress["assigned"] = list(there)
        found[track.id] = progress
    return found


READS: Reads = {q.ShowProject: settings, q.Limits: all_limits, q.Tracks: all_tracks}
