"""The track router: tracks are assigned to agents by their claims, by offers and by people. Rules in `core/tracks.py`.

It is judged and written in the transaction of the claim. A project with a router takes the slow path for every claim,
renewal and result, since the end of a claim there changes the track's row: see `fast_path/command_run.py`.
"""

from __future__ import annotations

import msgspec

from tenure.core import claims, commands, lifecycle, tracks
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Project, Task, Track, replace
from tenure.core.safe_text import shell_word
from tenure.engine.runtime.rows import check_agent_name, project_of
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork


class Assignments(msgspec.Struct, frozen=True):
    """The tracks of a project that are closed to one agent, and when the first of them may open by itself."""

    taken: dict[str, tuple[str, ...]]
    next_end: int | None


def assignments_for(work: UnitOfWork, project: Project, agent: str) -> Assignments:
    full = [t for t in work.find(Track, {"project": project.id}) if tracks.is_full_for(t, agent, work.now)]
    return Assignments({t.id: tracks.assigned(t, work.now) for t in full}, tracks.next_end(full, work.now))


def denied(work: UnitOfWork, task: Task, agent: str) -> Outcome | None:
    """Why the agent may not claim this task: its track is assigned to others."""
    track = work.require(Track, task.project, task.track)
    if not tracks.is_full_for(track, agent, work.now):
        return None
    there = tracks.assigned(track, work.now)
    message = f"{task.key}: track {track.id} is assigned to {', '.join(there[:5])}"
    return Outcome(
        outcome="DENIED_TRACK", holder=there[0], state=task.state, **work.retry_at(tracks.next_end([track], work.now)),
        message=message,
        hint=f"take a task of another track, or a person can run `tenure track release {shell_word(track.id)}`",
    )  # fmt: skip


def claimed(work: UnitOfWork, task: Task, agent: str) -> None:
    """The agent holds a task of the track: it is assigned to it."""
    _join(work, work.require(Track, task.project, task.track), agent, holds=True)


def assign_for_offer(work: UnitOfWork, task: Task, agent: str) -> None:
    """An offer is also the track's: raises Refused where that is assigned to others."""
    refusal = denied(work, task, agent)
    if refusal is not None:
        raise Refused(refusal)
    track = work.require(Track, task.project, task.track)
    _join(work, track, agent, holds=_holds(work, track, agent))


def _join(work: UnitOfWork, track: Track, agent: str, *, holds: bool) -> None:
    if agent not in tracks.assigned(track, work.now):
        joined = tracks.joined(track, agent, work.now, holds=holds)
        work.record("track.assigned", joined, project=track.project, details={"track": track.id, "agent": agent})
    elif agent in track.idle_since:
        idle = {name: at for name, at in track.idle_since.items() if name != agent}
        work.put(replace(track, idle_since=idle if holds else {**idle, agent: work.now}))


def _holds(work: UnitOfWork, track: Track, agent: str) -> bool:
    held = work.find(Task, {"project": track.project, "agent": agent})
    return any(task.track == track.id and claims.is_held(task) for task in held)


def idle(work: UnitOfWork, held: Task) -> None:
    """A claim has ended; with the agent's last one on the track its idle time begins."""
    track, agent = work.get(Track, held.project, held.track), held.agent
    if track is None or agent is None or agent not in track.assigned or _holds(work, track, agent):
        return
    work.put(replace(track, idle_since={**track.idle_since, agent: work.instant}))


def left(work: UnitOfWork, agent: Agent) -> None:
    """The agent has left: all its tracks are free."""
    for track in work.find(Track, {"project": agent.project}):
        if agent.id in track.assigned:
            _release(work, track, (agent.id,))


def _release(work: UnitOfWork, track: Track, names: tuple[str, ...]) -> None:
    for name in names:
        track = tracks.left(track, (name,))
        work.record("track.released", track, project=track.project, details={"track": track.id, "agent": name})


def switched(work: UnitOfWork, project: Project, *, is_on: bool) -> list[Track]:
    """The tracks after the router was turned on: assigned to the holders of now; or off: to nobody."""
    found = {track.id: tracks.cleared(track) for track in work.find(Track, {"project": project.id})}
    before = {track.id: track for track in work.find(Track, {"project": project.id})}
    if is_on:
        for task in work.find(Task, {"project": project.id, "state": lifecycle.HELD}):
            if task.agent is not None and task.track in found:
                found[task.track] = tracks.joined(found[task.track], task.agent, work.now, holds=True)
    return [track for code, track in found.items() if track != before[code]]


def _track(work: UnitOfWork, project: str, code: str) -> Track:
    if not project_of(work, project).router:
        raise InvalidInput(
            f"the track router of project {project} is off", "turn it on with `tenure project set --router on`"
        )
    track = work.get(Track, project, code)
    if track is None:
        raise NotFound(f"no track {code[:40]!r} in project {project}", "`tenure track list` shows them")
    return track


def assign(work: UnitOfWork, cmd: commands.AssignTrack) -> Outcome:
    track = _track(work, cmd.project, cmd.code)
    check_agent_name(work, cmd.project, cmd.agent)
    if tracks.is_full_for(track, cmd.agent, work.now):
        there = tracks.assigned(track, work.now)
        message = f"track {track.id} is assigned to {', '.join(there[:5])}; its max_agents is {track.max_agents}"
        release = f"tenure track release {shell_word(track.id)} {shell_word(there[0])}"
        hint = f"release it first: {release}; or define it with more --max-agents"
        return Outcome(outcome="DENIED_TRACK", holder=there[0], message=message, hint=hint)
    if cmd.agent in track.pinned:
        return Outcome(outcome="UNCHANGED", message=f"track {track.id} is assigned to {cmd.agent}")
    pinned = tracks.joined(track, cmd.agent, work.now, holds=_holds(work, track, cmd.agent), pinned=True)
    details = {"track": track.id, "agent": cmd.agent, "by": work.principal.name}
    work.record("track.assigned", pinned, project=cmd.project, details=details)
    message = f"track {track.id} is assigned to {cmd.agent} until it leaves or is released"
    return Outcome(outcome="UPDATED", holder=cmd.agent, message=message, command_id=work.command_id)


def release(work: UnitOfWork, cmd: commands.ReleaseTrack) -> Outcome:
    track = _track(work, cmd.project, cmd.code)
    there = tracks.assigned(track, work.now)
    names = there if cmd.agent is None else tuple(name for name in there if name == cmd.agent)
    if not names:
        return Outcome(outcome="UNCHANGED", message=f"track {track.id} is not assigned to {cmd.agent or 'any agent'}")
    _release(work, track, names)
    message = f"track {track.id} is no longer assigned to {', '.join(names[:5])}"
    return Outcome(outcome="UPDATED", changed=names, message=message, command_id=work.command_id)


HANDLERS: Handlers = {commands.AssignTrack: assign, commands.ReleaseTrack: release}
