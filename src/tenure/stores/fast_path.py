"""The fast path: claim next, submit and renew as one call each, for a store with FAST_PATH.

A call is of one project and has one item per task or receipt in each of its columns; None instead of a column means
that all its items are None. The store does all of it, or nothing: it checks that everything is usual, writes what
`claims.granted`, `claims.ended` and `claims.renewed` would write, and appends the engine's events. Otherwise it raises
Unusual, and the ordinary path decides. The shipped suite runs every history both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from tenure.core.records import Agent, Claim, Project, Session, Task

Texts = list[str] | None
Optional = list[str | None] | None

# The fields of the task and its brief that a new holder gets, besides the grant's own. A plain task has no others
# before its first claim.
TASK_FIELDS = (
    "id", "key", "ref", "track", "type", "dag", "parent", "run", "max_attempts", "priority", "tags", "not_before",
    "created_by", "created_at", "ready_at", "version",
)  # fmt: skip
BRIEF_FIELDS = ("title", "description", "spec", "metadata", "constraints", "output", "touches")
MOST = 1024  # items of one call
FOLLOWS = "follows"  # why a call is refused: results of it concern other tasks
APART = "\x1e"  # between an agent's skills: capabilities, tracks, type, models, and its region if it has one


class Look(NamedTuple):
    """What a caller must know before a call, which is refused where it is out of date."""

    project: Project
    seen: str  # a mark of that row, which changes with it
    lanes: list[str]  # with claimable tasks
    skills: dict[str, str]  # of the agents that are known: equal texts mean equal skills


class Claims(NamedTuple):
    """Claims of the next best tasks. `of` has the place of the command's first task, `n` at that place how many."""

    project: str
    seen: str
    lanes: list[str]
    boosts: list[int]
    sets: list[str]  # which lanes fit, a digit 0 or 1 for each
    set: list[int]  # the one of these that counts for a task, from 1
    n: list[int | None]
    of: list[int]
    agent: list[str]
    session: list[str]
    skills: list[str]
    user: Optional
    lease: list[int]
    process: Optional
    request: Optional
    hash: Optional
    key: Optional
    by: Optional  # the user of the command, for the log
    address: Optional
    trace: Optional
    nonces: bytes
    seed: bytes  # of the ids


class Submits(NamedTuple):
    """Accepted results; `data` is JSON, small enough for a row. `agent`: the only one whose claim it may be."""

    project: str
    seen: str
    epoch: str
    ref: list[str]
    generation: list[int]
    nonces: bytes
    agent: Optional
    result: list[str]  # ids without prefix and time: see `IdMaker.tail`
    data: Optional
    summary: list[str]
    size: list[int]
    digest: list[str]
    request: Optional
    by: Optional
    address: Optional
    trace: Optional
    seed: bytes
    follows: bool = False  # also of tasks that others depend on: the caller does what follows, in the same transaction


class Renewals(NamedTuple):
    """Renewals; without `lease` the lease stays as long as before. Ids are for the event, where work starts."""

    project: str
    seen: str
    epoch: str
    ref: list[str]
    generation: list[int]
    nonces: bytes
    agent: Optional
    lease: list[int | None] | None
    by_agent: Optional
    by_session: Optional
    by: Optional
    address: Optional
    trace: Optional
    event: list[str]
    command: list[str]


Call = Claims | Submits | Renewals
# One row an item, its place from 1 on first, then `now` and two values of the store. Behind them, for claims the epoch,
# ids and keys of what the session holds, and the values of `TASK_FIELDS` and `BRIEF_FIELDS`; for submits key, version,
# work product, the task's id where something follows for others, and its state before; for renewals the end of the
# lease and the number of unread messages.
Rows = Callable[[], list[tuple[Any, ...]]]


class Unusual(Exception):
    """Nothing was done. `which` of a call need the ordinary path, from 0 on; empty: all of them."""

    def __init__(self, call: int, why: str, which: Sequence[int] = ()) -> None:
        super().__init__(why)
        self.call, self.why, self.which = call, why, tuple(which)


class Holders(NamedTuple):
    """The stored rows of the tasks and claims that receipts name, and of their holders."""

    tasks: list[Task]
    claims: list[Claim]
    agents: list[Agent]
    sessions: list[Session]


class Receipts(Protocol):
    """What the transactions of a store with HOLDERS have besides the port."""

    def holders(self, project: str, receipts: Sequence[tuple[str, int]]) -> Holders:
        """By ref and generation; for one receipt in one round trip."""


class FastTransaction(Receipts, Protocol):
    """What its transactions have besides the port, for commands that take the ordinary path."""

    def look(self, project: str) -> Look | None:
        """As the store's."""

    def call(self, call: Call) -> Rows:
        """As the store's, in a transaction that has written nothing yet; after Unusual it goes on as before."""


class FastPath(Protocol):
    """The verbs of such a store besides the port."""

    def look(self, tenant: str, project: str, agents: Collection[str]) -> Look | None:
        """None where there is no such project."""

    def call(self, tenant: str, calls: Sequence[Call]) -> list[Rows]:
        """Do all of them in one transaction, in this order, or raise Unusual; answers may be read at any time."""
