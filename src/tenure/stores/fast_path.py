"""The fast path: arguments and answers of claim, renew and complete in one statement, for a store with FAST_PATH.

Guard and stamp only, and only for rows that core has marked `plain`: the statement checks what `claims.judge` would
check, writes what `claims.granted`, `claims.renewed` and `claims.ended` would write, and appends the engine's events.
Rows that do not pass the guard are missing in the answer and take the slow path. The shipped suite runs every history
both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tenure.core.records import Agent, Claim, Session, Task


class Asking(NamedTuple):
    """A claimant: an agent in a session, and the id of a request that may be a repetition."""

    agent: str
    session: str
    request_id: str | None


class Known(NamedTuple):
    """A claimant without anything to decide: agent and session are active, it has no offer, its request is new.

    `skills` are the columns' texts: equal texts mean equal skills.
    """

    agent_seen: int
    session_seen: int
    skills: tuple[str, str, str | None, str, str]  # capabilities, tracks, region, type, models
    held: list[tuple[str, str]]  # ids and keys of the first tasks that the session holds


class Grant(NamedTuple):
    """A claim of a task that is in its lane; `task` is its id."""

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
    by_user: str | None  # the user of the command, for the log
    address: str | None
    key: str | None  # the API key of the command


# The fields of its task (`TOLD`) and its brief (`TOLD_OF_BRIEF`) that a new holder gets, besides the grant's own. A
# plain task has no others before its first claim; where one has, `is_usual` is False.
TOLD = (
    "id", "key", "ref", "track", "type", "dag", "parent", "run", "max_attempts", "priority", "tags", "not_before",
    "created_by", "created_at", "ready_at", "version",
)  # fmt: skip
TOLD_OF_BRIEF = ("title", "description", "spec", "metadata", "constraints", "output", "touches")


class Granted(NamedTuple):
    """The values of `TOLD` and `TOLD_OF_BRIEF` for each grant, readable at any time."""

    rows: Callable[[], list[list[Any]]]
    is_usual: bool  # no task has other fields to show, and no row refers to another


class Completion(NamedTuple):
    """An accepted result for the task with this `ref`; `data` is JSON, small enough for a row."""

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
    said: str  # JSON: the fields of the result's row besides the claim's facts


class Completed(NamedTuple):
    """The values that the engine needs for the answer and for the effects of the move; for the holder see Renewed."""

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
    """A renewal; without `lease` the lease stays as long as before. Ids are for the event, where work starts."""

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
    agent_seen: int | None  # when the agent was last active, if it is registered
    agent_is_odd: bool | None  # stale, gone or in trouble: more than a new `last_seen` may be due
    session_seen: int | None
    mail: int  # unread messages of the agent, counted up to a limit


class Holders(NamedTuple):
    """The stored rows of the tasks and claims that receipts name, and of their holders."""

    tasks: list[Task]
    claims: list[Claim]
    agents: list[Agent]
    sessions: list[Session]


class NeedsSlowPath(Exception):
    """Ends a transaction that needs a decision after all: nothing of it was done."""


class FastPath(Protocol):
    """The verbs of such a store's transaction besides the port. They see everything that was saved before.

    With `last` no query follows, and the answer is read after the transaction has ended: the store may run the verb
    with the commit. It does so only where all of it is as usual, and raises NeedsSlowPath otherwise.
    """

    def holders(self, project: str, receipts: Sequence[tuple[str, int]]) -> Holders:
        """By ref and generation, in one round trip."""

    def known(self, project: str, asking: Sequence[Asking], most: int) -> dict[int, Known]:
        """The claimants without anything to decide, by their number, each with the first `most` tasks that it holds."""

    def grant(self, grants: Sequence[Grant], *, last: bool) -> Granted:
        """Raises Conflict where a task is no longer claimable. The answer can also be read after the commit.

        Usual: see `Granted.is_usual`.
        """

    def complete(self, completions: Sequence[Completion], heard: int, *, last: bool) -> Callable[[], list[Completed]]:
        """Those whose receipt was the current one of a plain task, in any order; no ref may occur twice.

        Usual: all of them are, no other task is affected, and every holder was active after `heard` and has no
        troubles.
        """

    def renew(
        self, renewals: Sequence[Renewal], most_mail: int, heard: int, *, last: bool
    ) -> Callable[[], list[Renewed]]:
        """Those whose receipt was the current one of a plain task, in any order; no ref may occur twice.

        Usual: all of them are, and every holder was active after `heard` and has no troubles.
        """
