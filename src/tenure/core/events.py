"""Events: one line of the append-only log for each transition.

Audit trail, session memory, task log and live feed are readings of this log. `patch` holds the fields that the
transition changed, row by row, so that replaying the log gives the tables back; `details` is for readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

LEVELS = ("debug", "info", "warning", "error", "critical")

# kind → what has happened. The reference page is made from this table.
KINDS: dict[str, str] = {
    "project.created": "a project was made",
    "project.changed": "settings or limits of a project changed",
    "project.stopped": "claiming was stopped in a project, track, dag, agent or type",
    "project.started": "claiming goes on there",
    "track.defined": "a track was made or changed",
    "dag.created": "a dag was made from a plan or call",
    "dag.reopened": "it goes on after its end: a task was reset, retried or added",
    "dag.completed": "every task of the dag is completed or cancelled",
    "dag.failed": "a task is dead-lettered and nothing else in the dag can run",
    "dag.cancelled": "every task of the dag is cancelled",
    "task.created": "a task was made",
    "task.published": "a draft was put into the graph",
    "task.ready": "the last thing it waited for is there",
    "task.pending": "it waits again: a dependency was added or reset",
    "task.linked": "a dependency was added, or what its failure means was changed",
    "task.unlinked": "a dependency was removed",
    "task.claimed": "an agent holds it; the generation grew by one",
    "task.started": "the holder began",
    "task.progress": "the holder told how far it is",
    "task.checkpoint": "the holder left a note for whoever goes on",
    "task.landing": "the holder is about to put a commit on a branch",
    "task.artifact": "the holder has put an artifact",
    "task.waiting": "the holder waits for subtasks",
    "task.validating": "a result was handed in, and waits for a verdict",
    "task.validation_taken": "somebody checks the result",
    "task.validation_undecided": "nothing can be said of the result yet; it is tried again, or a person is asked",
    "task.output_refused": "an output was not what was asked for; its holder may mend it",
    "task.completed": "a result was accepted",
    "task.result_refused": "a result with a genuine receipt was refused and kept",
    "task.failed": "an attempt failed",
    "task.retry_scheduled": "it will be ready again at retry_at",
    "task.retry_due": "its delay is over",
    "task.dead_lettered": "it ran out of attempts and waits for a person",
    "task.lease_expired": "the lease ran out before the holder's word",
    "task.process_gone": "the holder's process was proven gone; the claim ended as if its lease had run out",
    "task.released": "the holder gave it back",
    "task.aborted": "the claim was ended: hung or over its time",
    "task.epoch_ended": "the claim was ended by a new store epoch",
    "task.clock_ended": "the claim was ended: it was made while the clock was ahead",
    "task.warned": "the holder is asked for a sign of life",
    "task.drain_requested": "the holder is asked to pause",
    "task.paused": "it waits for a person",
    "task.pause_lifted": "one cause of its pause is gone, others hold it back; or a drain was taken back",
    "task.resumed": "it goes on",
    "task.question": "the holder asked a person something",
    "task.answered": "a person answered",
    "task.change_seen": "its holder has seen the new description",
    "task.cancelled": "it will not be done",
    "task.uncancelled": "its cancellation was taken back",
    "task.retried": "a person gave a dead letter another run",
    "task.reset": "a person started it over",
    "task.reset_undone": "the reset was taken back: the old result stands again",
    "task.retry_undone": "the retry was taken back: it is a dead letter again",
    "task.adopted": "a person took a kept result as the task's own",
    "task.archived": "hidden from lists",
    "task.unarchived": "shown in lists again",
    "task.edited": "what is asked for changed",
    "task.offered": "held out to one agent for a while",
    "task.offer_ended": "the offer is over; anybody may claim",
    "task.recovered": "a person ended a claim whose receipt was lost",
    "task.reassigned": "a person ended the claim and offered the task to another agent",
    "task.deadline_missed": "the deadline passed; it stays claimable",
    "task.noted": "somebody left a note",
    "agent.registered": "an agent is known",
    "agent.updated": "what an agent says of itself changed",
    "agent.draining": "it finishes what it holds and takes nothing more",
    "agent.stale": "no sign of life for its threshold; its claims are untouched",
    "agent.recovered": "it is heard of again",
    "agent.terminating": "an operator ended it; what it holds may finish",
    "agent.terminated": "an operator ended it, and it holds nothing any more",
    "agent.resumed": "an operator lets it claim again",
    "agent.left": "it left by itself",
    "session.started": "a session is known",
    "session.ended": "a session left",
    "message.sent": "mail for an agent",
    "budget.set": "a budget was made or changed",
    "budget.removed": "there is no such budget any more",
    "budget.moved": "a part of one budget was given to another",
    "budget.alert": "50, 90 or 100 per cent of a budget are spent",
    "budget.alert_ended": "what is spent is below that again",
    "reservation.taken": "something that is not a task is held",
    "reservation.released": "and given back",
    "leader.elected": "a new leader with a new term",
    "leader.lost": "the leader stepped down",
    "archive.moved": "finished tasks were moved into the archive, each with its log",
    "archive.returned": "tasks came back from the archive, since something was done with them",
    "archive.pruned": "tasks whose time in the archive is over are gone",
    "schedule.set": "a schedule was made or changed",
    "schedule.paused": "its ticks make nothing",
    "schedule.resumed": "it goes on with its next tick",
    "schedule.removed": "it is gone",
    "schedule.fired": "a tick made its tasks",
    "schedule.missed": "ticks that nobody was there for were let go, as its policy says",
    "schedule.failed": "a tick could not make its tasks",
    "trigger.set": "a trigger was made or changed",
    "trigger.paused": "it makes nothing",
    "trigger.resumed": "it hears what happens from now on",
    "trigger.removed": "it is gone",
    "trigger.rotated": "a webhook got a new secret; the one before is good for a while longer, or not at all",
    "trigger.fired": "an event or delivery made tasks",
    "trigger.failed": "its template could not be made",
    "trigger.held_back": "it fired too often in an hour, or for what came of itself: told once an hour",
    "dag.changed": "what its end triggers changed",
    "key.created": "an API key was made",
    "key.rotated": "an API key got a new secret; the one before is good for a while longer, or not at all",
    "key.revoked": "an API key was made void",
    "epoch.started": "the store began a new epoch; older receipts are void",
    "clock.accepted": "a person took the host's clock as right: the only event that may be earlier than the one before",
    "command.undone": "the opposite of an earlier command was written",
}


def kinds_of(names: Iterable[str]) -> tuple[str, ...]:
    """The kinds that are asked for: each by its name, or all of a noun by the noun alone, as `task`."""
    return tuple(kind for name in names for kind in [k for k in KINDS if k.startswith(f"{name}.")] or [name])


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """`sequence` is the store's, given on append; (task, version) orders the log of one task without gap."""

    sequence: int = 0
    id: str
    time: int
    kind: str
    level: str = "info"
    project: str = ""
    task: str | None = None
    key: str | None = None
    version: int | None = None
    track: str | None = None
    generation: int | None = None
    agent: str | None = None
    session: str | None = None
    user: str | None = None
    address: str | None = None
    previous_state: str | None = None
    new_state: str | None = None
    message: str = ""
    details: dict[str, Any] = {}
    patch: tuple[tuple[str, str, dict[str, Any] | None], ...] = ()  # (table, row id, fields or None: removed)
    trace_id: str | None = None
    causation_id: str | None = None
