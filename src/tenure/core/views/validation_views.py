"""Results that wait for a verdict, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from tenure.core.views.view_values import Instant

States = Annotated[
    str, Meta(extra_json_schema={"enum": ["waiting", "review", "running", "passed", "refused", "withdrawn"]})
]


class ValidationView(TypedDict):
    """The validation of one result: by which validator, who runs it, the verdict."""

    id: str
    key: str
    generation: Annotated[int, Meta(description="the task's, of the submitted result")]
    run: int
    validator: str
    state: States
    since: Instant
    holder: Annotated[str | None, Meta(description="who validates it now")]
    taken_at: Instant | None
    until: Instant | None
    tries: Annotated[int, Meta(description="how often it was taken without a verdict, this time included")]
    retry_at: Instant | None
    note: Annotated[str | None, Meta(description="why it is undecided")]
    result: str
    reasons: Sequence[str]
    details: dict[str, Any]
    decided_at: Instant | None
    decided_by: str | None


class WaitingView(ValidationView):
    """An open one, with its contract."""

    task: str
    settings: dict[str, Any]


class CheckView(ValidationView):
    """One that was taken: with its contract and output."""

    settings: NotRequired[dict[str, Any]]
    data: NotRequired[Any]
    summary: NotRequired[str]


class ValidationCounts(TypedDict):
    """How many results wait for a validator, and how many are being validated."""

    waiting: int
    running: int
