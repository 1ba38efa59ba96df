"""Projects, tracks, and the stop of all claiming in a scope."""

from __future__ import annotations

from tenure.core import commands, compliance, ids, inputs, lifecycle, limits, priority, tenant_limits
from tenure.core.errors import InvalidInput
from tenure.core.outcomes import Outcome
from tenure.core.priority import scope_text, stop_text
from tenure.core.records import Project, Task, Track, replace
from tenure.engine.runtime.rows import TRACKS_LISTED, project_of
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork

TRACKS = {  # code → name and purpose
    "A": ("Core Architecture", "what everything else is built on"),
    "B": ("Data", "models, storage and migrations"),
    "C": ("API", "interfaces for other programs"),
    "D": ("Frontend", "what people see and use"),
    "E": ("Infrastructure", "builds, deployment and operation"),
    "F": ("Testing", "tests, and what they run on"),
    "G": ("Documentation", "pages for users and developers"),
    "X": ("Experimental", "trials that may be thrown away"),
    "Z": ("Maintenance", "fixes, upgrades and clean-up"),
}
LEAD = ("auto", "off", "default")
PAGE = limits.REORDERED
SCOPES = ("project", "track", "dag", "agent", "type")


def _limits(cmd: commands.DefineProject, project: Project) -> dict[str, int]:
    changes = cmd.change_limits or {}
    inputs.check_limits(dict.fromkeys(changes, 1))  # also the names of those that go back to their default
    wanted = {**(project.limits if cmd.limits is None else cmd.limits), **changes}
    return inputs.check_limits({name: value for name, value in wanted.items() if value is not None})


def _limited(work: UnitOfWork, cmd: commands.DefineProject, project: Project) -> dict[str, object]:
    """The limits and the retention preset after the command. A preset may keep longer than the tenant's tier."""
    own = _limits(cmd, project)
    preset = project.compliance if cmd.compliance is None else compliance.check_preset(cmd.compliance)
    bounds = {name: most for name, most in work.tenant_limits.items() if not preset or name != compliance.LIMIT}
    tenant_limits.check_lowers(own, bounds)
    if cmd.compliance is not None:
        own = compliance.raised(own, preset)
    return {"compliance": preset, "limits": own} if cmd.compliance is not None else {"limits": own}


def _new(work: UnitOfWork, name: str) -> Project:
    ids.check_new_name(name, "project")
    return Project(project=name, id=name, created_at=work.now)


def define_project(work: UnitOfWork, cmd: commands.DefineProject) -> Outcome:
    """Create the project with its default tracks, or change its settings."""
    before = work.get(Project, cmd.project, cmd.project)
    project = before or _new(work, cmd.project)
    changes: dict[str, object] = {}
    if cmd.default_track is not None:
        if cmd.default_track not in TRACKS and work.get(Track, cmd.project, cmd.default_track) is None:
            raise InvalidInput(
                f"default_track {cmd.default_track[:40]!r} is not defined in project {cmd.project}", TRACKS_LISTED
            )
        changes["default_track"] = cmd.default_track
    if cmd.boost is not None:
        changes["boost"] = priority.parse_boost(cmd.boost)
    switches = ("agents_may_operate", "review_other_person", "routing")
    changes |= {name: value for name in switches if (value := getattr(cmd, name)) is not None}
    if (cmd.limits, cmd.change_limits, cmd.compliance) != (None, None, None):
        changes |= _limited(work, cmd, project)
    if cmd.lead is not None:
        changes["lead"] = inputs.check_choice(cmd.lead, LEAD, "lead")
    if cmd.order is not None and inputs.check_choice(cmd.order, priority.ORDERS, "order") != project.ordering:
        changes |= {"ordering": cmd.order, "order_turn": project.order_turn + (before is not None)}
    tracks: list[Track] = []
    if cmd.router is not None and cmd.router != project.router:
        changes["router"] = cmd.router
        if before is not None:
            from tenure.engine.verbs.track_router import switched  # few projects route

            tracks = switched(work, project, is_on=cmd.router)
    project = replace(project, **changes)
    if before is None:
        from tenure.engine.budgets.budget_verbs import joined  # once per project; keeps startup fast

        project = joined(work, project)
        tracks = [Track(project=cmd.project, id=x, name=name, purpose=purpose) for x, (name, purpose) in TRACKS.items()]
        work.record("project.created", project, *tracks, project=cmd.project)
        return Outcome(outcome="CREATED", command_id=work.command_id)
    if project == before:
        return Outcome(outcome="UNCHANGED")
    lowered = compliance.check_lowering(before, project, work.principal.role)
    details = {"changed": list(changes), **({"lowered": lowered} if lowered else {})}
    work.record("project.changed", project, *tracks, project=cmd.project, details=details)
    hints = ["`tenure project reorder` moves the tasks that exist; until then they go first"] * ("ordering" in changes)
    hints += compliance.notes(before, project)
    return Outcome(outcome="UPDATED", command_id=work.command_id, hint="; ".join(hints) or None)


def reorder(work: UnitOfWork, cmd: commands.Reorder) -> Outcome:
    """Move a page of open tasks to the current order. Each keeps its creation time, so nothing is put behind."""
    project = project_of(work, cmd.project)
    where = {"project": project.id, "state": lifecycle.OPEN}
    after = None if cmd.after is None else (cmd.after, cmd.after)
    page = work.tx.find(Task, where, after=after, limit=PAGE)
    changed = []
    for found in page:
        task = work.get(Task, project.id, found.id)
        if task is None or task.order_turn == project.order_turn:
            continue
        length = priority.length_of(project.ordering, task.estimate)
        moved = replace(task, order_turn=project.order_turn, length=length)
        work.record("task.reordered", task=moved, details={"order": project.ordering})
        changed.append(task.key)
    following = page[-1].id if len(page) == PAGE else None
    message = f"{len(changed)} tasks moved to the order {project.ordering}"
    if not changed and following is None:
        return Outcome(outcome="UNCHANGED", message=message)
    return Outcome(
        outcome="UPDATED", changed=tuple(changed), next=following, message=message, command_id=work.command_id
    )


def define_track(work: UnitOfWork, cmd: commands.DefineTrack) -> Outcome:
    before = work.get(Track, cmd.project, cmd.code)
    name, purpose = cmd.name, cmd.purpose
    if name is None:
        if before is None:
            raise InvalidInput(f"track {cmd.code[:40]!r} is not defined in project {cmd.project}", "give it a name")
        name, purpose = before.name, before.purpose
    code = inputs.check_track(cmd.code, name, purpose)
    track = replace(before or Track(project=cmd.project, id=code, name=""), name=name, purpose=purpose)
    if cmd.max_agents is not None:
        if not 1 <= cmd.max_agents <= limits.TRACK_AGENTS:
            raise InvalidInput(f"max_agents must be from 1 to {limits.TRACK_AGENTS} (got {cmd.max_agents})")
        track = replace(track, max_agents=cmd.max_agents)
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
    fields = {"level": "warning", "message": reason, "details": {"scope": scope}}
    work.record("project.stopped", stopped, project=project.id, **fields)
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
    commands.Reorder: reorder,
    commands.StopLine: stop_line,
    commands.StartLine: start_line,
}
