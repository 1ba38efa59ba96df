"""Projects, tracks, and the stop of all claiming in a scope."""

from __future__ import annotations

from tenure.core import commands, ids, inputs, priority
from tenure.core.errors import InvalidInput
from tenure.core.outcomes import Outcome
from tenure.core.priority import scope_text, stop_text
from tenure.core.records import Project, Track, replace
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork

TRACKS = {
    "A": "Core Architecture",
    "B": "Data",
    "C": "API",
    "D": "Frontend",
    "E": "Infrastructure",
    "F": "Testing",
    "G": "Documentation",
    "X": "Experimental",
    "Z": "Maintenance",
}
SCOPES = ("project", "track", "dag", "agent", "type")


def define_project(work: UnitOfWork, cmd: commands.DefineProject) -> Outcome:
    """Create the project with its default tracks, or change its settings."""
    ids.check_name(cmd.project, "project")
    before = work.get(Project, cmd.project, cmd.project)
    project = before or Project(project=cmd.project, id=cmd.project, created_at=work.now)
    changes: dict[str, object] = {}
    if cmd.default_track is not None:
        if cmd.default_track not in TRACKS and work.get(Track, cmd.project, cmd.default_track) is None:
            raise InvalidInput(f"default_track {cmd.default_track[:40]!r} is not defined in project {cmd.project}")
        changes["default_track"] = cmd.default_track
    if cmd.boost is not None:
        changes["boost"] = priority.parse_boost(cmd.boost)
    if cmd.agents_may_operate is not None:
        changes["agents_may_operate"] = cmd.agents_may_operate
    if cmd.limits is not None:
        changes["limits"] = inputs.check_limits(cmd.limits)
    if cmd.routing is not None:
        changes["routing"] = cmd.routing
    project = replace(project, **changes)
    if before is None:
        from tenure.engine.budgets.budget_verbs import joined  # once per project; keeps startup fast

        project = joined(work, project)
        tracks = [Track(project=cmd.project, id=code, name=name) for code, name in TRACKS.items()]
        work.record("project.created", project, *tracks, project=cmd.project)
        return Outcome(outcome="CREATED", command_id=work.command_id)
    if project == before:
        return Outcome(outcome="UNCHANGED")
    work.record("project.changed", project, project=cmd.project, details={"changed": list(changes)})
    return Outcome(outcome="UPDATED", command_id=work.command_id)


def define_track(work: UnitOfWork, cmd: commands.DefineTrack) -> Outcome:
    code = inputs.check_track(cmd.code, cmd.name, cmd.purpose)
    before = work.get(Track, cmd.project, code)
    track = replace(before or Track(project=cmd.project, id=code, name=""), name=cmd.name, purpose=cmd.purpose)
    work.record("track.defined", track, project=cmd.project, details={"track": code})
    return Outcome(outcome="UPDATED" if before else "CREATED", command_id=work.command_id)


def stop_line(work: UnitOfWork, cmd: commands.StopLine) -> Outcome:
    """Stop all claiming in the scope; held tasks continue."""
    project = project_of(work, cmd.project)
    scope = _checked(cmd.scope)
    reason = inputs.check_text(cmd.reason, "reason", 1000) or f"stopped by {work.principal.name}"
    if scope in project.stopped:
        return Outcome(outcome="UNCHANGED")
    stopped = replace(project, stopped=project.stopped | {scope: reason})
    told = {"level": "warning", "message": reason, "details": {"scope": scope}}
    work.record("project.stopped", stopped, project=project.id, **told)
    return Outcome(outcome="UPDATED", command_id=work.command_id, message=stop_text(scope, reason))


def start_line(work: UnitOfWork, cmd: commands.StartLine) -> Outcome:
    project = project_of(work, cmd.project)
    scope = _checked(cmd.scope)
    if scope not in project.stopped:
        return Outcome(outcome="UNCHANGED")
    left = {s: why for s, why in project.stopped.items() if s != scope}
    work.record("project.started", replace(project, stopped=left), project=project.id, details={"scope": scope})
    still = "; ".join(stop_text(s, why) for s, why in left.items())
    message = f"claiming is allowed again in {scope_text(scope)}" + (f"; still {still}" if still else "")
    return Outcome(outcome="UPDATED", command_id=work.command_id, message=message)


def _checked(scope: str) -> str:
    kind, colon, name = scope.partition(":")
    if not colon or kind not in SCOPES or (kind == "project") != (name == ""):
        raise InvalidInput(f"scope {scope[:80]!r} must be project:, track:B, dag:ID, agent:NAME or type:NAME")
    return scope


HANDLERS: Handlers = {
    commands.DefineProject: define_project,
    commands.DefineTrack: define_track,
    commands.StopLine: stop_line,
    commands.StartLine: start_line,
}
