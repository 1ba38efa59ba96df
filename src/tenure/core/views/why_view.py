"""Why a task is in its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from tenure.core.views.view_values import State, Tier


class PriorityView(TypedDict):
    """The parts of the effective priority; the smallest goes first."""

    base: int
    tier: Tier
    age_minutes: float
    boost: float
    urgency: int
    weight: int
    effective: float


class CouldTake(TypedDict):
    """Why an agent cannot claim the task; empty means that it can."""

    agent: str
    why_not: Sequence[str]


class WhyView(TypedDict):
    """Why a task is in its state, in sentences."""

    key: str
    state: State
    priority: PriorityView
    waits_for: NotRequired[Sequence[str]]
    agents: NotRequired[Sequence[CouldTake]]
    reasons: Sequence[str]
