"""One sentence for each event: `ann claims C-001-write-the-api, generation 2`.

The view of an event has it as `text`; the command line, the HTTP API and the dashboard show that field. A kind of
event without a sentence fails a test.
"""

from __future__ import annotations

import re
from typing import Any

from tenure.core.commands.command import BY, HOLDER
from tenure.core.events import Event
from tenure.core.lifecycle import PERSON
from tenure.core.safe_text import one_line

# {who}: who acted, the agent or else the user; {holder}: whose claim it is; {task}: its key; all others: `_DETAILS`.
# What stands in brackets is left out where it says nothing: nobody acted but the holder, or nobody is known.
TEXTS: dict[str, str] = {
    "project.created": "{who} creates the project",
    "project.changed": "{who} changes the project's settings",
    "project.key_rotated": "{who} rotates the keys of the project's secrets",
    "project.stopped": "{who} stops all claiming in {scope}",
    "project.started": "{who} allows claiming in {scope} again",
    "track.defined": "{who} defines track {track}",
    "dag.created": "{who} creates dag {dag}",
    "dag.changed": "{who} changes what the end of dag {dag} triggers",
    "dag.reopened": "dag {dag} is open again",
    "dag.completed": "dag {dag} is completed",
    "dag.failed": "dag {dag} cannot continue: a person must act on its dead letters",
    "dag.cancelled": "dag {dag} is cancelled",
    "task.created": "{who} adds {task}",
    "task.published": "{who} publishes {task}",
    "task.ready": "{task} is ready",
    "task.pending": "{task} waits for a dependency again",
    "task.linked": "{who} makes {task} depend on {needs}",
    "task.unlinked": "{who} removes the dependency of {task} on {needs}",
    "task.claimed": "{who} claims {task}, generation {generation}[, for {holder}]",
    "task.started": "{who} starts {task}[ for {holder}]",
    "task.progress": "{who} works on {task}[ for {holder}]",
    "task.checkpoint": "{who} saves a checkpoint of {task}[ for {holder}]",
    "task.landing": "{who} reports a landing of {task} on {branch}[ for {holder}]",
    "task.artifact": "{who} stores an artifact of {task}[ for {holder}]",
    "task.waiting": "{holder} waits for the subtasks of {task}",
    "task.validating": "{who} submits {task}[ for {holder}]; its result is not accepted yet",
    "task.validation_taken": "{holder} takes the result of {task}",
    "task.validation_undecided": "the result of {task} is put off",
    "task.validated": "the result of {task} has passed; its commit waits to be landed",
    "task.output_refused": "{holder}'s output for {task} is refused",
    "task.completed": "{holder} completes {task}[, accepted by {who}]",
    "task.result_refused": "{holder}'s result for {task} with generation {generation} is refused",
    "task.failed": "{holder}'s attempt at {task} fails[, says {who}]",
    "task.retry_scheduled": "{task} will be retried",
    "task.retry_due": "{task} is ready for its retry",
    "task.dead_lettered": "{task} is a dead letter: a person must act",
    "task.lease_expired": "{holder}'s lease on {task} expires",
    "task.process_gone": "{holder}'s claim on {task} ends: its process is gone",
    "task.released": "{who} releases {task}[ for {holder}]",
    "task.aborted": "{holder}'s claim on {task} is aborted[ by {who}]",
    "task.epoch_ended": "{holder}'s claim on {task} ends: the store has a new epoch",
    "task.clock_ended": "{holder}'s claim on {task} ends: it was granted while the clock was ahead",
    "task.warned": "{holder} is asked for a heartbeat on {task}",
    "task.drain_requested": "{holder} is asked to pause {task}[ by {who}]",
    "task.paused": "{task} is paused[ by {who}]",
    "task.pause_lifted": "one cause of the pause of {task} is lifted",
    "task.resumed": "{who} resumes {task}",
    "task.question": "{who} asks a question about {task}[ for {holder}]",
    "task.answered": "{who} answers the question about {task}",
    "task.change_seen": "{who} has read the new description of {task}",
    "task.cancelled": "{task} is cancelled[ by {who}]",
    "task.uncancelled": "{task} is no longer cancelled[, says {who}]",
    "task.retried": "{who} gives {task} another run",
    "task.reset": "{who} resets {task}",
    "task.reset_undone": "{who} undoes the reset of {task}",
    "task.retry_undone": "{who} undoes the retry of {task}",
    "task.adopted": "{who} adopts a kept result for {task}",
    "task.archived": "{who} archives {task}",
    "task.unarchived": "{who} unarchives {task}",
    "task.edited": "{who} edits {task}",
    "task.reordered": "{who} moves {task} to the order {order}",
    "task.offered": "{task} is offered to agent {agent}[ by {who}]",
    "task.offer_ended": "the offer of {task} ends: any agent may claim it",
    "task.recovered": "{holder}'s claim on {task} is ended by an operator[, {who}]",
    "task.reassigned": "{task} is taken from {holder} for another agent[ by {who}]",
    "task.deadline_missed": "{task} has missed its deadline",
    "task.resealed": "{who} seals the secrets of {task} again",
    "task.noted": "{who} adds a note to {task}",
    "task.usage_doubted": "{who} reports ${reported_usd} for {task}; budgets do not count ${amount_usd} of it yet",
    "task.usage_confirmed": "{by} confirms ${amount_usd} that was reported for {task}",
    "task.usage_rejected": "{by} rejects ${amount_usd} that was reported for {task}",
    "sink.added": "events are relayed to sink {sink}",
    "sink.paused": "{who} pauses the relay to sink {sink}",
    "sink.resumed": "{who} resumes the relay to sink {sink}",
    "sink.rewound": "{who} rewinds the relay to sink {sink}",
    "sink.removed": "{who} removes sink {sink}",
    "sink.behind": "sink {sink} is too far behind and is cut off",
    "sink.gap": "sink {sink} is back and misses events {from} to {to}",
    "sink.forgot": "sink {sink} has lost its messages: ready tasks are announced again",
    "webhook.set": "{who} sets webhook {webhook}",
    "webhook.paused": "{who} pauses webhook {webhook}",
    "webhook.resumed": "{who} resumes webhook {webhook}",
    "webhook.rotated": "{who} gives webhook {webhook} a new secret",
    "webhook.replayed": "{who} has deliveries of webhook {webhook} sent again",
    "webhook.removed": "{who} removes webhook {webhook}",
    "webhook.disabled": "webhook {webhook} is disabled: {why}",
    "webhook.test": "{who} tests webhook {webhook}",
    "pool.set": "{who} sets pool {pool}",
    "pool.paused": "{who} pauses pool {pool}",
    "pool.resumed": "{who} resumes pool {pool}",
    "pool.removed": "{who} removes pool {pool}",
    "spawn.starting": "pool {pool} starts {agent} for {task_key}",
    "spawn.running": "{agent} of pool {pool} is running",
    "spawn.ended": "{agent} of pool {pool} ends: {why}",
    "spawn.lost": "{agent} of pool {pool} is lost: {why}",
    "agent.emitted": "{who} emits {name}",
    "source.files_changed": "files changed: {paths}",
    "agent.registered": "{who} joins",
    "agent.updated": "{who} updates its profile",
    "agent.draining": "{who} drains[, asked by {by}]: it claims nothing more",
    "agent.stale": "{who} is stale: it has sent no heartbeat for too long",
    "agent.recovered": "{who} sends heartbeats again",
    "agent.terminating": "{who} is terminated[ by {by}] when it has finished what it holds",
    "agent.terminated": "{who} is terminated[ by {by}]",
    "agent.resumed": "{who} may claim again[, says {by}]",
    "agent.left": "{who} leaves",
    "agent.died": "{who} died: its process is gone",
    "session.started": "a session of {who} starts",
    "session.keyed": "session {session} signs its results with key {fingerprint}",
    "session.ended": "a session of {who} ends",
    "message.sent": "{who} sends a message to {to}",
    "reservation.taken": "{who} reserves {patterns}",
    "reservation.released": "{who} releases the reservation of {patterns}",
    "track.assigned": "track {track} is assigned to {agent}[ by {by}]",
    "track.released": "track {track} is no longer assigned to {agent}",
    "leader.elected": "{who} becomes the leader, term {term}",
    "leader.lost": "{who} is no longer the leader",
    "budget.set": "{who} sets budget {budget}",
    "budget.removed": "{who} removes budget {budget}",
    "budget.moved": "{who} moves an amount from budget {from} to budget {to}",
    "budget.alert": "a budget reaches {threshold} %",
    "budget.alert_ended": "a budget is below {threshold} % again",
    "schedule.set": "{who} sets schedule {schedule}",
    "schedule.paused": "{who} pauses schedule {schedule}",
    "schedule.resumed": "{who} resumes schedule {schedule}",
    "schedule.removed": "{who} removes schedule {schedule}",
    "schedule.fired": "schedule {schedule} creates tasks",
    "schedule.missed": "schedule {schedule} skips runs that were missed",
    "schedule.failed": "schedule {schedule} cannot create its tasks",
    "trigger.set": "{who} sets trigger {trigger}",
    "trigger.paused": "{who} pauses trigger {trigger}",
    "trigger.resumed": "{who} resumes trigger {trigger}",
    "trigger.removed": "{who} removes trigger {trigger}",
    "trigger.rotated": "{who} rotates the secret of trigger {trigger}",
    "trigger.fired": "trigger {trigger} creates tasks",
    "trigger.failed": "trigger {trigger} cannot create its tasks",
    "trigger.held_back": "trigger {trigger} is held back: it fires too often",
    "key.created": "{by} creates API key {key}",
    "key.rotated": "{by} rotates API key {key}",
    "key.revoked": "{by} revokes API key {key}",
    "tenant.added": "{by} creates tenant {tenant}",
    "tenant.changed": "{by} changes the limits of tenant {tenant}",
    "tenant.closed": "{by} closes tenant {tenant}",
    "tenant.reopened": "{by} opens tenant {tenant} again",
    "tenant.leaving": "{by} begins move {move} of tenant {tenant}",
    "tenant.moved": "move {move} of tenant {tenant}: its home is another store",
    "tenant.arrived": "move {move} of tenant {tenant} has ended",
    "tenant.stayed": "{by} calls off move {move} of tenant {tenant}",
    "member.invited": "{by} invites {member}",
    "member.joined": "{member} joins",
    "member.changed": "{by} changes the membership of {member}",
    "member.removed": "{by} removes {member}",
    "archive.moved": "finished tasks move to the archive",
    "archive.returned": "tasks return from the archive",
    "archive.pruned": "tasks are deleted from the archive",
    "epoch.started": "the store starts a new epoch: earlier receipts are void",
    "clock.accepted": "{who} accepts the host's clock: times that were ahead move back",
    "command.undone": "{who} undoes a command",
}

# Fields of `details` that a sentence names, and what stands there in an event without them.
_DETAILS = {
    "agent": "?", "amount_usd": "?", "branch": "a branch", "budget": "?", "by": "somebody", "fingerprint": "?",
    "from": "?", "key": "?", "member": "?", "move": "?", "name": "?", "needs": "another task",
    "order": "?",
    "paths": "?", "patterns": "?", "pool": "?", "reported_usd": "?", "schedule": "?", "scope": "?", "sink": "?",
    "task_key": "a task",
    "tenant": "?", "term": "?", "threshold": "?", "to": "?", "track": "?", "trigger": "?", "webhook": "?", "why": "?",
}  # fmt: skip
_SHOWN = 3
_BRACKETS = re.compile(r"\[([^]]*)\]")


def event_text(event: Event) -> str:
    """The event as a sentence on one line, without its time."""
    details = event.details
    words = {name: _shown(details.get(name)) or otherwise for name, otherwise in _DETAILS.items()}
    words["who"] = event.agent or event.user or "somebody"
    words["holder"] = _shown(details.get(HOLDER)) or event.agent or "somebody"
    words["by"] = words["by"].removeprefix("human:").removeprefix("agent:")
    words["task"] = event.key or "a task"
    words["session"] = event.session or "?"
    words["generation"] = str(event.generation or "?")
    words["dag"] = str(details.get("title") or details.get("dag") or "?")
    text = TEXTS.get(event.kind, f"{event.kind}: {{task}}")
    text = _BRACKETS.sub(lambda part: part[1] if _is_said(event, text) else "", text).format_map(words)
    more = _more(event)
    return one_line(f"{text}: {more}" if more else text)


def _is_said(event: Event, text: str) -> bool:
    """Whether the part of a sentence in brackets says something that the rest does not."""
    if "{by}" in text:
        return BY in event.details
    if "{holder}" in text:
        return HOLDER in event.details and bool(event.agent or event.user)
    is_decided = event.kind != "task.paused" or event.details.get("cause") == PERSON
    return is_decided and bool(event.agent or event.user)


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        more = [f"{len(value) - _SHOWN} more"] if len(value) > _SHOWN else []
        return ", ".join([*map(str, value[:_SHOWN]), *more])
    return "" if value is None else str(value).removesuffix(":")  # the scope of a whole project is `project:`


def _more(event: Event) -> str:
    """What the holder or operator wrote, or what went wrong."""
    details = event.details
    if event.kind == "task.progress":
        percent = f"{details['percent']} %" if details.get("percent") is not None else ""
        return ", ".join(part for part in (percent, details.get("step") or "") if part)
    if event.kind == "task.result_refused":
        return str(details.get("reason", ""))
    if event.kind in ("task.created", "message.sent"):
        return ""  # the key shows it already; mail is for its reader
    return event.message or str(details.get("error", ""))
