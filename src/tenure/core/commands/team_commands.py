"""Agents, mail, reservations, leadership."""

from __future__ import annotations

from typing import ClassVar

from tenure.core import limits
from tenure.core.commands.command import Command
from tenure.core.commands.holder_commands import Process
from tenure.core.declaration import PROJECT, Declaration


class Register(Command, frozen=True, kw_only=True, tag="register"):
    """An agent says who it is and what it can do."""

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
    heartbeat: float = 30.0
    stale_after: float = limits.AGENT_STALE
    host: str | None = None
    boot: str | None = None
    pid: int | None = None
    pid_start: int | None = None


class Heartbeat(Command, frozen=True, kw_only=True, tag="heartbeat"):
    """A sign of life of an agent; renews no lease."""

    declaration: ClassVar = Declaration(
        "agents", "agent", "POST", PROJECT + "/agents/{agent}/heartbeat", speaks_for="agent"
    )

    agent: str
    session: str | None = None
    health: str = "ok"
    step: str | None = None
    memory_mb: int | None = None
    cpu_percent: int | None = None


class Drain(Command, frozen=True, kw_only=True, tag="drain"):
    """The agent finishes what it holds and takes nothing more."""

    declaration: ClassVar = Declaration("agents", "member", "POST", PROJECT + "/agents/{agent}/drain")

    agent: str


class Terminate(Command, frozen=True, kw_only=True, tag="terminate"):
    """End an agent: it claims nothing until it is resumed. Graceful: what it holds may finish."""

    declaration: ClassVar = Declaration("agents", "member", "POST", PROJECT + "/agents/{agent}/terminate")

    agent: str
    graceful: bool = True
    reason: str = ""


class ResumeAgent(Command, frozen=True, kw_only=True, tag="resume_agent"):
    """Let an agent claim again that was drained or terminated."""

    declaration: ClassVar = Declaration("agents", "member", "POST", PROJECT + "/agents/{agent}/resume")

    agent: str


class Leave(Command, frozen=True, kw_only=True, tag="leave"):
    """A session ends and gives back what it holds."""

    declaration: ClassVar = Declaration("agents", "agent", "POST", PROJECT + "/sessions/{session}/leave")

    session: str


class Gone(Command, frozen=True, kw_only=True, tag="gone"):
    """These processes have ended, as their own host's process table says: the claims they held expire now."""

    declaration: ClassVar = Declaration("agents", "agent", "POST", PROJECT + "/gone")

    processes: tuple[Process, ...]


class Send(Command, frozen=True, kw_only=True, tag="send"):
    """Send mail to an agent, or to `@all`, `@idle`, `@leader`, `@track:B`."""

    declaration: ClassVar = Declaration("mail", "agent", "POST", PROJECT + "/messages", speaks_for="sender")

    sender: str
    text: str
    to: str = "@all"
    type: str = "chat"
    reply_to: str | None = None


class Read(Command, frozen=True, kw_only=True, tag="read"):
    """Mark mail of a recipient as read, and give it back."""

    declaration: ClassVar = Declaration("mail", "agent", "POST", PROJECT + "/agents/{agent}/read", speaks_for="agent")

    agent: str
    messages: tuple[str, ...] | None = None  # None: all that is unread


class Reserve(Command, frozen=True, kw_only=True, tag="reserve"):
    """With a task's `receipt` it lives as long as the claim; alone it has a lease and its own receipt."""

    declaration: ClassVar = Declaration("reserve", "agent", "POST", PROJECT + "/reservations", speaks_for="agent")

    patterns: tuple[str, ...]
    agent: str
    session: str
    mode: str = "exclusive"
    receipt: str | None = None
    lease: float | None = None


class RenewReservation(Command, frozen=True, kw_only=True, tag="renew_reservation"):
    """Lengthen the lease of a reservation that stands alone."""

    declaration: ClassVar = Declaration("reserve", "agent", "POST", PROJECT + "/reservations/renew")

    receipt: str
    lease: float | None = None


class Unreserve(Command, frozen=True, kw_only=True, tag="unreserve"):
    """Give a reservation back."""

    declaration: ClassVar = Declaration("reserve", "agent", "POST", PROJECT + "/reservations/release")

    receipt: str


class Lead(Command, frozen=True, kw_only=True, tag="lead"):
    """Become, or stay, the leader. With an agent it is the project's `@leader`, else the store's coordinator."""

    declaration: ClassVar = Declaration("lead", "agent", "POST", PROJECT + "/leader", speaks_for="holder")

    holder: str
    agent: bool = False
    lease: float = limits.LEADER_LEASE
    term: int | None = None  # the term held so far, to renew


class StepDown(Command, frozen=True, kw_only=True, tag="step_down"):
    """Lead no more."""

    declaration: ClassVar = Declaration("lead", "agent", "POST", PROJECT + "/leader/step-down", speaks_for="holder")

    holder: str
    term: int
    agent: bool = False
