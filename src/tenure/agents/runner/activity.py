"""What each agent of a runner does at this moment, for a person who watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tenure.core.commands import Totals
from tenure.core.instants import lasting
from tenure.core.outcomes import Outcome

# Reasons why an agent gets no task, in the counts of NO_TASK: one task, several tasks.
_REASONS = {
    "waiting": ("1 task waits for another, a retry or its time", "{} tasks wait for others, a retry or their time"),
    "held": ("1 task is held by an agent", "{} tasks are held by agents"),
    "ready_for_others": ("1 ready task is not for this agent", "{} ready tasks are not for this agent"),
}


class Activity(NamedTuple):
    agent: str
    task: str = ""  # its short key; empty while the agent has none
    title: str = ""
    seconds: float = 0.0  # since the claim
    last_line: str = ""  # of its output: its own text, or a tool call
    usage: tuple[Totals, ...] = ()
    waits: str = ""  # why it has no task


class Wait(NamedTuple):
    """Why a slot has no task. `kind` stays the same while only numbers change."""

    kind: tuple[str, ...]
    text: str


def wait_of(outcome: Outcome) -> Wait:
    """What an agent waits for after this answer to its claim."""
    if outcome.outcome != "NO_TASK" or outcome.counts is None or outcome.shortage is not None or outcome.hint:
        due = _due(outcome)
        return Wait((outcome.outcome, outcome.message), f"{outcome.message}{due}")
    counts: Mapping[str, int] = outcome.counts
    found = [name for name in _REASONS if counts.get(name)]
    if not found:
        return Wait((), "the queue is empty; `tenure add` and `tenure plan apply` create tasks")
    texts = [_REASONS[name][counts[name] > 1].format(counts[name]) for name in found]
    return Wait(tuple(found), f"{', '.join(texts)}{_due(outcome)}")


def _due(outcome: Outcome) -> str:
    return f"; the next change is due in {lasting(outcome.retry_in)}" if outcome.retry_in else ""
