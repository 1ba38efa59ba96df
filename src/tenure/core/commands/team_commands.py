"""Agents, mail, reservations, leadership."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core import limits
from tenure.core.commands.command import PROJECT, Command, Declaration
from tenure.core.commands.holder_commands import Process


class Register(Command, frozen=True, kw_only=True, tag="register"):
    """Register an agent and its capabilities."""

    declaration: ClassVar = Declaration("agents", "agent", "PUT", PROJECT + "/agents/{agent}", speaks_for="agent")

    agent: str
    session: str | None = None
    user: str | None = None
    type: str = "generic"
    capabilities: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    region: str | None = None
    tracks: tuple[str, ...] = ()
    max_concurrent_tasks: int | None = None
    heartbeat: float = limits.AGENT_HEARTBEAT
    stale_after: float = limits.AGENT_STALE
    host: str | None = None
    boot: str | None = None
    pid: int | None = None
    pid_start: int | None = None
    managed: bool = False
    public_key: str | None = None  # Ed25519, in hex: results of the session must be signed with it


class Heartbeat(Command, frozen=True, kw_only=True, tag="heartbeat"):
    """A sign of life of an agent; renews no lease. Fields that are left out stay as they were."""

    declaration: ClassVar = Declaration(
        "agents", "agent", "POST", PROJECT + "/agents/{agent}/heartbeat", speaks_for="agent"
    )

    agent: str
    session: str | None = None
    health: str | None = None
    step: str | None = None
    memory_mb: int | None = None
    cpu_percent: int | None = None
    task: str | None = None  # which of its tasks it works on
    percent: int | None = None
    metadata: dict[str, Any] | None = None


class Drain(Command, frozen=True, kw_only=True, tag="drain"):
    """Drain an agent: it finishes its tasks and claims no more."""

    declaration: ClassVar = Declaration("agents", "member", "POST", PROJECT + "/agents/{agent}/drain")

    agent: str


class Terminate(Command, frozen=True, kw_only=True, tag="terminate"):
    """Terminate an agent: it claims nothing until it is resumed. Graceful: its claims may finish."""

    declaration: ClassVar = Declaration("agents", "member", "POST", PROJECT + "/agents/{agent}/terminate")

    agent: str
    graceful: bool = True
    reason: str = ""


class ResumeAgent(Command, frozen=True, kw_only=True, tag="resume_agent"):
    """Let a drained or terminated agent claim again."""

    declaration: ClassVar = Declaration("agents", "member", "POST", PROJECT + "/agents/{agent}/resume")

    agent: str


class Leave(Command, frozen=True, kw_only=True, tag="leave"):
    """End a session and release its claims."""

    declaration: ClassVar = Declaration("agents", "agent", "POST", PROJECT + "/sessions/{session}/leave")

    session: str


class Gone(Command, frozen=True, kw_only=True, tag="gone"):
    """Report processes that have ended, by their own host's process table: their claims expire now."""

    declaration: ClassVar = Declaration("agents", "agent", "POST", PROJECT + "/gone")

    processes: tuple[Process, ...]


class Send(Command, frozen=True, kw_only=True, tag="send"):
    """Send mail to an agent, or to `@all`, `@idle`, `@leader`, `@track:B`, `@type:claude-code`.

    With an `action` it is a command for programs: brokers carry it to a worker of that type.
    """

    declaration: ClassVar = Declaration("mail", "agent", "POST", PROJECT + "/messages", speaks_for="sender")

    sender: str
    text: str
    to: str = "@all"
    type: str = "chat"
    reply_to: str | None = None
    action: str | None = None
    expires: float | None = None  # seconds until it is no longer worth acting on


class Read(Command, frozen=True, kw_only=True, tag="read"):
    """Mark a recipient's mail as read, and return it."""

    declaration: ClassVar = Declaration("mail", "agent", "POST", PROJECT + "/agents/{agent}/read", speaks_for="agent")

    agent: str
    messages: tuple[str, ...] | None = None  # None: all unread


class Reserve(Command, frozen=True, kw_only=True, tag="reserve"):
    """Reserve patterns. With a task's `receipt` they last as long as the claim; alone they have their own lease."""

    declaration: ClassVar = Declaration("reserve", "agent", "POST", PROJECT + "/reservations", speaks_for="agent")

    patterns: tuple[str, ...]
    agent: str
    session: str
    mode: str = "exclusive"
    receipt: str | None = None
    lease: float | None = None


class RenewReservation(Command, frozen=True, kw_only=True, tag="renew_reservation"):
    """Extend the lease of a standalone reservation."""

    declaration: ClassVar = Declaration("reserve", "agent", "POST", PROJECT + "/reservations/renew")

    receipt: str
    lease: float | None = None


class Unreserve(Command, frozen=True, kw_only=True, tag="unreserve"):
    """Release a reservation."""

    declaration: ClassVar = Declaration("reserve", "agent", "POST", PROJECT + "/reservations/release")

    receipt: str


class Lead(Command, frozen=True, kw_only=True, tag="lead"):
    """Become the leader, or renew leadership. With an agent: the project's `@leader`; else the store's coordinator."""

    declaration: ClassVar = Declaration("lead", "agent", "POST", PROJECT + "/leader", speaks_for="holder")

    holder: str
    agent: bool = False
    lease: float = limits.LEADER_LEASE
    term: int | None = None  # the current term, to renew


class StepDown(Command, frozen=True, kw_only=True, tag="step_down"):
    """Step down as leader."""

    declaration: ClassVar = Declaration("lead", "agent", "POST", PROJECT + "/leader/step-down", speaks_for="holder")

    holder: str
    term: int
    agent: bool = False
