"""The verbs and queries of tenants and of their members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tenure.client.pools import Pools
from tenure.client.results import Changed
from tenure.core import commands as c
from tenure.core import queries as q

if TYPE_CHECKING:
    from tenure.core.views import MemberView, TenantView


class Tenants(Pools):
    # --- tenants, for the deployment's owner ---

    def add_tenant(
        self,
        name: str,
        *,
        tier: str = "default",
        isolation: str = "logical",
        store: str | None = None,
        region: str | None = None,
    ) -> Changed:
        """Create a tenant of a store that keeps several; its projects, keys and members are visible to it alone.

        With `isolation="instance"` its rows are in the store at the URL `store`, which is sealed and shown nowhere.
        """
        command = c.AddTenant(tenant=name, tier=tier, isolation=isolation, store=store, region=region)
        return self._as(Changed, self.do(command))

    def change_tenant(
        self, name: str, *, tier: str | None = None, limits: Mapping[str, int | None] | None = None
    ) -> Changed:
        """Change the tier of a tenant, or the limits that are named; None goes back to the tier's value."""
        given = None if limits is None else dict(limits)
        return self._as(Changed, self.do(c.ChangeTenant(tenant=name, tier=tier, limits=given)))

    def close_tenant(self, name: str, reason: str = "") -> Changed:
        """Close a tenant: nobody can use it. Its rows stay."""
        return self._as(Changed, self.do(c.CloseTenant(tenant=name, reason=reason)))

    def reopen_tenant(self, name: str) -> Changed:
        """Open a closed tenant again, as it was."""
        return self._as(Changed, self.do(c.ReopenTenant(tenant=name)))

    def tenants(self, *, closed: bool = False) -> list[TenantView]:
        """The tenants, `local` first, then by name; with `closed` also closed ones."""
        return self._ask(q.Tenants(closed=closed))

    def tenant(self, name: str) -> TenantView:
        """One tenant."""
        return self._ask(q.ShowTenant(tenant=name))

    # --- members of this tenant ---

    def invite_member(self, user: str, role: str = "member", *, projects: Iterable[str] = ()) -> Changed:
        """Make a person a member of the tenant, in some projects or all."""
        return self._as(Changed, self.do(c.InviteMember(user=user, role=role, projects=tuple(projects))))

    def change_member(self, user: str, role: str | None = None, *, projects: Iterable[str] | None = None) -> Changed:
        """Change the role or the projects of a member; keys of theirs that reach further are revoked."""
        where = None if projects is None else tuple(projects)
        return self._as(Changed, self.do(c.ChangeMember(user=user, role=role, projects=where)))

    def remove_member(self, user: str) -> Changed:
        """End a membership, and revoke the keys of that person."""
        return self._as(Changed, self.do(c.RemoveMember(user=user)))

    def members(self, *, left: bool = False) -> list[MemberView]:
        """The members, by name; with `left` also former ones."""
        return self._ask(q.Members(left=left))
