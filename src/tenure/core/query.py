"""What every query has: its declaration and its project. And the queries of the sealed log.

Each of those first seals the committed events, so that the answer is about all of them; but what a viewer asks writes
nothing, so it is about the seals that there are. `store`: about the events that belong to no project, as those of keys
and members.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tenure.core.commands.command import PROJECT, Declaration

AT = "at"  # a text, although fields of that name are instants elsewhere


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="query", tag=str.lower, forbid_unknown_fields=True):
    """`project` is the scope; queries of the store as a whole have the project ""."""

    declaration: ClassVar[Declaration]

    project: str = ""


_AUDIT = PROJECT + "/audit"


class AuditHead(Query, frozen=True, kw_only=True):
    """The head of the sealed log: keep it elsewhere, and `verify` finds a log that was cut off or written again."""

    declaration: ClassVar = Declaration("audit", "viewer", "GET", _AUDIT + "/head")

    store: bool = False


class VerifyAudit(Query, frozen=True, kw_only=True):
    """Check every sealed event and every signature; `head` is one that was kept elsewhere, as NUMBER:SHA256."""

    declaration: ClassVar = Declaration("audit", "viewer", "GET", _AUDIT + "/verify")

    head: str | None = None
    store: bool = False


class AuditPage(Query, frozen=True, kw_only=True):
    """A page of the export: its lines, and `next`, which is `after` of the next page."""

    declaration: ClassVar = Declaration("audit", "owner", "GET", _AUDIT + "/export")

    after: str | None = None
    store: bool = False


class Attest(Query, frozen=True, kw_only=True):
    """The head, signed with the server's key."""

    declaration: ClassVar = Declaration("audit", "member", "GET", _AUDIT + "/attestation")

    store: bool = False
