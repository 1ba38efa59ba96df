"""The track router: which agents a track is assigned to, and when that ends.

With the router on, one agent works on a track (or `max_agents` of them). An agent is assigned by its first claim there,
until it leaves, or holds nothing there for 10 minutes; `tenure track assign` assigns it until it leaves or is released.
Everything follows from the track's row and `now`, so no answer depends on a sweep: `idle_since` has the instant at
which the agent's last claim there ended. A pinned agent is always an assigned one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core import limits
from tenure.core.records import Track, replace


def ends_at(track: Track, agent: str) -> int | None:
    """When the assignment ends unless the agent claims again; None while it holds a task there, or is pinned."""
    since = track.idle_since.get(agent)
    return None if since is None or agent in track.pinned else since + limits.TRACK_IDLE


def assigned(track: Track, now: int) -> tuple[str, ...]:
    """The agents that are assigned at this moment, in the order in which they came."""
    return tuple(agent for agent in track.assigned if (end := ends_at(track, agent)) is None or end > now)


def is_full_for(track: Track, agent: str, now: int) -> bool:
    """Whether the agent may not work there: others are assigned, as many as the track allows."""
    there = assigned(track, now)
    return agent not in there and len(there) >= track.max_agents


def next_end(tracks: Iterable[Track], now: int) -> int | None:
    """When the first assignment ends by itself."""
    ends = (ends_at(track, agent) for track in tracks for agent in assigned(track, now))
    return min((at for at in ends if at is not None), default=None)


def joined(track: Track, agent: str, now: int, *, holds: bool, pinned: bool = False) -> Track:
    """The track with this agent assigned, and without assignments that have ended."""
    there = {name: track.assigned[name] for name in assigned(track, now)}
    idle = {name: at for name, at in track.idle_since.items() if name in there and name != agent}
    if not holds:
        idle[agent] = now
    pins = (*track.pinned, agent) if pinned and agent not in track.pinned else track.pinned
    return replace(track, assigned=there | {agent: there.get(agent, now)}, idle_since=idle, pinned=pins)


def left(track: Track, agents: Iterable[str]) -> Track:
    """The track without these agents."""
    gone = set(agents)
    return replace(
        track,
        assigned={name: at for name, at in track.assigned.items() if name not in gone},
        idle_since={name: at for name, at in track.idle_since.items() if name not in gone},
        pinned=tuple(name for name in track.pinned if name not in gone),
    )


def cleared(track: Track) -> Track:
    return replace(track, assigned={}, idle_since={}, pinned=())
