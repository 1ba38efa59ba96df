"""The hot three in one statement each: what a store that declares FUSED takes and gives.

Guard and stamp only, and for rows alone that core has marked `plain`: the statement checks what `claims.judge` would,
writes what `claims.granted`, `claims.renewed` and `claims.ended` would, and tells it in the log as the engine would. A
row that its guard does not let through is left out of the answer, and goes the long way. The shipped suite runs every
history both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tenure.core.records import Agent, Claim, Session, Task


class Asking(NamedTuple):
    """Who wants to claim: an agent in a session, by a request that may have come before."""

    agent: str
    session: str
    request_id: str | None


class Known(NamedTuple):
    """One of whom nothing has to be decided: agent and session are at work, and it was neither offered anything nor
    has its request come before. What an agent can do is told in the columns' own words: equal texts, equal agents."""

    agent_seen: int
    session_seen: int
    skills: tuple[str, str, str | None, str, str]  # capabilities, tracks, region, type, models
    held: list[tuple[str, str]]  # ids and keys of the first tasks that the session holds


class Grant(NamedTuple):
    """A claim of a task that stands in its lane; `task` is its id."""

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
    key: str | None  # the API key it was made with


# What a new holder is told of its task beyond what the grant itself says; the first of these are of the task, the
# others of its brief. The rest a plain task does not have before its first claim; where one has, see `is_usual`.
TOLD = (
    "id", "key", "ref", "track", "type", "dag", "parent", "run", "max_attempts", "priority", "tags", "not_before",
    "created_by", "created_at", "ready_at", "version",
)  # fmt: skip
TOLD_OF_BRIEF = ("title", "description", "spec", "metadata", "constraints", "output", "touches")


class Granted(NamedTuple):
    """What the holders are told, to be read at any time: values of TOLD and TOLD_OF_BRIEF for each grant."""

    rows: Callable[[], list[list[Any]]]
    is_usual: bool  # of no task there is more to tell, and nothing in these rows refers to others


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
    said: str  # JSON: what the result's row says beyond the claim's facts


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
    mail: int  # messages that the agent has not read, counted no further than asked


class Holders(NamedTuple):
    """The stored rows of the tasks and claims that receipts name, and of who holds them."""

    tasks: list[Task]
    claims: list[Claim]
    agents: list[Agent]
    sessions: list[Session]


class NeedsSlowPath(Exception):
    """Ends a transaction of which something has to be decided after all: nothing of it was done."""


class FastPath(Protocol):
    """What a transaction of such a store offers besides the port. All that was saved before is seen.

    With `last` nothing is asked any more but what the verb gives, which is there once the transaction has ended: the
    store may carry it out with the commit. It does so only where all of it is as usual, and ends with Unusual else.
    """

    def holders(self, project: str, receipts: Sequence[tuple[str, int]]) -> Holders:
        """By ref and generation, in one journey."""

    def known(self, project: str, asking: Sequence[Asking], most: int) -> dict[int, Known]:
        """Those of whom nothing has to be decided, by their number; of what each holds the first `most`."""

    def grant(self, grants: Sequence[Grant], *, last: bool) -> Granted:
        """Raises Conflict where one of the tasks is not to be had. What it tells can be read after the commit too.

        Usual is what `Granted.is_usual` says.
        """

    def complete(self, completions: Sequence[Completion], heard: int, *, last: bool) -> Callable[[], list[Completed]]:
        """Those whose receipt was the current one of a plain task, in any order; no ref may come twice.

        It is usual that all of them are, that nothing follows for another task, and that every holder was heard of
        after `heard` and has no troubles.
        """

    def renew(
        self, renewals: Sequence[Renewal], most_mail: int, heard: int, *, last: bool
    ) -> Callable[[], list[Renewed]]:
        """Those whose receipt was the current one of a plain task, in any order; no ref may come twice.

        It is usual that all of them are, and that every holder was heard of after `heard` and has no troubles.
        """
