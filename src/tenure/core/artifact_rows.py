"""The rows of artifacts; `artifacts.py` has their rules."""

from __future__ import annotations

from tenure.core.row import Row


class Artifact(Row, frozen=True, kw_only=True):
    """A named output of a claim; its id is `CLAIM_ID:NAME`. Its bytes are in the artifact store, by digest."""

    task: str
    generation: int
    run: int
    agent: str
    name: str
    type: str = "application/octet-stream"
    digest: str
    size: int
    at: int


class Content(Row, frozen=True, kw_only=True):
    """Bytes that artifacts of a project refer to; its id is their digest. The artifact store knows where they are."""

    size: int
    uses: int = 0  # artifacts that refer to it, archived ones included
    idle_at: int | None = None  # since when it has no references
    dropped_at: int | None = None  # when a sweep last marked it for deletion
    gone: bool = False  # it was deleted
