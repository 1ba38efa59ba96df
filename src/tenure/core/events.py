"""Events: one line of the append-only log for each transition.

Audit trail, session memory, task log and live feed are views of this log. `patch` holds the fields that the transition
changed, row by row, so that replaying the log gives the tables back; `details` is for readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tenure.core.errors import InvalidInput

LEVELS = ("debug", "info", "warning", "error", "critical")

# kind → what has happened. The reference page is generated from this table.
KINDS: dict[str, str] = {
    "project.created": "a project was created",
    "project.changed": "settings or limits of a project changed",
    "project.key_rotated": "data keys were rotated, wrapped by another master key, or given up with a lost one",
    "project.stopped": "claiming was stopped in a project, track, dag, agent or type",
    "project.started": "claiming was allowed again",
    "track.defined": "a track was created or changed",
    "dag.created": "a dag was created",
    "dag.reopened": "a dag continues after its end: a task was reset, retried or added",
    "dag.completed": "every task of the dag is completed or cancelled",
    "dag.failed": "a task is a dead letter and nothing else in the dag can run",
    "dag.cancelled": "every task of the dag is cancelled",
    "task.created": "a task was created",
    "task.published": "a draft was published",
    "task.ready": "its last dependency was met, or its start time came",
    "task.pending": "it waits again: a dependency was added or reset",
    "task.linked": "a dependency was added, or its failure policy was changed",
    "task.unlinked": "a dependency was removed",
    "task.claimed": "an agent claimed the task; the generation grew by one",
    "task.started": "the holder started work",
    "task.progress": "the holder reported progress",
    "task.checkpoint": "the holder saved a checkpoint",
    "task.landing": "the holder is about to put a commit on a branch",
    "task.artifact": "the holder has put an artifact",
    "task.waiting": "the holder waits for subtasks",
    "task.validating": "a result was submitted and waits for a verdict, or to be landed",
    "task.validation_taken": "a validator took the result, or a process that lands it",
    "task.validation_undecided": "no verdict was reached, or nothing landed; it is tried again, or a person is asked",
    "task.validated": "a result has passed; its commit waits to be landed",
    "task.output_refused": "an output does not meet the contract; its holder may fix it",
    "task.completed": "a result was accepted",
    "task.result_refused": "a result with a genuine receipt was refused and kept",
    "task.failed": "an attempt failed",
    "task.retry_scheduled": "it will be ready again at retry_at",
    "task.retry_due": "its delay is over",
    "task.dead_lettered": "it is not tried again and waits for a person",
    "task.lease_expired": "the lease expired",
    "task.process_gone": "the holder's process was proven gone; the claim ended as if its lease had expired",
    "task.released": "the holder released it",
    "task.aborted": "the claim was ended: hung or over max_duration",
    "task.epoch_ended": "the claim was ended by a new store epoch",
    "task.clock_ended": "the claim was ended: it was granted while the clock was ahead",
    "task.warned": "the holder is asked for a sign of life",
    "task.drain_requested": "the holder is asked to pause",
    "task.paused": "the task was paused",
    "task.pause_lifted": "one cause of its pause is gone, others remain; or a drain was cancelled",
    "task.resumed": "the task was resumed",
    "task.question": "the holder asked a person a question",
    "task.answered": "a person answered",
    "task.change_seen": "its holder acknowledged the new description",
    "task.cancelled": "the task was cancelled",
    "task.uncancelled": "its cancellation was undone",
    "task.retried": "a person gave a dead letter another run",
    "task.reset": "a person started it over",
    "task.reset_undone": "the reset was undone: the former result counts again",
    "task.retry_undone": "the retry was undone: it is a dead letter again",
    "task.adopted": "a person accepted a kept result",
    "task.archived": "hidden from lists",
    "task.unarchived": "shown in lists again",
    "task.edited": "the task was edited",
    "task.reordered": "the task was moved to the project's current order",
    "task.offered": "offered to one agent for a while",
    "task.offer_ended": "the offer ended; any agent may claim",
    "task.recovered": "a person ended a claim whose receipt was lost",
    "task.reassigned": "a person ended the claim and offered the task to another agent",
    "task.deadline_missed": "the deadline passed; it stays claimable",
    "task.resealed": "its secrets were sealed again with the current data key",
    "task.noted": "a note was added",
    "task.usage_doubted": "a reported cost is far above its tokens: budgets do not count that part",
    "task.usage_confirmed": "a person confirmed a doubtful cost: budgets count it",
    "task.usage_rejected": "a person rejected a doubtful cost: it was not spent",
    "agent.registered": "an agent registered",
    "agent.updated": "an agent's registration changed",
    "agent.draining": "an agent finishes its tasks and claims no more",
    "agent.stale": "no sign of life within its threshold; its claims are not affected",
    "agent.recovered": "a stale agent gave a sign of life",
    "agent.terminating": "an operator terminated it; its claims may finish",
    "agent.terminated": "an operator terminated it, and its last claim has ended",
    "agent.resumed": "an operator allowed it to claim again",
    "agent.left": "an agent left",
    "agent.died": "its process is gone, as a process on its host found; it is offline",
    "session.started": "a session started",
    "session.ended": "a session ended",
    "session.keyed": "a session registered its public key: its results must be signed",
    "message.sent": "mail was sent to an agent",
    "budget.set": "a budget was created or changed",
    "budget.removed": "a budget was removed",
    "budget.moved": "money was moved from one budget to another",
    "budget.alert": "50, 90 or 100 per cent of a budget are spent",
    "budget.alert_ended": "spending is below that threshold again",
    "reservation.taken": "patterns were reserved",
    "reservation.released": "a reservation was released",
    "track.assigned": "a track was assigned to an agent: by its first claim there, or by a person",
    "track.released": "the assignment of a track to an agent ended",
    "leader.elected": "a new leader was elected, with a new term",
    "leader.lost": "the leader stepped down, or its lease or its process ended",
    "archive.moved": "finished tasks were moved to the archive, each with its log",
    "archive.returned": "tasks returned from the archive because they changed",
    "archive.pruned": "tasks past their retention were deleted from the archive",
    "schedule.set": "a schedule was created or changed",
    "schedule.paused": "a schedule was paused",
    "schedule.resumed": "a schedule resumes with its next tick",
    "schedule.removed": "a schedule was removed",
    "schedule.fired": "a tick created its tasks",
    "schedule.missed": "missed ticks were skipped, by its policy",
    "schedule.failed": "a tick could not create its tasks",
    "trigger.set": "a trigger was created or changed",
    "trigger.paused": "a trigger was paused",
    "trigger.resumed": "a trigger resumes with events from now on",
    "trigger.removed": "a trigger was removed",
    "trigger.rotated": "a webhook got a new secret; the previous one is valid for its grace period, if any",
    "trigger.fired": "an event or delivery created tasks",
    "trigger.failed": "the tasks of its template could not be created",
    "trigger.held_back": "a trigger exceeded its hourly limit or its chain depth; reported once an hour",
    "dag.changed": "the templates of its end changed",
    "key.created": "an API key was created",
    "key.rotated": "an API key got a new secret; the previous one is valid for its grace period, if any",
    "key.revoked": "an API key was revoked",
    "tenant.added": "a tenant was created",
    "tenant.changed": "the tier or limits of a tenant changed",
    "tenant.closed": "a tenant was closed: nobody can use it",
    "tenant.reopened": "a closed tenant was opened again",
    "tenant.leaving": "a tenant begins to move to another store: its writes are frozen until it has arrived",
    "tenant.moved": "another store is the home of a tenant",
    "tenant.arrived": "a move of a tenant ended: its new home takes writes",
    "tenant.stayed": "a move of a tenant was called off",
    "member.invited": "a person was made a member of the tenant",
    "member.joined": "a member signed in for the first time",
    "member.changed": "the role or the projects of a member changed",
    "member.removed": "a membership ended",
    "sink.added": "a process that leads relays events to a new sink",
    "sink.paused": "an operator paused a sink",
    "sink.resumed": "an operator resumed a sink",
    "sink.rewound": "an operator moved a sink's place in the log",
    "sink.removed": "an operator removed a sink",
    "sink.behind": "a sink is further behind than its max_lag and was cut off; it no longer holds the archive back",
    "sink.gap": "a sink that was cut off is back: it does not get the events from one sequence to the other",
    "sink.forgot": "a sink has lost what it was sent; ready tasks are announced again",
    "webhook.set": "a webhook was created or changed",
    "webhook.paused": "a person paused a webhook",
    "webhook.resumed": "a webhook was enabled again; everything parked is sent",
    "webhook.rotated": "a webhook got a new secret; deliveries carry both signatures for its grace period, if any",
    "webhook.replayed": "deliveries of a webhook are sent again",
    "webhook.removed": "a webhook was removed with its deliveries",
    "webhook.disabled": "a webhook was disabled: its receiver is gone, or nothing succeeded for three days",
    "webhook.test": "a test message for one webhook",
    "pool.set": "a pool was created or changed",
    "pool.paused": "a person paused a pool; its running agents finish their tasks",
    "pool.resumed": "a pool starts agents again",
    "pool.removed": "a pool was removed",
    "spawn.starting": "the leader offered a task and asks a spawner for an agent",
    "spawn.running": "the agent of a spawn has called for the first time",
    "spawn.ended": "the process of a spawn ended, or was never started; it can claim nothing more",
    "spawn.lost": "a spawn was not heard of in time, or its process is unknown; it can claim nothing more",
    "agent.emitted": "an agent or person emitted a fact; it is never read as state",
    "source.files_changed": "watched files of the repository changed",
    "epoch.started": "the store began a new epoch; older receipts are void",
    "clock.accepted": "a person accepted the host's clock; only this event may be earlier than the one before",
    "command.undone": "an earlier command was undone",
}


# Of events that belong to no project, those that every reader of all projects may see.
STORE_KINDS = frozenset(kind for kind in KINDS if kind.startswith(("sink.", "leader.")))
# And those that only their admins see. Events of tenants are in the home tenant.
ADMIN_KINDS = STORE_KINDS | {kind for kind in KINDS if kind.startswith(("key.", "member.", "tenant."))}


def kinds_of(names: Iterable[str]) -> tuple[str, ...]:
    """The kinds that are asked for: each by its name, or all of a noun by the noun alone, as `task`."""
    return tuple(kind for name in names for kind in [k for k in KINDS if k.startswith(f"{name}.")] or [_known(name)])


def levels_from(lowest: str) -> tuple[str, ...]:
    """This level and those above it: what a filter by level means everywhere."""
    from tenure.core.inputs import check_choice

    return LEVELS[LEVELS.index(check_choice(lowest, LEVELS, "level")) :]


def _known(name: str) -> str:
    if name in KINDS:
        return name
    from tenure.core.inputs import suggestion

    near = suggestion(name, [*KINDS, *{kind.partition(".")[0] for kind in KINDS}])
    raise InvalidInput(f"kind {name[:80]!r}: there is no such kind of event{near}", "as in task.claimed, or task")


class Event(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """`sequence` is assigned by the store on append; (task, version) orders the log of one task without gaps."""

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
