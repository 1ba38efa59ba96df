"""Who may claim what: the rules shared by a claim by name, the search for the next task, and `why`.

Each obstacle is a word, under which NO_TASK counts tasks that were passed over, and a sentence about the agent.
Obstacles of a lane concern every task in it; those of a task are checked one by one. A search stops at the first;
`why` collects all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tenure.core.priority import Lane
from tenure.core.records import Agent, Task


class Profile(NamedTuple):
    """What an agent can do and wants to do, and where claiming is stopped."""

    agent: str
    capabilities: frozenset[str]
    region: str | None
    tracks: tuple[str, ...]
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    stopped: Mapping[str, str] = {}


class Obstacle(NamedTuple):
    word: str
    sentence: str


def profile_of(agent: Agent, stopped: Mapping[str, str]) -> Profile:
    """The profile that the agent registered."""
    return Profile(agent.id, frozenset(agent.capabilities), agent.region, agent.tracks, stopped=stopped)


def lane_of_task(task: Task) -> Lane:
    return Lane(task.track, task.type, task.region or "", task.boost, task.requires)


def lacks_skill(profile: Profile, lane: Lane) -> Obstacle | None:
    if not profile.capabilities.issuperset(lane.requires):
        missing = sorted(set(lane.requires) - profile.capabilities)
        return Obstacle("not_capable", f"lacks {', '.join(missing)}")
    if lane.region and lane.region != profile.region:
        return Obstacle("not_capable", f"is not in region {lane.region}")
    return None


def stop_of(profile: Profile, *scopes: str) -> Obstacle | None:
    """The stop in one of the scopes, if any."""
    for scope in scopes if profile.stopped else ():
        if scope in profile.stopped:
            return Obstacle("stopped", f"claiming is stopped for {scope}: {profile.stopped[scope]}")
    return None


def scopes_of(task: Task, agent: str) -> tuple[str, ...]:
    """The scopes whose stop keeps this agent from this task."""
    return ("project:", f"agent:{agent}", f"track:{task.track}", f"type:{task.type}", f"dag:{task.dag}")


def lane_obstacles(profile: Profile, lane: Lane) -> Iterator[Obstacle]:
    skill = lacks_skill(profile, lane)
    if skill is not None:
        yield skill
    if profile.tracks and lane.track not in profile.tracks:
        yield Obstacle("other_track", f"works on {', '.join(profile.tracks)} only")
    if profile.types and lane.type not in profile.types:
        yield Obstacle("other_type", f"asks for {', '.join(profile.types)} only")
    stop = stop_of(profile, "project:", f"agent:{profile.agent}", f"track:{lane.track}", f"type:{lane.type}")
    if stop is not None:
        yield stop


def task_obstacles(profile: Profile, task: Task, now: int, waits: Callable[[Task], bool]) -> Iterator[Obstacle]:
    """Obstacles beyond those of its lane; `waits`: every model that the agent could use for it is rate limited."""
    if task.offer_to not in (None, profile.agent):
        yield Obstacle("offered", f"is not {task.offer_to}, to whom it is offered")
    if not set(profile.tags) <= set(task.tags):
        yield Obstacle("other_tags", f"asks for the tags {', '.join(profile.tags)}")
    stop = stop_of(profile, f"dag:{task.dag}")
    if stop is not None:
        yield stop
    if task.cool_offs.get(profile.agent, 0) > now:
        yield Obstacle("cooling", "is cooling off on this task")
    if waits(task):
        yield Obstacle("model_cooling", "would need a model that is rate limited")
