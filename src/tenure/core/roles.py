"""Who may do what. A role never proves a holder: receipts do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Command, Principal
from tenure.core.errors import Bug, NotAllowed, NotFound
from tenure.core.events import ADMIN_KINDS, STORE_KINDS
from tenure.core.land_request import LAND, is_of_landing
from tenure.core.queries import Query
from tenure.core.records import Claim
from tenure.core.tenant_records import HOME

ROLES = ("viewer", "agent", "member", "admin", "owner")
# Names of senders that an agent may take for somebody above it.
RESERVED = frozenset({"root", "system", "leader", "admin", "owner", "tenure", "coordinator", "server", "operator"})
CHECKER = "checker"  # takes and judges validations
LEADER = "leader"  # leads a project whose setting lets agents lead
CAPABILITIES = (CHECKER, LEADER)  # what a key may have beyond its role
_LEVEL = {role: level for level, role in enumerate(ROLES)}

NEEDS: dict[type[Command], str] = {kind: kind.declaration.role for kind in c.ALL}
# The field of an agent's command that names its agent. Operators' verbs name other agents on purpose.
SPEAKS_FOR = {kind: kind.declaration.speaks_for for kind in c.ALL if kind.declaration.speaks_for}
# All other queries are for every known principal. Mail is for its recipients and for members.
QUERIES_NEED: dict[type[Query], str] = {
    kind: kind.declaration.role for kind in q.ALL if kind.declaration.role != ROLES[0]
}

# Of the store as a whole; these restrict themselves to the principal's scope.
_KEYS = (c.CreateKey, c.RotateKey, c.RevokeKey)
_FILTERED = (q.Projects, q.Keys)
_RELAYS = (c.PauseRelay, c.ResumeRelay, c.RewindRelay, c.RemoveRelay, q.Relays)  # they read the log of every project
_TENANTS = (c.AddTenant, c.ChangeTenant, c.CloseTenant, c.ReopenTenant, q.Tenants, q.ShowTenant)
_MEMBERS = (c.InviteMember, c.ChangeMember, c.RemoveMember, q.Members)
OF_ALL_PROJECTS = (*_RELAYS, *_TENANTS, *_MEMBERS)
_LED = (c.Assign, c.Reassign, c.Recover)  # also for the agent that leads the project, under its term
_LEADS = frozenset({c.Lead, c.StepDown})
VALIDATING = (c.TakeValidation, c.RenewValidation, c.Judge, c.Undecide)
# What an agent's key needs over HTTP beyond its role.
CAPABILITY_FOR: dict[Any, str] = dict.fromkeys(VALIDATING, CHECKER) | {c.Lead: LEADER}


def level_of(role: str) -> int:
    """Higher ranks may do more; an unknown role is below all."""
    return _LEVEL.get(role, -1)


def seals_log(principal: Principal) -> bool:
    """Whether a query about the sealed log first seals the committed events: a viewer writes nothing, not even that."""
    return level_of(principal.role) > level_of(ROLES[0])


def lower_of(role: str, other: str) -> str:
    return role if level_of(role) <= level_of(other) else other


def _is_coordination(command: Command) -> bool:
    """The store's own leader; a project's `@leader` is any agent that the project chose."""
    return isinstance(command, (c.Lead, c.StepDown)) and not command.agent


def check_scope(principal: Principal, project: str) -> None:
    """A project outside of the principal's scope is not found."""
    if principal.projects and project not in principal.projects:
        raise no_project(project)


def no_project(name: str) -> NotFound:
    """The one answer about a project that does not exist, or is outside of the caller's scope."""
    return NotFound(f"no project {name[:80]!r} here", "`tenure project list` shows the names; `init` creates one")


def check_tenant(principal: Principal, tenant: str) -> None:
    """The last guard between tenants: who signed in to one is never served by the engine of another."""
    if principal.tenant is not None and principal.tenant != tenant:
        raise Bug("a request reached another tenant than its own; nothing was done")


def check_here(principal: Principal, command: Command) -> None:
    """Only a process on this host can see its process table, whatever the role of others."""
    if isinstance(command, c.Gone) and principal.address is not None:
        raise NotAllowed(
            "gone: only a process on the same host can see that another has ended",
            "the claim of a silent holder ends with its lease; a person can recover it",
        )


def spoken_for(command: Command) -> str | None:
    """The agent that the command names as its own."""
    field = SPEAKS_FOR.get(type(command))
    return None if field is None else getattr(command, field)


def check_own(principal: Principal, command: Command) -> None:
    """An agent acts only for itself and its own session, as far as its identity is known.

    Sessions and claims of a proven agent are compared with the rows, by `check_mine`.
    """
    if principal.role != "agent":
        return
    named = spoken_for(command)
    if named is not None and principal.agent is not None and named != principal.agent:
        verb = type(command).__struct_config__.tag
        raise NotAllowed(f"{verb}: you are agent {principal.agent}, not {named[:80]}")
    if isinstance(command, c.Leave) and principal.session not in (None, command.session):
        raise NotAllowed(f"leave: session {command.session} belongs to another agent", "ask a person to do it")


def check_mine(principal: Principal, agent: str, what: str) -> None:
    """A key that proves its agent may not touch another agent's rows, even with their receipt."""
    if principal.is_proven and principal.role == "agent" and agent != principal.agent:
        raise NotAllowed(f"{what} belongs to agent {agent}; your key is for {principal.agent}")


def check_key(principal: Principal, claim: Claim, what: str) -> None:
    """An agent over HTTP ends no claim that another key made, under whatever name it sends."""
    if principal.role == "agent" and principal.is_served and claim.key not in (None, principal.key):
        raise NotAllowed(f"{what} belongs to agent {claim.agent}, with another key than yours", "ask a person to do it")


def agents_lead(setting: str, *, elects: bool) -> bool:
    """Whether agents may lead a project with this `lead`; `elects`: of the store, where the project says nothing."""
    return setting == "auto" or (elects and setting == "default")


def check_leads(principal: Principal, setting: str, verb: str, *, elects: bool) -> None:
    """An agent leads, and acts as leader, only where the project lets agents lead; over HTTP with the capability too.

    A person may name a leader in every project.
    """
    if principal.role != "agent":
        return
    if not agents_lead(setting, elects=elects):
        raise NotAllowed(
            f"{verb}: agents do not lead this project", "an admin can let them: tenure project set --lead auto"
        )
    if not can_lead(principal):
        raise NotAllowed(
            f"{verb}: needs the capability {LEADER}, which your key lacks",
            "an admin can create one: tenure key create NAME --can leader",
        )


def can_lead(principal: Principal) -> bool:
    """Whether nothing but a project's setting keeps it from leading."""
    return principal.role != "agent" or not principal.is_served or LEADER in principal.capabilities


def check_opens(principal: Principal, claim: Claim, what: str) -> None:
    """Secrets are opened for the key that claimed, and for the proven agent that did.

    A receipt alone is not enough: it is printed, and passed on. Embedded, and where nobody signs in, nothing is proven.
    """
    if principal.key is None or principal.key == claim.key:
        return
    if principal.is_proven and principal.agent == claim.agent:  # its key was replaced
        return
    raise NotAllowed(f"{what}: only the key or the agent that claimed opens them", "claim the task with your own key")


def check_verdict(principal: Principal, claim: Claim, what: str) -> None:
    """Nobody approves their own work, whatever their role.

    Over HTTP the claim's agent, session, key and user are known. On the machine itself names are not proven, so no
    verdict is accepted from a session in which an agent is recognised.
    """
    _check_not_recognised(principal, what)
    if is_author(principal, claim):
        if _is_own(principal, claim):
            raise NotAllowed(
                f"{what} was submitted by agent {claim.agent} of {claim.user}, and so is your key: it cannot review it",
                "a person may, with another key",
            )
        raise NotAllowed(f"{what} was submitted by agent {claim.agent}, which cannot review it", "another may")


def check_spending(principal: Principal, claim: Claim, what: str) -> None:
    """Who sets budgets decides about doubtful costs, and takes that back; never their reporter, or its key."""
    needed = NEEDS[c.SetBudget]
    if level_of(principal.role) < level_of(needed):
        raise NotAllowed(f"{what}: needs the role {needed}; you are {principal.role}", "ask a person to do it")
    check_verdict(principal, claim, what)


def check_other_person(principal: Principal, people: Collection[str], what: str) -> None:
    """The guard of a review where the project asks for another person; `people`: those behind the claim."""
    if principal.role == "agent":
        raise NotAllowed(f"{what}: this project asks for the review of a person", "ask a person to do it")
    if principal.user is None or not {principal.user, principal.maker}.isdisjoint(people):
        named = f"work of {', '.join(sorted(people))[:200]}" if principal.user else "for people with a name"
        raise NotAllowed(f"{what}: {named}; this project asks for the review of another person", "ask somebody else")


def is_author(principal: Principal, claim: Claim) -> bool:
    """Whether the principal shares agent, session or key with the claim, or is not free to judge its person."""
    if not principal.is_served:
        return False
    same_key = principal.key is not None and principal.key == claim.key
    return same_key or principal.agent == claim.agent or principal.session == claim.session or _is_own(principal, claim)


def _is_own(principal: Principal, claim: Claim) -> bool:
    """Whether an agent's key would judge the work of the same person, or a key its maker's in the name of another.

    A person judges what their own agents did.
    """
    if claim.user is None:
        return False
    is_agents = principal.role == "agent" and principal.key is not None  # without a key nothing proves the user
    return (is_agents and principal.user == claim.user) or principal.maker == claim.user


def _check_not_recognised(principal: Principal, what: str) -> None:
    if principal.address is None and principal.role == "agent":
        raise NotAllowed(
            f"{what}: a session in which an agent works cannot give a verdict",
            "a person can, in a terminal that no agent and no runner started; `run`, `daemon` and `serve` run "
            "validators",
        )


def check_checker(principal: Principal, role: str, verb: str) -> None:
    """Only a person, or a key with the capability, takes and judges validations."""
    _check_not_recognised(principal, verb)
    if role == "agent" and CHECKER not in principal.capabilities:
        raise NotAllowed(
            f"{verb}: needs the capability {CHECKER}, which your key lacks",
            "an admin can create one: tenure key create NAME --can checker",
        )


def may_land(principal: Principal, claim: Claim) -> bool:
    """Whether it may land the result of this claim: a person; a key that checks results; or the key that claimed, whose
    result has passed."""
    if principal.role != "agent":
        return True
    return principal.address is not None and (
        CHECKER in principal.capabilities or (claim.key is not None and claim.key == principal.key)
    )


def check_lander(principal: Principal, claim: Claim, what: str) -> None:
    _check_not_recognised(principal, what)
    if not may_land(principal, claim):
        raise NotAllowed(
            f"{what}: to land it needs the capability {CHECKER}, or the key that claimed the task",
            "an admin can create one: tenure key create NAME --can checker",
        )


def _lands(command: Command) -> bool:
    """Whether it is about a landing, for which the claim decides: see `check_lander`."""
    if isinstance(command, c.TakeValidation):
        return command.phase == LAND
    return is_of_landing(getattr(command, "receipt", ""))


def check_kind(principal: Principal, kind: type[Command]) -> None:
    """Refuse a principal that may not do this in any project, before the command is decoded."""
    role = "member" if principal.role == "agent" else principal.role  # in case agents may operate
    if level_of(role) < level_of(NEEDS[kind]):
        raise _too_low(principal, str(kind.__struct_config__.tag), NEEDS[kind])


def _too_low(principal: Principal, verb: str, needed: str, *, leads: bool = False) -> NotAllowed:
    """`leads`: the project's leader may do it, with its term."""
    hint = "ask a person to do it" + (", or pass your term if you lead the project" if leads else "")
    return NotAllowed(
        f"{verb}: needs the role {needed}; you are {principal.role}", hint if principal.role == "agent" else None
    )


def check_role(principal: Principal, command: Command, *, agents_may_operate: bool) -> None:
    kind = type(command)
    is_of_store = kind in _LEADS and _is_coordination(command)
    needed = "admin" if is_of_store else NEEDS[kind]
    if principal.projects:
        if is_of_store:
            check_all_projects(principal, "the store's coordinator")
        if isinstance(command, OF_ALL_PROJECTS):
            check_all_projects(principal, str(type(command).__struct_config__.tag))
        if not isinstance(command, _KEYS):
            check_scope(principal, command.project)
    role = principal.role
    # The term of a leader is judged with its row, in the transaction of the write: see `lead.check_led`.
    if role == "agent" and (agents_may_operate or (isinstance(command, _LED) and command.term is not None)):
        role = "member"
    if _LEVEL.get(role, -1) < _LEVEL[needed]:
        raise _too_low(principal, str(type(command).__struct_config__.tag), needed, leads=isinstance(command, _LED))
    if type(command) in VALIDATING and not _lands(command):
        check_checker(principal, role, str(type(command).__struct_config__.tag))
    check_own(principal, command)
    check_here(principal, command)


def check_coordinator(principal: Principal, verb: str, *, of_all: bool = True) -> None:
    """The store's coordinator is for admins: of all projects, where the answer or the effect concerns all."""
    if level_of(principal.role) < level_of("admin"):
        raise NotAllowed(f"coordinator {verb}: needs the role admin; you are {principal.role}")
    if of_all:
        check_all_projects(principal, f"coordinator {verb}")


def check_all_projects(principal: Principal, what: str) -> None:
    """What concerns all projects is not allowed with a key for some."""
    if principal.projects:
        raise NotAllowed(f"{what}: concerns all projects; your key is for {', '.join(principal.projects)[:200]}")


def owns_deployment(principal: Principal) -> bool:
    """Whether it may know about the machines behind the server; embedded there is none between."""
    is_home = principal.tenant in (None, HOME)
    return not principal.is_served or (principal.role == "owner" and is_home and not principal.projects)


def check_sender(principal: Principal, sender: str, type: str) -> None:
    """An agent speaks neither for the system nor, without a key for that name, under one that others obey."""
    if principal.role != "agent":
        return
    if type == "system":
        raise NotAllowed("send: mail of the type system is sent by people, not by agents", "use type request or chat")
    if sender.lower() in RESERVED and not principal.is_proven:
        raise NotAllowed(
            f"send: the name {sender} is for people and for an agent whose key names it",
            "an admin can create one: tenure key create NAME --for-agent " + sender.lower(),
        )


def sees_store(principal: Principal) -> bool:
    """Whether it may see events of sinks and leaders, which belong to no project."""
    return not principal.projects


def store_kinds(principal: Principal) -> frozenset[str]:
    """The kinds of events of no project that it may read."""
    if not sees_store(principal):
        return frozenset()
    return ADMIN_KINDS if level_of(principal.role) >= level_of(QUERIES_NEED[q.Members]) else STORE_KINDS


def check_query(principal: Principal, query: Query) -> None:
    """Every known principal may read its projects; an agent's mail is its own, keys are for admins."""
    needed = QUERIES_NEED.get(type(query), ROLES[0])
    if level_of(principal.role) < level_of(needed):
        raise NotAllowed(f"{type(query).__struct_config__.tag}: needs the role {needed}; you are {principal.role}")
    if isinstance(query, OF_ALL_PROJECTS):
        check_all_projects(principal, str(type(query).__struct_config__.tag))
    if not isinstance(query, _FILTERED):
        check_scope(principal, query.project)
    if principal.role == "agent" and isinstance(query, (q.Inbox, q.AgentNews)) and principal.agent != query.agent:
        tag = type(query).__struct_config__.tag
        raise NotAllowed(f"{tag}: the mail is for agent {query.agent}", "name your agent in the header Tenure-Agent")
    if principal.role == "agent" and isinstance(query, q.OwnClaims) and principal.agent not in (None, query.agent):
        wanted = "its claims alone are shown to it" if query.agent is None else f"not {query.agent[:80]}"
        raise NotAllowed(f"ownclaims: you are agent {principal.agent}, {wanted}", "name your agent in `agent`")


def sees_checkpoints(principal: Principal) -> bool:
    """Who may read checkpoints: they are notes between agents, and may hold private data."""
    return level_of(principal.role) > level_of("viewer")
