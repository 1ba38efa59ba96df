"""The order in which ready tasks are claimed, and which agents may claim them.

effective = base − age_minutes × boost − urgency − weight; lower goes first, critical (0–9) before all others.

All tasks of a lane age at the same boost, so their relative order never changes with time: the *rank*
`base + boost × created − urgency − weight` is static and indexed. Lanes are compared by `rank − boost × now`. Only a
nearing deadline or a growing graph changes a rank. Everything is in integer units of
1/6e9 point, which makes boosts (hundredths of a point per minute) times microseconds exact.

In the order `shortest` each tier is a separate band, and the rank is `created + length`, in microseconds: the length is
the task's estimate, at most 4 h, fixed when the task is created. So inside its tier a task never waits for one that was
created more than 4 h after it. A project that changes its order begins a new *turn*: the tasks of earlier turns go
first, so none of them waits for newer ones for ever; `project reorder` moves them to the current turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.records import Agent, Task
from tenure.core.retry import TROUBLES_IN_A_ROW

if TYPE_CHECKING:
    from tenure.core.views.task_views import PriorityView

TIERS = {"critical": (0, 0), "high": (10, 20), "normal": (30, 50), "low": (60, 70), "background": (80, 90)}
_TIER_OF = [next(name for name, (low, _) in reversed(TIERS.items()) if n >= low) for n in range(101)]
BOOSTS = {0.0: 0, 0.01: 1, 0.1: 10, 1.0: 100, 10.0: 1000}  # points per minute → hundredths
UNIT = 6_000_000_000
HOUR = 3_600_000_000
URGENCY = ((3 * HOUR, 40), (6 * HOUR, 20), (12 * HOUR, 10), (24 * HOUR, 5))
DEEPEST = limits.WEIGHT_DEPTH
PREFERS = ","  # before a region that a task prefers; a region that it requires has no comma
ELSEWHERE = 10 * UNIT  # how far back such a task is for agents elsewhere: ten points; by length, 16 h 40 min


def tier_of(priority: int) -> str:
    return _TIER_OF[priority]


def parse_priority(value: int | str) -> int:
    if isinstance(value, str):
        if value in TIERS:
            return TIERS[value][1]
        if not value.isascii() or not value.isdigit() or len(value) > 3:
            raise InvalidInput(
                f"priority {value[:40]!r} must be a number from 0 (critical) to 100, or one of {', '.join(TIERS)}"
            )
        value = int(value)
    if isinstance(value, bool) or not 0 <= value <= 100:
        raise InvalidInput(f"priority must be from 0 (critical) to 100 (background) (got {value})")
    return value


def parse_boost(value: float) -> int:
    if value not in BOOSTS:
        raise InvalidInput(f"ageing boost must be 0, 0.01, 0.1, 1 or 10 points per minute (got {value})")
    return BOOSTS[value]


def urgency(deadline: int | None, now: int) -> int:
    if deadline is None:
        return 0
    return next((points for within, points in URGENCY if deadline - now <= within), 0)


def next_urgency(deadline: int | None, now: int) -> int | None:
    """When the urgency next grows, or the deadline passes."""
    if deadline is None or now >= deadline:
        return None
    return min(t for within, _ in (*URGENCY, (0, 0)) if (t := deadline - within) > now)


def weight(height: int) -> int:
    return min(20, 2 * height)


ORDERS = ("priority", "shortest")
_HIGH = TIERS["high"][0]
FIRST_BAND = 0  # of critical tasks, in any order and turn
_TIER_BANDS = len(TIERS) - 1  # of one turn of the order: one for each tier below critical


def band_of(task: Task) -> int:
    """Compared before the rank. Critical tasks go first; then those of an earlier turn of the project's order."""
    if task.priority < _HIGH:
        return FIRST_BAND
    tier = 1 if task.length is None else list(TIERS).index(tier_of(task.priority))
    return _TIER_BANDS * task.order_turn + tier


def length_of(order: str, estimate: int | None) -> int | None:
    """The length of a new or reordered task in this order; without an estimate it counts as the longest."""
    if order != "shortest":
        return None
    return limits.ORDER_LONGEST if estimate is None else min(estimate, limits.ORDER_LONGEST)


def ageing(task: Task) -> int:
    """By how much the rank falls against `now` with each microsecond. By length all tasks age alike."""
    return task.boost if task.length is None else 1


def rank(task: Task, now: int) -> int:
    if task.length is not None:
        return task.created_at + task.length
    return (task.priority - urgency(task.deadline, now) - weight(task.height)) * UNIT + task.boost * task.created_at


class LanePosition(msgspec.Struct, frozen=True, order=True):
    """The position of a ready task across all lanes at one moment; the smallest goes first."""

    band: int
    effective: int
    sequence: int
    id: str
    plain: bool = False


def place(task: Task, now: int) -> LanePosition:
    return LanePosition(task.band, task.rank - ageing(task) * now, task.sequence, task.id)


def explain(task: Task, now: int) -> PriorityView:
    """The parts of the effective priority, for `why`."""
    age = (now - task.created_at) / 60_000_000
    parts: PriorityView = {
        "base": task.priority,
        "tier": tier_of(task.priority),
        "age_minutes": round(age, 1),
        "boost": task.boost / 100,
        "urgency": urgency(task.deadline, now),
        "weight": weight(task.height),
        "effective": round((rank(task, now) - ageing(task) * now) / UNIT, 2),
    }
    if task.length is not None:
        parts["length"] = task.length / 1e6
    return parts


# --- lanes: what claims filter by equality ------------------------------------------------------------------


class Lane(msgspec.Struct, frozen=True):
    """One queue in the index: tasks that the same agents may claim and that age alike."""

    track: str
    type: str
    region: str
    boost: int
    requires: tuple[str, ...]
    agent_type: str = ""


def lane_of(task: Task) -> str:
    parts = (task.track, task.type, task.region or "", str(ageing(task)), ",".join(task.requires))
    return "|".join(parts if task.agent_type is None else (*parts, task.agent_type))


@lru_cache(maxsize=256)  # every claim reads the lanes
def parse_lane(text: str) -> Lane:
    track, type_, region, boost, requires, *agent_type = text.split("|")
    return Lane(track, type_, region, int(boost), tuple(requires.split(",")) if requires else (), *agent_type)


# --- who may claim what: shared by a claim by name, the search for the next task, and `why` -----------------


class Profile(msgspec.Struct, frozen=True):
    """What an agent can do and wants to do, and where claiming is stopped."""

    agent: str
    capabilities: frozenset[str]
    region: str | None
    tracks: tuple[str, ...]
    agent_type: str
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    stopped: Mapping[str, str] = {}
    without: tuple[str, ...] = ()  # ids of tasks that still run in the claimant
    taken: Mapping[str, tuple[str, ...]] = {}  # tracks that are full → the agents they are assigned to


OTHER_AGENTS = "assigned_to_others"  # the word for tasks of tracks that are assigned to other agents


class Obstacle(msgspec.Struct, frozen=True):
    """Obstacles of a lane concern every task in it; those of a task are checked one by one.

    A search stops at the first; `why` collects all. NO_TASK counts the tasks that were passed over under each word.
    """

    word: str
    sentence: str


def profile_of(agent: Agent, stopped: Mapping[str, str], taken: Mapping[str, tuple[str, ...]] | None = None) -> Profile:
    """The profile that the agent registered; `taken` as in Profile."""
    return Profile(
        agent.id, frozenset(agent.capabilities), agent.region, agent.tracks, agent.type, stopped=stopped,
        taken=taken or {},
    )  # fmt: skip


def lane_of_task(task: Task) -> Lane:
    return Lane(task.track, task.type, task.region or "", ageing(task), task.requires, task.agent_type or "")


def lacks_skill(profile: Profile, lane: Lane) -> Obstacle | None:
    if not profile.capabilities.issuperset(lane.requires):
        missing = sorted(set(lane.requires) - profile.capabilities)
        return Obstacle("not_capable", f"lacks {', '.join(missing)}")
    if lane.region and not lane.region.startswith(PREFERS) and lane.region != profile.region:
        return Obstacle("not_capable", f"is not in region {lane.region}")
    if lane.agent_type and lane.agent_type != profile.agent_type:
        return Obstacle(
            "not_capable", f"has the type {profile.agent_type}; it needs an agent of type {lane.agent_type}"
        )
    return None


def region_of(required: str | None, preferred: str | None) -> str | None:
    """The region of a task's row: one that it requires, or one that it prefers, or none."""
    if required is not None and preferred is not None:
        raise InvalidInput("constraints.region and constraints.prefer_region exclude each other", "keep one of them")
    return required if preferred is None else PREFERS + preferred


def set_back(profile: Profile, lane: Lane) -> int:
    """By how much the tasks of a lane are behind for this agent: it is not in the region that they prefer.

    Only the order within a band changes: nothing is excluded, and critical tasks stay before all others. Agents in the
    region gain nothing: so a position without this is never too late, and the fast path may compare by it.
    """
    return ELSEWHERE if lane.region.startswith(PREFERS) and lane.region != PREFERS + (profile.region or "") else 0


GO = "a person can allow it again with `tenure go`"  # the hint of a stop


def stop_text(scope: str, reason: str) -> str:
    """That claiming is stopped in a scope, and why."""
    return f"claiming is stopped for {scope_text(scope)}" + (f": {reason}" if reason else "")


def scope_text(scope: str) -> str:
    return "the whole project" if scope == "project:" else scope.replace(":", " ", 1)


def stop_of(profile: Profile, *scopes: str) -> Obstacle | None:
    """The stop in one of the scopes, if any."""
    for scope in scopes:
        if scope in profile.stopped:
            return Obstacle("stopped", stop_text(scope, profile.stopped[scope]))
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
    if lane.track in profile.taken:
        yield Obstacle(
            OTHER_AGENTS, f"is not assigned to track {lane.track}; {', '.join(profile.taken[lane.track])} is"
        )
    if profile.stopped:
        stop = stop_of(profile, "project:", f"agent:{profile.agent}", f"track:{lane.track}", f"type:{lane.type}")
        if stop is not None:
            yield stop


def offered_elsewhere(agent: str, task: Task) -> Obstacle | None:
    if task.offer_to is None or task.offer_to == agent:
        return None
    return Obstacle("offered", f"is not {task.offer_to}, to whom it is offered")


def task_obstacles(profile: Profile, task: Task, now: int, waits: Callable[[Task], bool]) -> Iterator[Obstacle]:
    """Obstacles beyond those of its lane; `waits`: every model that the agent could use for it is rate limited."""
    offered = offered_elsewhere(profile.agent, task)
    if offered is not None:
        yield offered
    if profile.tags and not set(profile.tags) <= set(task.tags):
        yield Obstacle("other_tags", f"asks for the tags {', '.join(profile.tags)}")
    if task.id in profile.without:
        yield Obstacle("running_here", "still runs a function for an earlier claim of it")
    stop = stop_of(profile, f"dag:{task.dag}") if profile.stopped else None
    if stop is not None:
        yield stop
    if task.cool_offs and task.cool_offs.get(profile.agent, 0) > now:
        yield Obstacle("cooling", "is cooling off on this task")
    if waits(task):
        yield Obstacle("model_cooling", "would need a model that is rate limited")


def is_half_open(agent: Agent) -> bool:
    """After its cool-off an agent in trouble may hold one task, until one succeeds."""
    return agent.troubles >= TROUBLES_IN_A_ROW
