"""Rows of tenants and of their members."""

from __future__ import annotations

import msgspec

from tenure.core.task_records import Row

HOME = "local"  # the tenant that keeps the rows of all others; the only one of an embedded store


class Tenant(Row, frozen=True, kw_only=True):
    """A tenant beside the home tenant, with project ""; its id is its name. Kept in the home tenant."""

    tier: str = "default"
    limits: dict[str, int] = msgspec.field(default_factory=dict)  # values that replace the tier's
    created_by: str
    created_at: int
    changed_at: int
    closed_at: int | None = None
    closed_for: str | None = None  # why
    isolation: str = "logical"  # where its rows are: see `core/tenants.py`
    store: bytes = b""  # the sealed URL where it has its own store
    schema: str | None = None  # where it has its own tables
    region: str | None = None  # its home; None: the deployment's
    moves: int = 0  # the number of its last move: see `core/tenant_moves.py`
    moving: str = ""  # leaving, arriving; empty: no move is under way
    other_isolation: str = ""  # of a move: where it goes, then where it came from
    other_store: bytes = b""
    other_region: str | None = None


class ClaimShare(Row, frozen=True, kw_only=True):
    """How many claims of its tenant's limit a project may have live; its id is the limit. It has no events."""

    granted: int
    whole: int  # the limit when it was granted: a share of another limit is void


class Member(Row, frozen=True, kw_only=True):
    """A person in a tenant, with project ""; its id is the user's name. Kept in the tenant itself."""

    role: str
    projects: tuple[str, ...] = ()  # empty: all
    invited_by: str
    invited_at: int
    changed_at: int
    joined_at: int | None = None  # the first sign-in after the invitation
    left_at: int | None = None
