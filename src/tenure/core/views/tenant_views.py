"""Views of tenants and of their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core import tenants
from tenure.core.tenant_limits import TIERS
from tenure.core.views.task_views import Instant


class TenantView(TypedDict):
    """A tenant of the deployment. The home tenant has always been there, and cannot be closed."""

    name: str
    status: Annotated[str, Meta(extra_json_schema={"enum": ["open", "closed"]})]
    tier: Annotated[str | None, Meta(extra_json_schema={"enum": [*TIERS, None]})]
    limits: Annotated[dict[str, int], Meta(description="by its tier, and changed for it; empty: none")]
    changed_limits: Annotated[Sequence[str], Meta(description="those that are not the tier's")]
    created_at: Instant | None
    created_by: str | None
    closed_at: Instant | None
    closed_for: Annotated[str | None, Meta(description="why")]
    isolation: Annotated[str, Meta(extra_json_schema={"enum": list(tenants.ISOLATIONS)})]
    schema: Annotated[str | None, Meta(description="where its tables are, in the same database")]
    region: Annotated[str | None, Meta(description="its home, by name")]
    moving: Annotated[str | None, Meta(description="of a move that is under way: leaving, arriving")]


class MemberView(TypedDict):
    """A person in the tenant."""

    user: str
    role: Annotated[str, Meta(extra_json_schema={"enum": list(tenants.MEMBER_ROLES)})]
    projects: Annotated[Sequence[str], Meta(description="their projects; empty: all")]
    status: Annotated[str, Meta(extra_json_schema={"enum": ["invited", "active", "left"]})]
    invited_by: str
    invited_at: Instant
    joined_at: Annotated[Instant | None, Meta(description="the first sign-in")]
    left_at: Instant | None
