"""Events as people tell them: `ann claims C-001-write-the-api, generation 2`. For live views; `log` has them whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.cli.text_format import plain

# {who}: the agent or user; {task}: its key. What an event brings along (`more`) follows after a colon.
TOLD: dict[str, str] = {
    "project.created": "{who} makes the project",
    "project.changed": "{who} changes the project's settings",
    "project.stopped": "{who} stops the line for {scope}",
    "project.started": "{who} starts the line again for {scope}",
    "track.defined": "{who} defines track {track}",
    "dag.created": "{who} makes a plan",
    "dag.reopened": "a plan goes on",
    "dag.completed": "a whole plan is completed",
    "dag.failed": "a plan cannot go on: it waits for a person",
    "dag.cancelled": "a plan is cancelled",
    "task.created": "{who} adds {task}",
    "task.published": "{who} publishes {task}",
    "task.ready": "{task} is ready",
    "task.pending": "{task} waits again",
    "task.linked": "{who} makes {task} wait for another",
    "task.unlinked": "{who} takes a dependency of {task} away",
    "task.claimed": "{who} claims {task}, generation {generation}",
    "task.started": "{who} starts {task}",
    "task.progress": "{who} works on {task}",
    "task.checkpoint": "{who} leaves a checkpoint on {task}",
    "task.landing": "{who} lands {task}",
    "task.waiting": "{who} waits for subtasks of {task}",
    "task.validating": "{who} hands {task} in: it waits for a verdict",
    "task.validation_taken": "what was handed in for {task} is checked",
    "task.validation_undecided": "nothing can be said yet of what was handed in for {task}",
    "task.output_refused": "{who}'s output for {task} is refused",
    "task.completed": "{who} completes {task}",
    "task.result_refused": "{who} is refused on {task} with generation {generation}",
    "task.failed": "{who} fails on {task}",
    "task.retry_scheduled": "{task} will be tried again",
    "task.retry_due": "{task} can be tried again",
    "task.dead_lettered": "{task} is a dead letter now: it waits for a person",
    "task.lease_expired": "{who} lost its lease on {task}",
    "task.process_gone": "{who}'s process is gone: {task} is free",
    "task.released": "{who} gives {task} back",
    "task.aborted": "{who}'s claim on {task} is ended: it hung",
    "task.epoch_ended": "a new epoch ends {who}'s claim on {task}",
    "task.clock_ended": "{who}'s claim on {task} ends: it was made while the clock was ahead",
    "task.warned": "{who} is asked for a sign of life on {task}",
    "task.drain_requested": "{who} is asked to pause {task}",
    "task.paused": "{task} is paused",
    "task.pause_lifted": "{task}: a cause of its pause is gone",
    "task.resumed": "{who} resumes {task}",
    "task.question": "{who} asks about {task}",
    "task.answered": "{who} answers about {task}",
    "task.change_seen": "{who} has seen the new description of {task}",
    "task.cancelled": "{task} is cancelled",
    "task.uncancelled": "{task} is no longer cancelled",
    "task.retried": "{who} gives {task} another run",
    "task.reset": "{who} starts {task} over",
    "task.reset_undone": "{who} takes the reset of {task} back",
    "task.retry_undone": "{who} takes the retry of {task} back",
    "task.adopted": "{who} takes a kept result for {task}",
    "task.archived": "{who} archives {task}",
    "task.unarchived": "{who} brings {task} back from the archive",
    "task.edited": "{who} edits {task}",
    "task.offered": "{task} is held out to one agent",
    "task.offer_ended": "{task} is open to anybody again",
    "task.recovered": "{task} is taken from {who}",
    "task.reassigned": "{task} is taken from {who} for another",
    "task.deadline_missed": "{task} has missed its deadline",
    "task.noted": "{who} notes on {task}",
    "agent.registered": "{who} is here",
    "agent.updated": "{who} tells of itself",
    "agent.draining": "{who} takes nothing more",
    "agent.stale": "{who} was not heard of for long",
    "agent.recovered": "{who} is heard of again",
    "agent.terminating": "{who} is told to end",
    "agent.terminated": "{who} is ended",
    "agent.resumed": "{who} may claim again",
    "agent.left": "{who} leaves",
    "session.started": "a session of {who} begins",
    "session.ended": "a session of {who} ends",
    "message.sent": "{who} writes a message",
    "reservation.taken": "{who} reserves something",
    "reservation.released": "{who} lets a reservation go",
    "leader.elected": "{who} leads now, term {term}",
    "leader.lost": "{who} leads no longer",
    "task.artifact": "{who} puts an artifact on {task}",
    "budget.set": "{who} sets budget {budget}",
    "budget.removed": "{who} takes budget {budget} away",
    "budget.moved": "{who} moves a part of one budget to another",
    "budget.alert": "a budget is used up, or nearly",
    "budget.alert_ended": "a budget has something left again",
    "schedule.set": "{who} sets schedule {source}",
    "schedule.paused": "{who} pauses schedule {source}",
    "schedule.resumed": "{who} resumes schedule {source}",
    "schedule.removed": "{who} removes schedule {source}",
    "schedule.fired": "schedule {source} makes work",
    "schedule.missed": "schedule {source} lets ticks go that nobody was there for",
    "schedule.failed": "schedule {source} could not make its work",
    "trigger.set": "{who} sets trigger {source}",
    "trigger.paused": "{who} pauses trigger {source}",
    "trigger.resumed": "{who} resumes trigger {source}",
    "trigger.removed": "{who} removes trigger {source}",
    "trigger.rotated": "{who} gives trigger {source} a new secret",
    "trigger.fired": "trigger {source} makes work",
    "trigger.failed": "trigger {source} could not make its work",
    "trigger.held_back": "trigger {source} is held back: it fired too often",
    "dag.changed": "{who} changes what a plan's end triggers",
    "key.created": "{who} makes a key",
    "key.rotated": "{who} gives a key a new secret",
    "key.revoked": "{who} revokes a key",
    "archive.moved": "finished tasks go into the archive",
    "archive.returned": "tasks come back from the archive",
    "archive.pruned": "tasks are gone from the archive for good",
    "epoch.started": "a new epoch: older receipts are void",
    "clock.accepted": "the clock was put right: times that were set ahead moved back",
    "command.undone": "{who} undoes a command",
}
# Signs of life and their like, which would drown the rest in a short view.
DULL = frozenset(
    {
        "session.started", "session.ended", "agent.updated", "task.ready", "task.retry_due", "task.started",
        "archive.moved", "archive.returned", "archive.pruned",
    }
)  # fmt: skip


def told(event: Mapping[str, Any]) -> str:
    """The event as a sentence, without its time."""
    details = event.get("details", {})
    words = {
        "who": event.get("agent") or event.get("user") or "somebody", "task": event.get("key") or "a task",
        "generation": event.get("generation", "?"), "scope": details.get("scope", "something"),
        "term": details.get("term", "?"), "track": details.get("track", "?"),
        "budget": details.get("budget", "?"), "source": details.get("schedule") or details.get("trigger") or "?",
    }  # fmt: skip
    said = TOLD.get(event["kind"], event["kind"] + " {task}").format(**words)
    more = _more(event, details)
    return plain(f"{said}: {more}" if more else said)


def _more(event: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    if event["kind"] == "task.progress":
        percent = f"{details['percent']} %" if details.get("percent") is not None else ""
        return ", ".join(part for part in (percent, details.get("step") or "") if part)
    if event["kind"] == "task.result_refused":
        return str(details.get("reason", ""))
    if event["kind"] in ("task.created", "message.sent"):
        return ""  # the key says it already; mail is for its reader
    return str(event.get("message", "") or details.get("error", ""))
