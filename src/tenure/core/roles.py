"""Who may ask for what. A role never proves a holder: that is what receipts are for."""

from __future__ import annotations

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Command, Principal
from tenure.core.errors import NotAllowed, NotFound
from tenure.core.queries import Query
from tenure.core.records import Claim

ROLES = ("viewer", "agent", "member", "admin", "owner")
CHECKER = "checker"  # takes and judges validations
CAPABILITIES = (CHECKER,)  # what a key may be given beyond its role
_LEVEL = {role: level for level, role in enumerate(ROLES)}

NEEDS: dict[type[Command], str] = {kind: kind.declaration.role for kind in c.ALL}
# What of an agent's command names the agent that it is for. Verbs of operators name others on purpose.
SPEAKS_FOR = {kind: kind.declaration.speaks_for for kind in c.ALL if kind.declaration.speaks_for}
# All other queries are for everybody who is known. Mail is for whom it was written and for members.
LOOKS_NEED: dict[type[Query], str] = {
    kind: kind.declaration.role for kind in q.ALL if kind.declaration.role != ROLES[0]
}

# Of the store as a whole; these show and touch what is in the principal's reach by themselves.
_KEYS = (c.CreateKey, c.RotateKey, c.RevokeKey)
_FILTERED = (q.Projects, q.Keys)
_VALIDATING = (c.TakeValidation, c.RenewValidation, c.Judge, c.Undecide)


def level_of(role: str) -> int:
    """The higher, the more it may; below all where there is no such role."""
    return _LEVEL.get(role, -1)


def lower_of(role: str, other: str) -> str:
    return role if level_of(role) <= level_of(other) else other


def _is_coordination(command: Command) -> bool:
    """The store's own leader; a project's `@leader` is any agent that the project chose."""
    return isinstance(command, (c.Lead, c.StepDown)) and not command.agent


def check_scope(principal: Principal, project: str) -> None:
    """A project that is not the principal's looks as if there were none."""
    if principal.projects and project not in principal.projects:
        raise NotFound(f"no project {project[:80]!r} here", "init makes one; or name another")


def check_here(principal: Principal, command: Command) -> None:
    """Whoever speaks from elsewhere has not looked at this host's processes, whatever its role."""
    if isinstance(command, c.Gone) and principal.address is not None:
        raise NotAllowed(
            "gone: only somebody on the host itself can see that a process has ended",
            "a claim whose holder is silent ends with its lease; a person can recover it",
        )


def check_own(principal: Principal, command: Command) -> None:
    """An agent speaks for itself and its own session alone, as far as it is known who it is.

    Sessions and claims of an agent that is proven are compared with the rows, by `check_mine`.
    """
    if principal.role != "agent":
        return
    field = SPEAKS_FOR.get(type(command))
    if field is not None and principal.agent is not None and getattr(command, field) != principal.agent:
        verb = type(command).__struct_config__.tag
        raise NotAllowed(f"{verb}: you are agent {principal.agent}, not {getattr(command, field)[:80]}")
    if isinstance(command, c.Leave) and principal.session not in (None, command.session):
        raise NotAllowed(f"leave: session {command.session} is another's", "ask a person to do it")


def check_mine(principal: Principal, agent: str, what: str) -> None:
    """Whose key says which agent it is touches nothing of another agent's, even with its receipt."""
    if principal.is_proven and principal.role == "agent" and agent != principal.agent:
        raise NotAllowed(f"{what} is agent {agent}'s; your key is for {principal.agent}")


def check_verdict(principal: Principal, claim: Claim, what: str) -> None:
    """Nobody passes its own work, whatever its role.

    Over HTTP the claim's agent, session and key are known. On the machine itself names are what a process says, so
    nobody gives a verdict from a session in which an agent is recognised.
    """
    _check_not_recognised(principal, what)
    if is_author(principal, claim):
        raise NotAllowed(f"{what} was handed in by agent {claim.agent}, which cannot review it", "another may")


def is_author(principal: Principal, claim: Claim) -> bool:
    """Whether a visitor shares agent, session or key with the claim."""
    if principal.address is None:
        return False
    same_key = principal.key is not None and principal.key == claim.key
    return same_key or principal.agent == claim.agent or principal.session == claim.session


def _check_not_recognised(principal: Principal, what: str) -> None:
    if principal.address is None and principal.role == "agent":
        raise NotAllowed(
            f"{what}: no verdict is given from a session in which an agent works",
            "a person at a terminal may; `run`, `daemon` and `serve` run checks",
        )


def check_checker(principal: Principal, role: str, verb: str) -> None:
    """Who takes and judges validations by machine: a person, or a key with the capability."""
    _check_not_recognised(principal, verb)
    if role == "agent" and CHECKER not in principal.capabilities:
        raise NotAllowed(
            f"{verb}: needs the capability {CHECKER}; your key has none",
            "an admin makes one: tenure key create NAME --can checker",
        )


def check_kind(principal: Principal, kind: type[Command]) -> None:
    """Refuse whoever could not ask for this in any project, before it is known what exactly is asked."""
    role = "member" if principal.role == "agent" else principal.role  # where agents may operate
    if level_of(role) < level_of(NEEDS[kind]):
        raise _too_low(principal, str(kind.__struct_config__.tag), NEEDS[kind])


def _too_low(principal: Principal, verb: str, needed: str) -> NotAllowed:
    return NotAllowed(
        f"{verb}: needs the role {needed}; you are {principal.role}",
        "ask a person to do it" if principal.role == "agent" else None,
    )


def check_role(principal: Principal, command: Command, *, agents_may_operate: bool) -> None:
    is_of_store = _is_coordination(command)
    needed = "admin" if is_of_store else NEEDS[type(command)]
    if principal.projects:
        if is_of_store:
            check_all_projects(principal, "the store's coordinator")
        if not isinstance(command, _KEYS):
            check_scope(principal, command.project)
    role = principal.role
    if role == "agent" and agents_may_operate:
        role = "member"
    if _LEVEL.get(role, -1) < _LEVEL[needed]:
        raise _too_low(principal, str(type(command).__struct_config__.tag), needed)
    if isinstance(command, _VALIDATING):
        check_checker(principal, role, str(type(command).__struct_config__.tag))
    check_own(principal, command)
    check_here(principal, command)


def check_coordinator(principal: Principal, verb: str, needed: str = "admin") -> None:
    """What is asked of the store's coordinator is about all projects, and for admins of them all."""
    if level_of(principal.role) < level_of(needed):
        raise NotAllowed(f"coordinator {verb}: needs the role {needed}; you are {principal.role}")
    if level_of(needed) >= level_of("admin"):
        check_all_projects(principal, f"coordinator {verb}")


def check_all_projects(principal: Principal, what: str) -> None:
    """What is told or done of all projects at once is not for a key of some."""
    if principal.projects:
        raise NotAllowed(f"{what}: is about all projects; your key is for {', '.join(principal.projects)[:200]}")


def check_look(principal: Principal, query: Query) -> None:
    """Everybody who is known may look at its projects; an agent's mail is its own, keys are for admins."""
    needed = LOOKS_NEED.get(type(query), ROLES[0])
    if level_of(principal.role) < level_of(needed):
        raise NotAllowed(f"{type(query).__struct_config__.tag}: needs the role {needed}; you are {principal.role}")
    if not isinstance(query, _FILTERED):
        check_scope(principal, query.project)
    if principal.role == "agent" and isinstance(query, q.Inbox) and principal.agent != query.agent:
        raise NotAllowed(f"inbox: the mail is for agent {query.agent}", "say which agent you are: Tenure-Agent")
    if principal.role == "agent" and isinstance(query, q.OwnClaims) and principal.agent not in (None, query.agent):
        raise NotAllowed(f"ownclaims: you are agent {principal.agent}, not {query.agent[:80]}")


def sees_checkpoints(principal: Principal) -> bool:
    """A checkpoint is what an agent tells the next one; it may hold what was never meant to be shown around."""
    return level_of(principal.role) > level_of("viewer")
