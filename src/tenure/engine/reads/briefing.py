"""What the next holder of a task must know, and what an agent should hear now. Nothing is written.

The claim's own answer has the first half (inputs, checkpoint, artifacts). The rest is in the log: notes, the notes of
a retry, who edited the text. So a claim on the fast path reads no log, and every interface gets the same briefing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import claims, limits, roles, validation
from tenure.core import queries as q
from tenure.core.events import Event
from tenure.core.records import Agent, Claim, LastError, Task
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import archived_events, brief_of, lineage, task_named
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs import agents, brief

if TYPE_CHECKING:
    from tenure.core.views.task_views import BriefingView, FailureView, ReviewView, TaskNoteView
    from tenure.core.views.team_views import AgentNewsView, DirectiveView

MOST_NOTES = limits.NOTES_SHOWN
_WRITTEN = frozenset({"title", "description", "spec"})
_KINDS = ("task.noted", "task.retried", "task.edited")
_TURNS = ("task.retry_due", "task.released")  # most are without a word, and so are read beside the others


def briefing(work: UnitOfWork, project: str, name: str) -> BriefingView:
    task = task_named(work, project, name)
    row = brief_of(work, task)
    handed = task_view.inputs_of(work, task, row)
    checkpoint = task_view.checkpoint_of(work, task) if roles.sees_checkpoints(work.principal) else None
    events, turns = (_last_events(work, task, kinds) for kinds in (_KINDS, _TURNS))
    retries = [event for event in (*events, *turns) if event.kind in ("task.retried", "task.retry_due")]
    parts: dict[str, Any] = {
        "task": task_view.task_view(work, task, row),
        "written_by": task.created_by,
        "edited_by": _editor(events),
        "inputs": handed.outputs,
        "missing": handed.missing,
        "artifacts": task_view.earlier_artifacts(work, task),
        "checkpoint": checkpoint,
        "failure": _failure(work, task),
        "review": _review(work, task),
        "notes": [_note(event) for event in events if event.kind == "task.noted"],
        "retries": [_note(event) for event in sorted(retries, key=lambda one: one.sequence) if event.message],
        "releases": [_note(event) for event in turns if event.kind == "task.released" and event.message],
    }
    return {name: part for name, part in parts.items() if part}  # type: ignore[return-value]  # unset ones left out


def _last_events(work: UnitOfWork, task: Task, kinds: tuple[str, ...]) -> list[Event]:
    where = {"project": task.project, "task": task.id, "kind": kinds}
    events = work.tx.events(where, limit=MOST_NOTES, last=True)
    return [*archived_events(work, task.project, where), *events][-MOST_NOTES:]


def _author(event: Event) -> str:
    author = f"agent:{event.agent}" if event.kind == "task.released" else event.details.get("by")
    return str(author or (f"human:{event.user}" if event.user else f"agent:{event.agent or ''}"))


def _note(event: Event) -> TaskNoteView:
    return {"by": _author(event), "at": event.time, "text": event.message}


def _editor(events: list[Event]) -> str | None:
    """Who last changed the text of the task."""
    changed = [
        event for event in events if event.kind != "task.noted" and _WRITTEN & set(event.details.get("changes") or ())
    ]
    return _author(changed[-1]) if changed else None


def _failure(work: UnitOfWork, task: Task) -> FailureView | None:
    error = _lost(work, task) or task.last_error
    if error is None:
        return None
    answer: FailureView = msgspec.structs.asdict(error)  # type: ignore[assignment]  # the same fields
    claim = work.get(Claim, task.project, claims.claim_id(task.id, error.generation))
    if claim is not None:
        answer["agent"] = claim.agent
    return answer


def _lost(work: UnitOfWork, task: Task) -> LastError | None:
    """The error of the claims before this one, where they were lost: a holder that is gone reports none."""
    last = task.generation - claims.is_held(task)
    claim = work.get(Claim, task.project, claims.claim_id(task.id, last)) if last > 0 else None
    if claim is None or claim.reason != "EXPIRED":
        return None
    from tenure.core import dead_letters  # few claims follow a lost one; keeps startup fast

    return dead_letters.lost(
        task, [one for one in lineage(work, task) if one.run == task.run and one.generation <= last]
    )


def _review(work: UnitOfWork, task: Task) -> ReviewView | None:
    """The last refusal of a result in this run."""
    if not task.checked:
        return None
    from tenure.engine.checks.validation_reads import of_task

    refused = [row for row in of_task(work, task) if row.state == validation.REFUSED and row.run == task.run]
    if not refused:
        return None
    row = refused[-1]
    return {
        "by": row.decided_by or row.validator, "at": row.decided_at or row.created_at, "validator": row.validator,
        "generation": row.claimed, "reasons": list(row.reasons),
    }  # fmt: skip


# --- what an agent should hear --------------------------------------------------------------------------------


def news(work: UnitOfWork, project: str, agent: str) -> AgentNewsView:
    """Unread mail, an operator's directive for the agent, and those for the holder of each of its tasks."""
    directives: list[DirectiveView] = []
    known = work.get(Agent, project, agent)
    if known is not None and known.terminated_at is not None:
        directives.append({"directive": agents.TERMINATED, "text": agents.ended_text(known)})
    elif known is not None and known.draining:
        directives.append(
            {"directive": "drain", "text": f"agent {agent} is draining: finish your tasks, claim nothing more"}
        )
    directives += brief.directives(work, project, agent)
    return {"mail": agents.unread(work, project, agent), "directives": directives}


READS: Reads = {q.Briefing: briefing, q.AgentNews: news}
