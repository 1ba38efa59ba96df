"""The hot three in one statement each: what a store that declares FUSED takes and gives.

Guard and stamp only, and for rows alone that core has marked `plain`: the statement checks what `claims.judge` would,
writes what `claims.granted`, `claims.renewed` and `claims.ended` would, and tells it in the log as the engine would. A
row that its guard does not let through is left out of the answer, and goes the long way. The shipped suite runs every
history both ways.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from tenure.core.records import Brief, Task


class Grant(NamedTuple):
    """A claim of a task that stands in its lane; `task` is its id. The texts in JSON are members of an object."""

    project: str
    task: str
    agent: str
    session: str
    user: str | None
    lease: int
    nonce: bytes
    process: str | None
    request_id: str | None
    request_hash: str | None
    event: str  # ids of the event, and of the command that caused it
    command: str
    trace_id: str | None
    by_user: str | None  # whose command it is, for the log
    address: str | None
    who: str  # JSON: agent and session
    asked: str  # JSON: what the claim's row says beyond that


class Granted(NamedTuple):
    task: Task
    brief: Brief


class Completion(NamedTuple):
    """An accepted result for the task of that `ref`; `data` is JSON, of a size that a row may keep."""

    project: str
    ref: str
    generation: int
    nonce: bytes
    result: str
    data: str | None
    summary: str
    size: int
    digest: str
    request_id: str | None
    event: str
    command: str
    trace_id: str | None
    by_user: str | None
    address: str | None
    given: str  # JSON: what the result's row says beyond the claim's facts


class Completed(NamedTuple):
    """What the engine needs for the answer, and for what follows from the move; see Renewed for the holder."""

    project: str
    ref: str
    task: str
    key: str
    version: int
    state_before: str
    work_product: str
    agent: str
    session: str
    agent_seen: int | None
    agent_is_odd: bool | None
    session_seen: int | None
    dag: str
    children: int
    dependents: int


class Renewal(NamedTuple):
    """A renewal; without `lease` by as much as before. The others are for the event, where it starts the work."""

    project: str
    ref: str
    generation: int
    nonce: bytes
    lease: int | None
    event: str
    command: str
    trace_id: str | None
    by_agent: str | None
    by_session: str | None
    by_user: str | None
    address: str | None


class Renewed(NamedTuple):
    project: str
    ref: str
    lease_until: int
    agent: str
    session: str
    agent_seen: int | None  # when it was last heard of, if it is known at all
    agent_is_odd: bool | None  # stale, gone or in trouble: more than a sign of life may be due
    session_seen: int | None


class Fused(Protocol):
    """What a transaction of such a store offers besides the port. All that was saved before is seen."""

    def held(self, project: str, sessions: Collection[str], most: int) -> dict[str, list[tuple[str, str]]]:
        """Ids and keys of the first tasks that each session holds, by session."""

    def grant(self, grants: Sequence[Grant]) -> list[Granted]:
        """The tasks as they are now, in the order given; raises Conflict where one of them is not to be had."""

    def complete(self, completions: Sequence[Completion]) -> list[Completed]:
        """Those whose receipt was the current one of a plain task, in any order; no ref may come twice."""

    def renew(self, renewals: Sequence[Renewal]) -> list[Renewed]:
        """Those whose receipt was the current one of a plain task, in any order; no ref may come twice."""
