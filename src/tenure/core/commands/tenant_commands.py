"""Tenants of the deployment, and the members of a tenant."""

from __future__ import annotations

from typing import ClassVar

from tenure.core.commands.command import Command, Declaration


class AddTenant(Command, frozen=True, kw_only=True, tag="add_tenant"):
    """Create a tenant: its projects, keys and members are visible to itself alone."""

    declaration: ClassVar = Declaration("tenants", "owner", "POST", "/tenants")

    project: str = ""
    tenant: str
    tier: str = "default"  # of its limits: default, enterprise
    isolation: str = "logical"  # logical: in the tables of all; schema: in its own; instance: in its own store
    store: str | None = None  # the URL of that store; sealed, and shown nowhere
    region: str | None = None  # its home, by name


class ChangeTenant(Command, frozen=True, kw_only=True, tag="change_tenant"):
    """Change the tier or single limits of a tenant. Servers apply them within two seconds."""

    declaration: ClassVar = Declaration("tenants", "owner", "POST", "/tenants/{tenant}")

    project: str = ""
    tenant: str
    tier: str | None = None
    limits: dict[str, int | None] | None = None  # those to change; None goes back to the tier's


class CloseTenant(Command, frozen=True, kw_only=True, tag="close_tenant"):
    """Close a tenant: nobody can use it. Its rows stay."""

    declaration: ClassVar = Declaration("tenants", "owner", "POST", "/tenants/{tenant}/close")

    project: str = ""
    tenant: str
    reason: str = ""


class ReopenTenant(Command, frozen=True, kw_only=True, tag="reopen_tenant"):
    """Open a closed tenant again, as it was."""

    declaration: ClassVar = Declaration("tenants", "owner", "POST", "/tenants/{tenant}/reopen")

    project: str = ""
    tenant: str


class InviteMember(Command, frozen=True, kw_only=True, tag="invite_member"):
    """Make a person a member of the tenant, with a role."""

    declaration: ClassVar = Declaration("members", "admin", "POST", "/members")

    project: str = ""
    user: str  # as in the `sub` of their tokens and the `user` of their keys
    role: str = "member"
    projects: tuple[str, ...] = ()  # empty: all


class ChangeMember(Command, frozen=True, kw_only=True, tag="change_member"):
    """Change the role or the projects of a member. Keys of theirs that reach further are revoked."""

    declaration: ClassVar = Declaration("members", "admin", "POST", "/members/{user}")

    project: str = ""
    user: str
    role: str | None = None
    projects: tuple[str, ...] | None = None


class RemoveMember(Command, frozen=True, kw_only=True, tag="remove_member"):
    """End a membership, and revoke the keys of that person."""

    declaration: ClassVar = Declaration("members", "admin", "POST", "/members/{user}/remove")

    project: str = ""
    user: str
