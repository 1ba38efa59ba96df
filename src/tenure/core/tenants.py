"""Tenants and their members: names, and who may grant which role to whom."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from tenure.core import limits
from tenure.core.commands import AddTenant, InviteMember
from tenure.core.errors import InvalidInput, NotAllowed, NotFound
from tenure.core.ids import check_name
from tenure.core.inputs import check_choice
from tenure.core.keys import check_project, is_within
from tenure.core.records import Member, Tenant
from tenure.core.roles import NEEDS, level_of, lower_of
from tenure.core.tenant_records import HOME

LOGICAL = "logical"  # in the tables of all
SCHEMA = "schema"  # in its own tables, in the same database
INSTANCE = "instance"  # in its own store
ISOLATIONS = (LOGICAL, SCHEMA, INSTANCE)
MEMBER_ROLES = ("viewer", "member", "admin", "owner")  # of people, not of agents
ADMIN_GRANTS = "member"  # the highest role that an admin gives, changes or takes away


def check_user(user: str) -> str:
    if not 1 <= len(user) <= limits.JWT_SUBJECT or not user.isprintable() or user != user.strip():
        raise InvalidInput(f"user {user[:80]!r} must be 1 to {limits.JWT_SUBJECT} printable characters on one line")
    return user


def check_place(isolation: str, store: str | None, region: str | None) -> None:
    """Where a new tenant's rows go. Only one with its own store names its URL."""
    check_choice(isolation, ISOLATIONS, "isolation")
    if isolation == INSTANCE and not store:
        raise InvalidInput("a tenant with isolation instance needs the URL of its store", "--store postgresql://…")
    if isolation != INSTANCE and store:
        raise InvalidInput(f"a tenant with isolation {isolation} has no separate store", "--isolation instance")
    if store is not None and (len(store) > limits.SECRET_BYTES or "://" not in store or store.startswith("sqlite")):
        raise InvalidInput("the URL of a tenant's store must be one of a store that keeps tenants, as postgresql://…")
    if region is not None:
        check_name(region, "region")


def schema_of(name: str, epoch: str, now: int) -> str:
    """The name of a new tenant's schema: two deployments in one database have different ones for equal tenants."""
    return "t_" + hashlib.blake2b(f"{name}\0{epoch}\0{now}".encode(), digest_size=8).hexdigest()


SEVERAL = "stores on a server keep several: PostgreSQL, MariaDB, Valkey"


def unknown(name: str) -> NotFound:
    """The one answer about a tenant that does not exist, is closed, or is not the caller's."""
    return NotFound(f"no tenant {name[:80]!r} here", "the owner of the deployment lists them with `tenure tenant list`")


def check_home(tenant: str) -> None:
    """Tenants are created and closed by the deployment's owner, who works in the home tenant."""
    if tenant != HOME:
        raise NotAllowed(
            f"only the owner of the deployment manages tenants, in the tenant {HOME}",
            f"as the owner: --tenant {HOME}, or without TENURE_TENANT",
        )


def is_open(row: Tenant) -> bool:
    return row.closed_at is None


def is_in(member: Member) -> bool:
    return member.left_at is None


def status(member: Member) -> str:
    if not is_in(member):
        return "left"
    return "invited" if member.joined_at is None else "active"


def check_grant(role: str, projects: tuple[str, ...], wanted: str, where: tuple[str, ...]) -> None:
    """An owner grants every role, an admin those up to member; nobody beyond their own projects."""
    if level_of(wanted) > level_of(_highest_granted(role)):
        raise NotAllowed(f"the role {wanted} is given and taken away by an owner; you are {role}")
    check_project(role, projects, wanted, where)


def granted_by(role: str, projects: tuple[str, ...]) -> tuple[str, ...]:
    """The roles that such a principal may give to members and take away, in all projects."""
    if projects or level_of(role) < level_of(NEEDS[InviteMember]):
        return ()
    return tuple(wanted for wanted in MEMBER_ROLES if level_of(wanted) <= level_of(_highest_granted(role)))


def _highest_granted(role: str) -> str:
    return "owner" if role == "owner" else ADMIN_GRANTS


def manages(tenant: str, role: str, projects: tuple[str, ...]) -> bool:
    """Whether such a principal is the deployment's owner."""
    return tenant == HOME and not projects and level_of(role) >= level_of(NEEDS[AddTenant])


def covers(member: Member, role: str, projects: tuple[str, ...]) -> bool:
    """Whether a key with this role and these projects reaches no further than the membership."""
    is_low = level_of(role) <= level_of(member.role)
    return is_in(member) and is_low and is_within(member.projects, projects)


def check_key_of(member: Member | None, role: str, projects: tuple[str, ...]) -> None:
    """A key never reaches further than the membership of the person it belongs to."""
    if member is None or covers(member, role, projects):
        return
    if not is_in(member):
        raise NotAllowed(f"{member.id} has left the tenant", "invite them again, or name another user")
    where = f" in {', '.join(member.projects)[:200]}" if member.projects else ""
    raise NotAllowed(f"{member.id} is {member.role}{where}: a key of theirs cannot reach further")


class Reach(NamedTuple):
    """What a token allows in a tenant."""

    role: str | None  # None: nothing gives the caller a role
    projects: tuple[str, ...]
    is_by_membership: bool


def meant(named: tuple[str, ...] | None) -> str:
    """The tenant of a token's request that names none: the only one that the token names, else the home tenant."""
    if named is not None and len(named) > 1:
        shown = ", ".join(named)[:200]
        raise InvalidInput(f"the token is good in several tenants: {shown}", "name one of them in Tenure-Tenant")
    return named[0] if named else HOME


def reach_of_token(
    tenant: str,
    named: tuple[str, ...] | None,
    role: str | None,
    projects: tuple[str, ...],
    member: Member | None,
) -> Reach:
    """What a verified token allows in this tenant; NotFound where the tenant is not its bearer's.

    `named`: the tenants that the token names, None where its issuer knows none: then it is good in the home tenant. In
    any other the bearer must be a member. A membership also bounds what a token allows, and its end ends that.
    """
    is_named = tenant == HOME if named is None else tenant in named
    if member is None:
        if not is_named:
            raise unknown(tenant)
        return Reach(role, projects, is_by_membership=False)
    if not is_in(member):
        raise unknown(tenant)
    where = projects or member.projects
    if projects and member.projects:
        where = tuple(name for name in projects if name in member.projects)
        if not where:
            raise unknown(tenant)
    return Reach(lower_of(role or member.role, member.role), where, is_by_membership=not is_named)
