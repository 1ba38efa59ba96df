"""The contract of a spawner: it starts one agent for one spawn, finds it, reports whether it lives, and ends it.

A spawner is synchronous and is used by one thread at a time; a call may take up to its `timeout`. It decides nothing:
the spawn is recorded before the call, and the claim of the child is judged by the engine, whatever a spawner answers.
`tenure.testing.suites.spawner` proves every sentence below with real processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from tenure.core.errors import TenureError

State = Literal["running", "ended", "unknown"]


class SpawnFailed(TenureError):
    """Definite: no process was started for this spawn, and none will be."""

    code = "SPAWN_FAILED"


class SpawnUnknown(TenureError):
    """No answer, or not in time: the process may or may not run. The same spawn may be asked for again."""

    code = "SPAWN_UNKNOWN"
    definite = False


class SpawnContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway learns of the task before its agent claims it."""

    title: str = ""
    description: str = ""
    input: Any = None  # sealed values are left out
    checkpoint: Any = None


class SpawnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One agent to start for one task."""

    spawn: str  # its id; the same id never starts a second process
    tenant: str
    project: str
    pool: str
    agent: str  # the name that claims
    task: str  # its id
    key: str  # as in `B-003`
    label: str  # `task:<key>:<title[:30]>`
    offer_seconds: float  # how long the task stays offered to the agent
    url: str  # of the server, or of the store for an agent on its machine
    program: str  # the name of an agent (`claude`) or of `[programs.NAME]`
    token: str | None = None  # a key for this agent alone; it is never on a command line, in a file or in a log
    context: SpawnContext = SpawnContext()
    models: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()


class Spawned(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a spawner has started."""

    handle: str  # `pid:start time`, or the id that the other machine gave
    session: str | None = None  # the agent's session there, where the spawner knows it


class Spawner(Protocol):
    """Starts agents."""

    def home(self) -> str:
        """Names the place where its starts are recorded; it is the same after a restart. Empty: not known now.

        Only a spawner with the same home can report that a spawn has no process.
        """

    def spawn(self, request: SpawnRequest, timeout: float) -> Spawned:
        """Start the agent. The same spawn id again gives the same process, also after a restart of the caller.

        Raises SpawnFailed where nothing was started, and SpawnUnknown where that is not known within `timeout` seconds.
        """

    def find(self, spawns: Sequence[str]) -> Mapping[str, Spawned | None]:
        """The process of each spawn, also one that has ended. None: no process was started for it.

        A spawn about which that is not known is left out. Raises nothing.
        """

    def status(self, handles: Sequence[str]) -> Mapping[str, State]:
        """The state of each of them; `unknown` where the other machine does not answer. Raises nothing."""

    def end(self, handle: str, graceful: bool) -> None:
        """End the process and everything that it has started; an ended one stays ended.

        Graceful: the agent may finish its current task. Raises SpawnUnknown where the other machine does not answer.
        """

    def close(self) -> None:
        """Close connections. The processes live on."""
