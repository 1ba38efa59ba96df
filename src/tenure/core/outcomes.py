"""Answers. One struct for all of them, so that every interface renders one shape; unset fields are left out.

`CODES` is the one table: code → (how it counts, what it means). Interfaces map the kind to an exit code or an
HTTP status; the reference page is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec


class Code(NamedTuple):
    kind: str  # ok, nothing, held, stale, denied, invalid, missing
    meaning: str


CODES: dict[str, Code] = {
    "OK": Code("ok", "done"),
    "CREATED": Code("ok", "made"),
    "EXISTS": Code("ok", "it was there already"),
    "UPDATED": Code("ok", "changed"),
    "UNCHANGED": Code("ok", "it was so already"),
    "GRANTED": Code("ok", "the task is yours; the receipt proves it"),
    "RENEWED": Code("ok", "the lease was lengthened"),
    "ACCEPTED": Code("ok", "the result counts"),
    "VALIDATING": Code("ok", "the result is being checked"),
    "REVIEW": Code("ok", "the result is kept and waits for a person: it took far more than it changed"),
    "ELECTED": Code("ok", "you lead, with this term"),
    "NO_TASK": Code("nothing", "nothing that this agent may take now"),
    "DENIED_ACTIVE_CLAIM": Code("held", "another claim holds the task"),
    "DENIED_COMPLETED": Code("denied", "the task is completed"),
    "DENIED_NOT_READY": Code("denied", "the task waits for something"),
    "DENIED_CAPABILITY": Code("denied", "the agent lacks a capability, or the region is another"),
    "DENIED_BUDGET": Code("denied", "the budget does not allow it"),
    "DENIED_LIMIT": Code("denied", "a limit is reached"),
    "DENIED_CONFLICT": Code("denied", "what the task touches or needs is held"),
    "DENIED_OFFERED": Code("denied", "the task is held out to another agent for now"),
    "DENIED_PAUSED": Code("denied", "the task is paused, or its line is stopped"),
    "DENIED_CANCELLED": Code("denied", "the task is cancelled"),
    "DENIED_DEAD_LETTERED": Code("denied", "the task is a dead letter and waits for a person"),
    "DENIED_STATE": Code("denied", "the task's state does not allow this"),
    "DENIED_AGENT": Code("denied", "an operator has terminated the agent"),
    "DENIED_LEADER": Code("held", "somebody else leads"),
    "NOT_FOUND": Code("missing", "no such task here"),
    "STALE_EPOCH": Code("stale", "the receipt is of an earlier epoch of the store"),
    "STALE_GENERATION": Code("stale", "a later claim took over"),
    "FUTURE_GENERATION": Code("stale", "the store knows no such generation"),
    "SESSION_MISMATCH": Code("stale", "the generation is current, but this is not its receipt"),
    "STALE_TERM": Code("stale", "a later leader took over"),
    "ALREADY_EXPIRED": Code("stale", "the claim expired; take the task again and go on"),
    "NO_CLAIM": Code("stale", "the claim has ended"),
    "TASK_ALREADY_COMPLETED": Code("stale", "the task has its accepted result"),
    "TASK_CANCELLED": Code("stale", "the task was cancelled"),
    "VERSION_CONFLICT": Code("invalid", "the task changed since that version"),
    "CHANGED": Code("invalid", "the description was changed since the holder last saw it; the claim stays"),
    "INVALID_OUTPUT": Code("invalid", "the output is not what the task asked for"),
    "TEMPLATE_FAILED": Code("invalid", "what a trigger's template asks for cannot be made"),
    "CANNOT_UNDO": Code("denied", "the rows were changed since; nothing was done"),
}


class Outcome(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What happened and why. `outcome` is a key of CODES; `message` states the fact, `hint` the way on."""

    outcome: str
    message: str = ""
    hint: str | None = None
    command_id: str | None = None  # for undo
    again: bool = False  # a repeat: this is the answer of the first time

    task: Mapping[str, Any] | None = None  # the task as it now is
    tasks: tuple[Mapping[str, Any], ...] | None = None
    claims: tuple[Outcome, ...] | None = None  # of claim_next with n > 1
    generation: int | None = None
    receipt: str | None = None
    lease_until: int | None = None
    lease: float | None = None  # seconds until then: programs use this one
    attempt: int | None = None
    models: tuple[str, ...] | None = None
    model: str | None = None  # the one to use for this attempt; None where only the tier is known
    tier: str | None = None  # of models: small, middle or top
    why: str | None = None  # this model, or tier
    inputs: dict[str, Any] | None = None  # outputs of dependencies and of context_refs
    checkpoint: Mapping[str, Any] | None = None
    holder: str | None = None
    yours: bool | None = None
    waits_for: tuple[str, ...] | None = None
    conflict: str | None = None
    counts: dict[str, int] | None = None  # of NO_TASK: why nothing was offered
    unfinished: tuple[str, ...] | None = None  # what this session still holds

    directive: str | None = None  # continue, warn, changed, pause, cancel, abort, terminated
    directive_text: str | None = None
    brief: int | None = None  # of a changed task: the number of its description
    diff: str | None = None  # and what has changed in it since the holder last saw it
    mail: int | None = None
    current_generation: int | None = None
    work_lost: bool | None = None
    work_product: str | None = None
    result: str | None = None
    reasons: tuple[str, ...] | None = None  # of a verdict: what to mend, at most five
    validation: Mapping[str, Any] | None = None  # the check that was taken, or that a result waits for
    usage: Mapping[str, Any] | None = None  # what this claim has cost by now
    late: bool | None = None  # the receipt is stale: the usage is booked, but not against the task
    landings: tuple[Mapping[str, Any], ...] | None = None  # what the task had recorded before, newest first
    artifact: Mapping[str, Any] | None = None  # the one that was put
    artifacts: tuple[Mapping[str, Any], ...] | None = None  # of a claim: what earlier claims of the task have put
    budget: Mapping[str, Any] | None = None  # as it now is
    shortage: Mapping[str, Any] | None = None  # which budget does not allow it, what is missing, and what to do
    retry_at: int | None = None
    retry_in: float | None = None  # seconds until then
    state: str | None = None
    version: int | None = None
    term: int | None = None
    agent: Mapping[str, Any] | None = None
    messages: tuple[Mapping[str, Any], ...] | None = None
    key: Mapping[str, Any] | None = None  # an API key as it now is
    schedule: Mapping[str, Any] | None = None
    trigger: Mapping[str, Any] | None = None
    secret: str | None = None  # the whole of a new or rotated key: shown this once
    pauses: tuple[Mapping[str, Any], ...] | None = None  # what still holds the task back
    left: tuple[str, ...] | None = None  # what was reported and left alone
    changed: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None  # tasks that a plan no longer names; context_refs that name nothing

    @property
    def ok(self) -> bool:
        return CODES[self.outcome].kind == "ok"
