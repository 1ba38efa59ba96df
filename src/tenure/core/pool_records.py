"""Rows of pools and of the processes that they started."""

from __future__ import annotations

import msgspec

from tenure.core.task_records import Row


class Pool(Row, frozen=True, kw_only=True):
    """Agents that the leader starts while tasks are ready; its id is its name. The last fields have no events."""

    program: str  # the name of an agent or of a command in the leader's configuration
    spawner: str = "local"  # by name, from the same configuration
    size: int  # places: so many may be able to claim at once
    idle: int  # a process may live this long without a claim
    capabilities: tuple[str, ...] = ()  # of its agents
    types: tuple[str, ...] = ()  # of tasks that it takes; empty: all
    tracks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    enabled: bool = True
    disabled_for: str | None = None  # why it is paused
    created_by: str = "human:"
    created_at: int
    changed_at: int

    spawned: int = 0  # processes that were asked for, in all
    failures: int = 0  # spawns in a row that claimed nothing
    wait_until: int | None = None  # backing off: nothing is started before
    error: str | None = None  # of the last spawn that claimed nothing; None once one has claimed
    error_at: int | None = None


class Spawn(Row, frozen=True, kw_only=True):
    """One process of a pool: asked for under the leader's term, for one task, under one agent's name.

    Its state decides whether the process may claim. `lost`: it was never heard of in time, or nobody knows what became
    of it.
    """

    pool: str
    place: int  # from 1 to the pool's size
    agent: str  # the name that claims
    task: str  # the task that was offered to it
    task_key: str
    spawner: str
    home: str = ""  # where its spawner remembers it; another leader's may be another machine's
    state: str = "starting"  # starting, running, ended, lost
    handle: str | None = None  # pid and start time, or the other machine's id
    remote_session: str | None = None  # as its spawner named it
    session: str | None = None  # of its first claim: no other session may claim with this spawn
    term: int  # of the leader that asked for it
    started_at: int
    offer_until: int  # it must claim before
    running_at: int | None = None
    claimed_at: int | None = None  # when its first claim was granted
    idle_at: int | None = None  # it runs and holds nothing
    ended_at: int | None = None
    why: str | None = None  # it ended, or is lost
    api_key: str | None = None  # the id of the key that lives as long as it does
    funds: dict[str, int] = msgspec.field(
        default_factory=dict
    )  # budget → what its task would reserve, until its first claim
