"""The model's rows: plain mutable dataclasses, and the few numbers of the specification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

HELD = ("claimed", "running")
FAILED = ("cancelled", "dead_lettered")
ENDED = ("completed", *FAILED)
UNSTARTED = ("created", "pending", "ready")
COUNTING = ("task", "crash", "timeout", "lease_expired", "invalid_output", "permanent")
AGENTS_OWN = ("environment", "auth_failure", "upstream_timeout")
MOST_GIVEN_BACK = 10
MOST_GENERATIONS = 100
LOSSES = 3  # in a row by one session, without a sign of work: this one and later ones count
POISON = 3  # counted failures, by two agents or more
NO_OFFER = ("", 0)
PERSONS = {"person", "drain", "lost"}  # causes that a person's resume lifts
MOST_REFUSED = 3

Answer = dict[str, Any]
Receipt = tuple[str | None, int, str, int] | None


class Refused(Exception):
    """The command is an error, by the code of its class."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Claim:
    generation: int
    run: int
    attempt: int
    nonce: str
    epoch: int
    agent: str
    session: str
    at: int
    lease: int
    until: int
    reason: str | None = None  # how it ended; None while it is live
    by: str | None = None  # the holder's own verb that ended it
    accepted: bool | None = None
    accepted_data: list[Any] = field(default_factory=list)
    refused: int = 0
    goes_on: bool = False  # with the attempt of its session's lost claim
    took: int = 0  # cents reserved with it
    under: int = 0  # cents spent while it lived
    told: int = 0  # the highest total that it has told
    unseen: bool = False  # there is a description that it has not seen
    answers: dict[str, Any] = field(default_factory=dict)  # request id → what was asked, and answered
    holds: dict[str, str] = field(default_factory=dict)  # reserved with it: pattern → exclusive or shared


@dataclass
class Alone:
    """A reservation without a claim."""

    holds: dict[str, str]
    session: str
    lease: int
    until: int


@dataclass
class Mail:
    text: str
    unread_by: set[str]


@dataclass
class Task:
    name: str
    ref: str
    track: str
    sequence: int
    state: str
    created_at: int
    type: str = "code"
    tags: tuple[str, ...] = ()
    priority: int = 50
    boost: int = 10  # hundredths of a point a minute
    deadline: int | None = None
    not_before: int = 0
    needs: dict[str, str] = field(default_factory=dict)  # task → on_failure
    parent: str | None = None
    local_name: str | None = None  # of a spawned one
    parent_run: int = 0
    requires: tuple[str, ...] = ()
    region: str | None = None
    touches: tuple[str, ...] = ()
    max_attempts: int = 3
    max_duration: int | None = None
    retry: dict[str, Any] = field(default_factory=dict)
    on_lost: str = "retry"
    idempotency_key: str | None = None
    run: int = 1
    attempts: int = 0
    given_back: int = 0
    losses: int = 0  # in a row by one session, since its last sign of work
    failures: list[str] = field(default_factory=list)  # agents of counted failures in this run, one an attempt
    before: str | None = None  # of a paused one
    causes: set[str] = field(default_factory=set)  # why it is paused; of a held one: that it is to be drained
    text: int = 1  # the number of its description
    retry_at: int | None = None
    ready_at: int = 0
    claims: list[Claim] = field(default_factory=list)
    late_submit_open: bool = False
    offer: tuple[str, int] = NO_OFFER
    cool_offs: dict[str, int] = field(default_factory=dict)
    troubled: set[str] = field(default_factory=set)
    was: str | None = None  # the state of a cancelled one before
    cancelled_by: str | None = None  # the dead letter whose cascade cancelled it
    kept: list[Any] = field(default_factory=list)  # refused results
    another_spec: bool = False  # somebody gave it another one than the plan has
    description: int = 0  # which text it is; 0: none
    archived: bool = False
    waits: Any = None  # its result that is to be landed
    has_waited: bool = False

    @property
    def generation(self) -> int:
        return len(self.claims)

    @property
    def held(self) -> bool:
        return self.state in HELD


@dataclass
class Agent:
    capabilities: tuple[str, ...] = ()
    region: str | None = None
    most: int | None = None
    draining: bool = False
    terminated: bool = False
    was_terminated: bool = False
    troubles: int = 0
    cool_until: int = 0


def overlap(one: str, other: str) -> bool:
    """Whether two patterns can name the same thing. The histories use a folder, its files, and plain names."""
    if one.endswith("/*") or other.endswith("/*"):
        return one.rpartition("/")[0] == other.rpartition("/")[0]
    return one == other
