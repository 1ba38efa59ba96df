"""Signed submissions: a session with a public key signs what it submits, and nothing else of it counts.

The signature is verified before the transaction, as evidence: its question has the key, the signature and the text, so
a finding counts for exactly these. Inside the transaction the text is made again from the rows: the task and the
generation of the claim, its epoch, the digests of the artifacts that are there. A refused one leaves the claim as it
is. Claims of such sessions never take the fast path: see `Task.reserved` and `Project.signs`.
"""

from __future__ import annotations

from tenure.core import commands
from tenure.core.outcomes import Outcome
from tenure.core.records import Artifact, Result, Row, Session, Signature, replace
from tenure.core.signed_results import fingerprint, is_signature, message, weakness_of
from tenure.engine.checks import evidence
from tenure.engine.runtime.unit_of_work import Refused, UnitOfWork
from tenure.engine.verbs.holder_verbs import Hold


def check_signature(work: UnitOfWork, hold: Hold, cmd: commands.Submit, artifacts: tuple[str, ...]) -> Hold:
    """The hold with its signature, if its session signs; raises Refused where it is missing or wrong."""
    claim, task = hold.claim, hold.task
    session = work.get(Session, claim.project, claim.session)
    key = session.public_key if session is not None else None
    given = cmd.signature
    if key is None and given is None:
        return hold
    if key is None:
        raise _bad(hold, f"session {claim.session} has registered no key", "submit without a signature")
    weakness = weakness_of(key)
    if weakness:
        why = f"the key {fingerprint(key)} of session {claim.session} {weakness}, so its signature proves nothing"
        raise _bad(hold, why, "release the task, and claim it in a new session with a good key")
    if given is None:
        raise _bad(hold, f"session {claim.session} signs its results, and this one is not signed")
    rows = work.get_many(Artifact, claim.project, artifacts).values() if artifacts else ()
    if {row.name: row.digest for row in rows} != given.artifacts:
        raise _bad(hold, "the signature names other artifacts than the result passes on")
    covered = message(
        tenant=work.context.tenant, project=claim.project, task=task.ref, generation=claim.generation,
        epoch=claim.epoch, data=cmd.data, summary=cmd.summary, artifacts=given.artifacts, request_id=cmd.request_id,
    )  # fmt: skip
    if not is_signature(given.value) or not evidence.of_signature(work, key, given.value, covered):
        raise _bad(hold, f"the signature is not that of key {fingerprint(key)} over this result")
    return replace(hold, signed=(key, given.value))


def signature_rows(work: UnitOfWork, hold: Hold, result: Result) -> list[Row]:
    """The row that keeps the signature of a result."""
    if hold.signed is None:
        return []
    key, value = hold.signed
    return [
        Signature(
            project=result.project, id=result.id, task=result.task, generation=result.generation,
            session=result.session, public_key=key, value=value, request_id=result.request_id, at=work.now,
        )
    ]  # fmt: skip


def _bad(hold: Hold, why: str, hint: str = "sign it with the key of the session, and submit it again") -> Refused:
    return Refused(
        Outcome(
            outcome="BAD_SIGNATURE",
            message=f"{hold.task.key}: {why}",
            hint=f"the claim is as it was; {hint}",
            state=hold.task.state,
            generation=hold.claim.generation,
            current_generation=hold.task.generation,
            work_lost=False,
            directive="continue",
        )
    )
