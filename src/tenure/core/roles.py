"""Who may ask for what. A role never proves a holder: that is what receipts are for."""

from __future__ import annotations

from tenure.core import commands as c
from tenure.core.commands import Command, Principal
from tenure.core.errors import NotAllowed
from tenure.core.queries import Inbox, Query

ROLES = ("viewer", "agent", "member", "admin", "owner")
_LEVEL = {role: level for level, role in enumerate(ROLES)}

NEEDS: dict[type[Command], str] = {
    **dict.fromkeys(
        (
            c.Claim, c.ClaimNext, c.Renew, c.Start, c.Progress, c.Checkpoint, c.Usage, c.Land, c.Submit, c.Fail,
            c.Release, c.Ask, c.Spawn, c.Wait, c.Add, c.Register, c.Heartbeat, c.Leave, c.Gone, c.Send, c.Read,
            c.Reserve, c.RenewReservation, c.Unreserve, c.Lead, c.StepDown,
        ),
        "agent",
    ),
    **dict.fromkeys(
        (
            c.Plan, c.Link, c.Unlink, c.Publish, c.Pause, c.Resume, c.Answer, c.Cancel, c.Retry, c.Reset, c.Adopt,
            c.Archive, c.Edit, c.Assign, c.Reassign, c.Recover, c.Abort, c.Note, c.Undo, c.Drain, c.Terminate,
        ),
        "member",
    ),
    **dict.fromkeys((c.StopLine, c.StartLine, c.DefineProject, c.DefineTrack), "admin"),
}  # fmt: skip


def _is_coordination(command: Command) -> bool:
    """The store's own leader; a project's `@leader` is any agent that the project chose."""
    return isinstance(command, (c.Lead, c.StepDown)) and not command.agent


def check_here(principal: Principal, command: Command) -> None:
    """Whoever speaks from elsewhere has not looked at this host's processes, whatever its role."""
    if isinstance(command, c.Gone) and principal.address is not None:
        raise NotAllowed(
            "gone: only somebody on the host itself can see that a process has ended",
            "a claim whose holder is silent ends with its lease; a person can recover it",
        )


def check_own(principal: Principal, command: Command) -> None:
    """An agent speaks for its own session and mailbox alone, as far as it is known who it is."""
    if principal.role != "agent":
        return
    if isinstance(command, c.Leave) and principal.session not in (None, command.session):
        raise NotAllowed(f"leave: session {command.session} is another's", "ask a person to do it")
    if isinstance(command, c.Read) and principal.agent not in (None, command.agent):
        raise NotAllowed(f"read: the mail is for agent {command.agent}")


def check_role(principal: Principal, command: Command, *, agents_may_operate: bool) -> None:
    needed = "admin" if _is_coordination(command) else NEEDS[type(command)]
    role = principal.role
    if role == "agent" and agents_may_operate:
        role = "member"
    if _LEVEL.get(role, -1) < _LEVEL[needed]:
        verb = type(command).__struct_config__.tag
        raise NotAllowed(
            f"{verb}: needs the role {needed}; you are {principal.role}",
            "ask a person to do it" if principal.role == "agent" else None,
        )
    check_own(principal, command)
    check_here(principal, command)


def check_look(principal: Principal, query: Query) -> None:
    """Everybody who is known may look; an agent's mail is its own."""
    if principal.role == "agent" and isinstance(query, Inbox) and principal.agent not in (None, query.agent):
        raise NotAllowed(f"inbox: the mail is for agent {query.agent}")
