"""Repeats: one effect and the same answer for a request that is sent again.

Claims, results and tasks remember their own request in their own row, and receipts make a holder's verbs harmless to
repeat. Only what is left (create without a key, edits, operators' verbs, mail) is remembered here, for a day.
"""

from __future__ import annotations

import msgspec

from tenure.core import commands as c
from tenure.core.commands import Principal
from tenure.core.decoding import converted
from tenure.core.errors import RequestIdReused
from tenure.core.inputs import Checked
from tenure.core.outcomes import Outcome
from tenure.core.records import Request, replace
from tenure.engine.work import Work

KEPT = 24 * 3600 * 1_000_000
REMEMBER_THEMSELVES = (
    c.Claim, c.ClaimNext, c.Renew, c.Start, c.Progress, c.Checkpoint, c.Usage, c.Land, c.Submit, c.Fail, c.Release,
    c.Ask, c.Spawn, c.Wait, c.PutArtifact, c.Gone, c.Heartbeat, c.Lead, c.StepDown, c.RenewReservation, c.CreateKey,
    c.RotateKey, c.RevokeKey, c.TakeValidation, c.RenewValidation, c.Judge, c.Undecide,
    c.SetTrigger, c.RotateSecret, c.TryTrigger, c.Deliver,
)  # fmt: skip


def _is_remembered(item: Checked) -> bool:
    command = item.command
    if command.request_id is None or isinstance(command, REMEMBER_THEMSELVES):
        return False
    return not (isinstance(command, c.Add) and command.task.idempotency_key is not None)


def _row_id(item: Checked, principal: Principal) -> str:
    return f"{principal.name}|{item.command.request_id}"


def command_digest(command: c.Command) -> str:
    """What a request asks for, whoever traces it."""
    import hashlib  # a fifth of what a bare start costs, and seldom needed

    return hashlib.sha256(msgspec.json.encode(replace(command, trace_id=None))).hexdigest()[:32]


def bound(text: str, principal: Principal) -> str:
    """A request's id or digest with whose key sent it: a repeat by another is not the same request."""
    if not principal.owner:
        return text
    import hashlib

    return f"{text}.{hashlib.sha256(principal.owner.encode()).hexdigest()[:12]}"


def remembered(work: Work, item: Checked, principal: Principal) -> Outcome | None:
    if not _is_remembered(item):
        return None
    row = work.get(Request, item.command.project, _row_id(item, principal))
    if row is None or row.at + KEPT <= work.now:
        return None
    if row.digest != bound(command_digest(item.command), principal):
        raise RequestIdReused(
            f"request id {item.command.request_id[:80]!r} was used for another command, or by another key's owner",
            "take a new id for a new request",
        )
    return replace(converted(row.outcome, Outcome), again=True)


def remember(work: Work, item: Checked, principal: Principal, outcome: Outcome) -> None:
    """Keep the answer of a command that had an effect."""
    if _is_remembered(item) and outcome.ok and outcome.outcome != "UNCHANGED":
        work.put(
            Request(
                project=item.command.project, id=_row_id(item, principal),
                digest=bound(command_digest(item.command), principal), outcome=msgspec.to_builtins(outcome),
                at=work.now,
            )
        )  # fmt: skip
