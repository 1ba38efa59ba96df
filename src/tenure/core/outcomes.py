"""Answers. One struct for all of them, so that every interface renders one shape; unset fields are left out.

`CODES` is the one table: code → (kind, meaning). Interfaces map the kind to an exit code or an HTTP status; the
reference page is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

READY_FOR_OTHERS = "ready_for_others"
_NOT_READY = frozenset({"waiting", "held", "limit", READY_FOR_OTHERS})  # counts of NO_TASK that overlap nothing


def each_once(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of NO_TASK for people: a ready task that is named for a reason is not ready for others as well."""
    named = sum(count for name, count in counts.items() if name not in _NOT_READY)
    once = {**counts, READY_FOR_OTHERS: max(0, counts.get(READY_FOR_OTHERS, 0) - named)}
    return {name: count for name, count in once.items() if count}


class Code(msgspec.Struct, frozen=True):
    kind: str  # ok, nothing, held, stale, denied, invalid, missing
    meaning: str


CODES: dict[str, Code] = {
    "OK": Code("ok", "done"),
    "CREATED": Code("ok", "created"),
    "EXISTS": Code("ok", "it already exists"),
    "UPDATED": Code("ok", "changed"),
    "UNCHANGED": Code("ok", "nothing had to change"),
    "GRANTED": Code("ok", "the task is yours; the receipt proves it"),
    "RENEWED": Code("ok", "the lease was extended"),
    "ACCEPTED": Code("ok", "the result was accepted"),
    "VALIDATING": Code("ok", "the result was submitted and waits for a verdict, or to be landed"),
    "REVIEW": Code("ok", "the result is kept and waits for a person: it used far more tokens than its diff suggests"),
    "ELECTED": Code("ok", "you lead with this term"),
    "NO_TASK": Code("nothing", "no task that this agent may claim now"),
    "DENIED_ACTIVE_CLAIM": Code("held", "another claim holds the task"),
    "DENIED_COMPLETED": Code("denied", "the task is completed"),
    "DENIED_NOT_READY": Code("denied", "the task waits for a dependency or a time"),
    "DENIED_CAPABILITY": Code("denied", "the agent lacks a capability, is in another region or of another type"),
    "DENIED_BUDGET": Code("denied", "a budget does not cover it"),
    "DENIED_LIMIT": Code("denied", "a limit is reached"),
    "DENIED_CONFLICT": Code("denied", "another claim has reserved what the task touches or needs"),
    "DENIED_TRACK": Code("denied", "the track is assigned to another agent"),
    "DENIED_OFFERED": Code("denied", "the task is offered to another agent"),
    "DENIED_PAUSED": Code("denied", "the task is paused, or claiming is stopped in its scope"),
    "DENIED_CANCELLED": Code("denied", "the task is cancelled"),
    "DENIED_DEAD_LETTERED": Code("denied", "the task is a dead letter and waits for a person"),
    "DENIED_STATE": Code("denied", "the task's state does not allow this"),
    "DENIED_AGENT": Code("denied", "an operator has terminated the agent"),
    "DENIED_SPAWN": Code("denied", "the process's spawn has ended or is lost, so it must end without a claim"),
    "DENIED_RUNNER": Code("denied", "a runner has the task: it submits the result itself, and claims the other tasks"),
    "DENIED_LEADER": Code("held", "another process leads"),
    "NOT_FOUND": Code("missing", "no such task in this project"),
    "STALE_EPOCH": Code("stale", "the receipt is from an earlier store epoch"),
    "STALE_GENERATION": Code("stale", "a later claim took over"),
    "FUTURE_GENERATION": Code("stale", "the task has no such generation yet"),
    "SESSION_MISMATCH": Code("stale", "the generation is current, but this is not its receipt"),
    "STALE_TERM": Code("stale", "a later leader took over"),
    "ALREADY_EXPIRED": Code("stale", "the claim expired; claim the task again to continue"),
    "NO_CLAIM": Code("stale", "the claim has ended"),
    "STOPPED": Code("stale", "the holder was asked to stop: its claim has ended, and the result is kept, not accepted"),
    "TASK_ALREADY_COMPLETED": Code("stale", "the task has its accepted result"),
    "TASK_CANCELLED": Code("stale", "the task was cancelled"),
    "VERSION_CONFLICT": Code("invalid", "the task changed since that version"),
    "CHANGED": Code("invalid", "the description has changed since the holder last read it; the claim stays"),
    "INVALID_OUTPUT": Code("invalid", "the output does not meet the task's contract"),
    "BAD_SIGNATURE": Code("invalid", "the session signs its results, and the signature is missing or wrong"),
    "TEMPLATE_FAILED": Code("invalid", "the tasks of a trigger's template cannot be created"),
    "CANNOT_UNDO": Code("denied", "the tasks have changed since then; nothing was done"),
}


class Outcome(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What happened and why. `outcome` is a key of CODES; `message` states the fact, `hint` what to do."""

    outcome: str
    message: str = ""
    hint: str | None = None
    command_id: str | None = None  # for undo
    again: bool = False  # a repeat: this is the first answer
    warnings: tuple[str, ...] | None = None  # about what the command did

    task: Mapping[str, Any] | None = None  # the current task
    tasks: tuple[Mapping[str, Any], ...] | None = None
    claims: tuple[Outcome, ...] | None = None  # of claim_next with n > 1
    generation: int | None = None
    receipt: str | None = None
    lease_until: int | None = None
    lease: float | None = None  # seconds until then: programs use this one
    lease_why: str | None = None  # of the lease `auto`: where its length comes from
    attempt: int | None = None
    models: tuple[str, ...] | None = None
    model: str | None = None  # the one to use for this attempt; None where only the tier is known
    tier: str | None = None  # of models: small, middle or top
    why: str | None = None  # this model, or tier
    secrets: dict[str, str] | None = None  # of the task, by name: for the holder of the live claim alone
    inputs: dict[str, Any] | None = None  # outputs of dependencies and of context_refs
    checkpoint: Mapping[str, Any] | None = None
    holder: str | None = None
    yours: bool | None = None
    waits_for: tuple[str, ...] | None = None
    conflict: str | None = None
    counts: dict[str, int] | None = None  # of NO_TASK: why nothing was offered; how much was done
    unfinished: tuple[str, ...] | None = None  # what this session still holds

    directive: str | None = None  # continue, warn, changed, pause, cancel, abort, terminated
    directive_text: str | None = None
    brief: int | None = None  # of a changed task: the number of its description
    diff: str | None = None  # its changes since the holder last read it
    mail: int | None = None
    current_generation: int | None = None
    work_lost: bool | None = None
    work_product: str | None = None
    result: str | None = None
    reasons: tuple[str, ...] | None = None  # of a verdict: what to fix, at most five
    validation: Mapping[str, Any] | None = None  # the validation that was taken, or that a result waits for
    usage: Mapping[str, Any] | None = None  # what this claim has cost so far
    late: bool | None = None  # the receipt is stale: the usage is booked, but not against the task
    landings: tuple[Mapping[str, Any], ...] | None = None  # the task's earlier landings, newest first
    artifact: Mapping[str, Any] | None = None  # the artifact that was put
    artifacts: tuple[Mapping[str, Any], ...] | None = None  # of a claim: artifacts of the task's earlier claims
    budget: Mapping[str, Any] | None = None  # the current budget
    shortage: Mapping[str, Any] | None = None  # the budget that does not cover it, the shortfall, and what to do
    retry_at: int | None = None
    retry_in: float | None = None  # seconds until then
    state: str | None = None
    version: int | None = None
    term: int | None = None
    agent: Mapping[str, Any] | None = None
    messages: tuple[Mapping[str, Any], ...] | None = None
    key: Mapping[str, Any] | None = None  # the current API key
    schedule: Mapping[str, Any] | None = None
    trigger: Mapping[str, Any] | None = None
    webhook: Mapping[str, Any] | None = None
    pool: Mapping[str, Any] | None = None
    tenant: Mapping[str, Any] | None = None
    member: Mapping[str, Any] | None = None
    secret: str | None = None  # a new or rotated key in full: shown only here
    pauses: tuple[Mapping[str, Any], ...] | None = None  # the remaining pauses
    left: tuple[str, ...] | None = None  # reported and not changed
    next: str | None = None  # of a page: where the next one begins
    changed: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None  # tasks that a plan no longer names; dangling context_refs

    @property
    def ok(self) -> bool:
        return CODES[self.outcome].kind == "ok"
