"""Views of the sealed log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core.views.task_views import Instant

_HEAD = Annotated[str, Meta(description="the number of the last seal and its SHA-256, as NUMBER:SHA256")]


class AuditHeadView(TypedDict):
    """The head of a sealed log."""

    project: Annotated[str, Meta(description="empty: events that belong to no project")]
    head: _HEAD
    last: Annotated[int, Meta(description="the sequence of the last sealed event")]
    sealed_at: Instant | None
    unsealed: Annotated[int, Meta(description="events after it, counted up to 10,000")]


class AuditReportView(TypedDict):
    """The result of a check of a sealed log."""

    project: str
    ok: bool
    head: _HEAD
    seals: int
    sealed: Annotated[int, Meta(description="events in the seals")]
    present: Annotated[int, Meta(description="of these: unchanged in the log or the archive")]
    pruned: Annotated[int, Meta(description="of these: deleted by retention")]
    unsealed: Annotated[int, Meta(description="events younger than the last seal")]
    signatures: Annotated[int, Meta(description="signed results that were checked")]
    findings: Annotated[Sequence[str], Meta(description="faults, with the sequence of the event")]


class AuditPageView(TypedDict):
    """A page of an export."""

    lines: Annotated[
        Sequence[str], Meta(description="to be written to the file, a line each; JSON that must stay as it is")
    ]
    next: Annotated[str | None, Meta(description="`after` of the next page; null: this was the last")]


class ExportView(TypedDict):
    """A file that was written by an export."""

    lines: int
    digest: Annotated[str, Meta(description="SHA-256 of all lines before the last one; keep it elsewhere")]


class AttestationView(TypedDict):
    """A head that the server has signed."""

    form: str
    tenant: str
    project: str
    head: _HEAD
    timestamp: Annotated[str, Meta(description="RFC 3339: the signature covers it as it is written here")]
    public_key: Annotated[str, Meta(description="the server's Ed25519 key, in hex")]
    signature: str
