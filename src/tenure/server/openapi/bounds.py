"""Bounds of values beyond their types, as JSON Schema: taken from the code that checks them, never repeated.

`OF_FIELD` finds a field by `Struct.field`, else by its name alone, since a name means the same everywhere. All bounds
are enforced: the fuzz test sends values that violate them and expects a refusal. Bounds that depend on stored data are
not included.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenure.core import (
    budgets,
    graph,
    ids,
    inputs,
    landings,
    lifecycle,
    limits,
    priority,
    processes,
    reservations,
    retry,
    roles,
    team,
    tenant_limits,
    tenants,
    usage,
)
from tenure.core.events import LEVELS
from tenure.engine.budgets.budget_verbs import ONCE
from tenure.engine.reads.overview import LONGEST as MOST_MINUTES
from tenure.engine.reads.task_view import FIELDS
from tenure.engine.reads.tasks import ORDERS
from tenure.engine.verbs import api_keys
from tenure.engine.verbs.claim import MOST_AT_ONCE
from tenure.engine.verbs.usage import BY

Schema = dict[str, Any]


def _one_of(words: Iterable[str]) -> Schema:
    return {"enum": list(words)}


def _whole(pattern: str) -> str:
    """A pattern that must match the whole text, for JSON Schema."""
    return f"^(?:{pattern})$"


NAME: Schema = {"pattern": _whole(ids.NAME)}
LISTED: Schema = {"maxItems": inputs.MOST_LISTED, "items": {"minLength": 1, "maxLength": 200, "pattern": "^[^,|]+$"}}
SHORT: Schema = {"maxLength": inputs.LONGEST_NAME}
NAMED: Schema = {"minLength": 1, **SHORT}
NOT_BELOW: Schema = {"minimum": 0}
LEASE: Schema = {"minimum": inputs.MIN_LEASE, "maximum": inputs.LONGEST_LEASE}
TOKENS: Schema = {"minimum": 0, "maximum": usage.MOST_TOKENS}
TEXT: Schema = {"maxLength": inputs.LARGEST_TEXT}
SAID: Schema = {"minLength": 1, "maxLength": inputs.LARGEST_TEXT}
COMMIT: Schema = {"pattern": _whole(landings.COMMIT)}
COUNT: Schema = {"minimum": 0, "maximum": inputs.LARGEST_NUMBER}

BOOST = f"points per minute: one of {', '.join(f'{boost:g}' for boost in priority.BOOSTS)}"

OF_FIELD: dict[str, Schema] = {
    **dict.fromkeys(inputs.NAMES, SHORT),
    **dict.fromkeys(("agent", "session", "sender", "holder"), NAME),
    **dict.fromkeys(usage.TOKENS, TOKENS),
    **dict.fromkeys(("capabilities", "models", "tags", "touches", "patterns"), LISTED),
    **dict.fromkeys(("message", "summary"), TEXT),
    **dict.fromkeys(("text", "question"), SAID),
    "lease": LEASE,
    "duration": {"minimum": 0, "maximum": usage.LONGEST},
    "percent": {"minimum": 0, "maximum": 100},
    "n": {"minimum": 1, "maximum": MOST_AT_ONCE},
    "on_failure": _one_of(graph.ON_FAILURE),
    "error_class": _one_of(retry.CLASSES),
    "mode": _one_of(reservations.MODES),
    "health": _one_of(team.HEALTH_WORDS),
    "role": _one_of(roles.ROLES),
    "code": {"pattern": _whole(ids.TRACK)},
    "track": {"pattern": _whole(ids.TRACK)},
    "pid": {"minimum": 1, "maximum": processes.LARGEST_PID},
    "Process.start": COUNT,
    "old": COMMIT,
    "new": COMMIT,
    "Send.type": _one_of(team.MESSAGE_TYPES),
    "NewTask.title": {"minLength": 1, "maxLength": inputs.LONGEST_TITLE},
    "NewTask.description": {"maxLength": inputs.LARGEST_DESCRIPTION},
    "NewTask.on_lost": _one_of(inputs.ON_LOST),
    "NewTask.max_attempts": {"minimum": 1, "maximum": inputs.MOST_ATTEMPTS},
    "NewTask.depends_on": {"maxItems": inputs.MOST_DEPENDENCIES},
    "NewTask.type": LISTED["items"],
    "RetryPolicy.strategy": _one_of(retry.STRATEGIES),
    "RetryPolicy.retry_on": {"items": _one_of(retry.CLASSES)},
    "RetryPolicy.no_retry_on": {"items": _one_of(retry.CLASSES)},
    "RetryPolicy.jitter": {"minimum": 0, "maximum": 1},
    "RetryWords.strategy": _one_of(retry.STRATEGIES),
    "RetryWords.retry_on": {"items": _one_of((*retry.CLASSES, *retry.CLASS_ALIASES))},
    "RetryWords.no_retry_on": {"items": _one_of((*retry.CLASSES, *retry.CLASS_ALIASES))},
    **dict.fromkeys(("done_in", "retry_after", "initial_delay", "cap"), NOT_BELOW),
    **dict.fromkeys(("NewTrack.name", "DefineTrack.name", "NewTask.name", "NewTask.idempotency_key"), NAMED),
    "CreateKey.name": {"minLength": 1, "maxLength": api_keys.LONGEST_NAME},
    "CreateKey.projects": LISTED,
    "AddTenant.tenant": {"pattern": _whole(ids.TENANT), "maxLength": limits.TENANT_NAME},
    **{f"{name}.tier": _one_of(tenant_limits.TIERS) for name in ("AddTenant", "ChangeTenant")},
    "ChangeTenant.limits": {"propertyNames": _one_of(tenant_limits.TIERS["default"])},
    **{f"{name}Member.role": _one_of(tenants.MEMBER_ROLES) for name in ("Invite", "Change")},
    **{f"{name}Member.projects": LISTED for name in ("Invite", "Change")},
    "InviteMember.user": {"minLength": 1, "maxLength": limits.JWT_SUBJECT},
    "expires_in": {"minimum": 1},
    "grace": {"minimum": 0, "maximum": api_keys.LONGEST_GRACE},
    "max_concurrent_tasks": {"minimum": 1},
    "SetBudget.period": _one_of([*budgets.PERIODS, ONCE]),
    "SetBudget.tokens": {"minimum": 0, "maximum": budgets.MOST_TOKENS},
    **{name: {"minLength": 1} for name in ("SetBudget.usd", "SetBudget.default_estimate", "MoveBudget.amount")},
    # Not an enum: generators of clients refuse one of fractions.
    "boost": {"minimum": min(priority.BOOSTS), "maximum": max(priority.BOOSTS), "description": BOOST},
    "Plan.tasks": {"minItems": 1, "maxItems": inputs.LARGEST_PLAN},
    "Spawn.tasks": {"minItems": 1, "maxItems": inputs.LARGEST_PLAN},
    "Reserve.patterns": {"minItems": 1, **LISTED},
    "limits": {"propertyNames": _one_of([*inputs.LIMITS]), "additionalProperties": {"type": "integer", **COUNT}},
}
OF_QUERY: dict[str, Schema] = {
    "state": {"items": _one_of(lifecycle.STATES)},
    "status": {"items": _one_of(team.STATUSES)},
    "level": _one_of(LEVELS),
    "fields": {"items": _one_of(FIELDS)},
    "order": _one_of([sign + name for name in ORDERS for sign in ("", "-")]),
    "by": _one_of(BY),
    "minutes": {"minimum": 1, "maximum": MOST_MINUTES},
}


def bounded(schema: Schema, struct: str, field: str) -> Schema:
    """The schema of a command's field, with its bounds."""
    return _within(schema, OF_FIELD.get(f"{struct}.{field}", OF_FIELD.get(field, {})))


def bounded_query(schema: Schema, field: str, largest: int) -> Schema:
    """The same for a query; most of its fields have no bounds. `largest`: its largest `limit`."""
    bound = {"minimum": 1, "maximum": largest} if field == "limit" else OF_QUERY.get(field, {})
    return _within(schema, bound)


_FOR = {
    "minLength": "string", "maxLength": "string", "pattern": "string", "minimum": "number", "maximum": "number",
    "minItems": "array", "maxItems": "array", "items": "array", "propertyNames": "object",
    "additionalProperties": "object",
}  # fmt: skip


def _within(schema: Schema, bound: Schema) -> Schema:
    """Add each bound to the type that it applies to."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [_within(one, bound) for one in schema["anyOf"]]}
    kind = "number" if schema.get("type") == "integer" else schema.get("type")
    fits = {word: value for word, value in bound.items() if _FOR.get(word, kind) == kind}
    if "items" in fits:
        fits["items"] = _within(schema.get("items", {}), fits["items"])
    return schema if kind == "null" or "$ref" in schema else {**schema, **fits}
