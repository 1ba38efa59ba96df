"""Artifacts: bytes are stored first, then a row names them, under the live receipt of a holder.

`ready` runs before the bytes are accepted: it refuses at once what the row would be refused, and returns the size
limit. The check that counts is in `put_artifact`, in the transaction that writes the row. A holder that loses its
claim between the two has stored bytes without a reference (`left`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tenure.core import artifacts as rules
from tenure.core import claims, commands, queries, roles, runners
from tenure.core import queries as q
from tenure.core.artifacts import checked_name
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, NotFound, Overloaded
from tenure.core.outcomes import Outcome
from tenure.core.records import Artifact, Content, Task, replace
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import fields_of, project_of, task_named
from tenure.engine.runtime.unit_of_work import Handlers, Reads, Refused, UnitOfWork
from tenure.engine.verbs import brief
from tenure.engine.verbs.holder_verbs import Hold, judged, keep_started

if TYPE_CHECKING:
    from tenure.core.views import ArtifactView
    from tenure.engine.runtime.engine import Engine


# --- the row ------------------------------------------------------------------------------------------------


def put_artifact(work: UnitOfWork, cmd: commands.PutArtifact) -> Outcome:
    """Name the bytes. The same again changes nothing; other bytes under that name replace them."""
    name, digest = checked_name(cmd.name), rules.check_digest(cmd.digest)
    if cmd.size < 0:
        raise InvalidInput(f"size must not be negative (got {cmd.size})")
    rules.check_type(cmd.type)
    hold = judged(work, cmd.project, cmd.receipt)
    mine = work.get(Artifact, cmd.project, rules.artifact_id(hold.claim, name)) if hold.verdict.genuine else None
    is_same = mine is not None and (mine.digest, mine.size, mine.type) == (digest, cmd.size, cmd.type)
    if hold.refusal is not None and not is_same and not rules.may_put_late(name, hold.verdict.code):
        return hold.refusal
    if not is_same and (denial := runners.denied_evidence(hold.task, hold.claim, name, cmd.word)) is not None:
        return denial
    if mine is not None and is_same:
        task = hold.task if hold.refusal is not None else keep_started(work, hold.task)
        return _answer(work, hold, task, mine, again=True)
    rules.check_size(work.limits_of(hold.project), cmd.size)
    rules.check_beside(hold.task, name, {row.name for row in of_task(work, hold.task)})
    _count_in(work, cmd, digest)
    if mine is not None:
        let_go(work, cmd.project, {mine.digest: 1})
    claim = hold.claim
    row = Artifact(
        project=cmd.project,
        id=rules.artifact_id(claim, name),
        **fields_of(claim, "task generation run agent"),
        **fields_of(cmd, "type size"),
        name=name,
        digest=digest,
        at=work.now,
    )
    task = hold.task if hold.refusal is not None else claims.presented(hold.task, work.now)
    details = {"name": name, "type": cmd.type, "digest": digest, "size": cmd.size}
    named = replace(task, artifacts=task.artifacts + (mine is None))
    kept = work.record("task.artifact", row, task=named, message=name, holder=claim, details=details)
    spread(work)
    return _answer(work, hold, kept, row)


def _answer(work: UnitOfWork, hold: Hold, task: Task, row: Artifact, *, again: bool = False) -> Outcome:
    return Outcome(
        outcome="OK",
        again=again,
        message=f"{task.key}: {row.name}, {row.size} bytes",
        artifact=view(row, task),
        state=task.state,
        generation=row.generation,
        lease_until=task.lease_until,
        **(brief.directive(work, task) if hold.refusal is None else {"directive": hold.refusal.directive}),
    )


def _count_in(work: UnitOfWork, cmd: commands.PutArtifact, digest: str) -> None:
    content = work.get(Content, cmd.project, digest)
    if rules.may_be_gone(content, cmd.since, work.now):
        raise Overloaded(
            "these bytes had no references and may have been deleted during the upload",
            "nothing was done: send them again in a few minutes",
        )
    if content is not None and content.size != cmd.size:
        raise InvalidInput(f"size must be {content.size}, the size of {digest} (got {cmd.size})")
    work.put(rules.used(content, cmd.project, digest, cmd.size))


def let_go(work: UnitOfWork, project: str, digests: Mapping[str, int]) -> None:
    """This many references fewer to these bytes."""
    for digest, by in digests.items():
        content = work.get(Content, project, digest)
        if content is not None:
            work.put(rules.unused(content, work.now, by))


# --- around it ----------------------------------------------------------------------------------------------


class Ready(NamedTuple):
    """The bytes may come, at most this many. `since` goes with the command, to prove that they are still there."""

    largest: int
    since: int


def ready(
    engine: Engine, project: str, receipt: str, name: str, principal: Principal, word: str | None = None
) -> Ready | Outcome:
    """Whether this could be put now, or the refusal. Nothing is written."""
    checked_name(name)
    roles.check_kind(principal, commands.PutArtifact)
    roles.check_scope(principal, project)

    def ask(work: UnitOfWork) -> Ready | Outcome:
        work.begin_command(principal, None)
        try:
            hold = judged(work, project, receipt)
        except Refused as refused:
            return refused.outcome
        if not _was_put(work, hold, name):
            if hold.refusal is not None and not rules.may_put_late(name, hold.verdict.code):
                return hold.refusal
            if (denial := runners.denied_evidence(hold.task, hold.claim, name, word)) is not None:
                return denial
        return Ready(rules.largest(work.limits_of(hold.project)), work.now)

    return engine.read_settled((project,), ask)


def _was_put(work: UnitOfWork, hold: Hold, name: str) -> bool:
    """It may be a repeat whose answer was lost: only the digest will show."""
    if not hold.verdict.genuine:
        return False
    return work.get(Artifact, hold.claim.project, rules.artifact_id(hold.claim, checked_name(name))) is not None


def left(engine: Engine, project: str, digest: str, size: int) -> None:
    """Record bytes without a reference, since their row was refused: a sweep deletes them after a day."""

    def decide(work: UnitOfWork) -> None:
        if work.get(Content, project, digest) is None:
            work.put(Content(project=project, id=digest, size=size, idle_at=work.now))

    engine.transact((project,), decide)


def found(
    engine: Engine, project: str, task: str, name: str, generation: int | None, principal: Principal
) -> ArtifactView:
    """One artifact of a task: the latest with that name, or that of a generation."""
    roles.check_query(principal, queries.Artifacts(project=project, task=task))
    name = checked_name(name)

    def ask(work: UnitOfWork) -> list[ArtifactView]:
        work.begin_command(principal, None)
        project_of(work, project)
        return artifacts(work, project, task, generation=generation)

    for entry in engine.read_settled((project,), ask):
        if entry["name"] == name:
            return entry
    of = "" if generation is None else f" of generation {generation}"
    raise NotFound(f"{task}: no artifact {name!r}{of}", "`artifact list` shows what there is")


# --- queries ------------------------------------------------------------------------------------------------


def of_task(work: UnitOfWork, task: Task) -> list[Artifact]:
    """The artifacts that the claims of a task have put, the last generation's first."""
    if not task.artifacts:
        return []
    return work.find(Artifact, {"project": task.project, "task": task.id}, order="-generation")


def artifacts(work: UnitOfWork, project: str, name: str, *, generation: int | None = None) -> list[ArtifactView]:
    task = task_named(work, project, name)
    rows = [row for row in of_task(work, task) if generation in (None, row.generation)]
    return [view(row, task) for row in sorted(rows, key=lambda row: (row.name, -row.generation))]


def view(row: Artifact, task: Task) -> ArtifactView:
    fields = fields_of(row, "name type size digest generation run agent at")
    answer: ArtifactView = fields | {"ref": f"{rules.REFERENCE}{task.key}/{row.name}"}
    return answer


HANDLERS: Handlers = {commands.PutArtifact: put_artifact}


READS: Reads = {q.Artifacts: artifacts}
