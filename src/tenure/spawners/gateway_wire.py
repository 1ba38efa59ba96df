"""The JSON between a server and a gateway. Every field of a spawn has our name; some have a second one beside it.

| path | body | answer |
| --- | --- | --- |
| `POST /api/agents/spawn` | the spawn | `{"session": "…"}`, or `{"session": {"sessionKey": "…"}}` |
| `POST /api/agents/status` | `{"action": "status", "sessions": […]}` | `{"sessions": {"…": "running"}}` |
| `POST /api/agents/find` | `{"action": "find", "spawns": […]}` | `{"spawns": {"…": "SESSION"}}`, or null for none |
| `DELETE /api/agents/SESSION` | `{"action": "delete", "session": "…", "graceful": false}` | `{"state": "ended"}` |

Requests are signed as Standard Webhooks are. The signature covers the body and not the path, so each body names its
action: a recorded request for a status cannot be replayed as a deletion.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.spawners.port import SpawnContext, SpawnRequest

SPAWN = "/api/agents/spawn"
STATUS = "/api/agents/status"
FIND = "/api/agents/find"
AGENTS = "/api/agents/"
LARGEST_BODY = limits.WEBHOOK_BYTES
STATES = ("running", "ended", "lost", "unknown")


class StatusRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: str
    sessions: list[str]


class FindRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: str
    spawns: list[str]


class DeleteRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: str
    session: str
    graceful: bool = False


def spawn_body(request: SpawnRequest, offer_until: str) -> bytes:
    """The body of a spawn. `offer_until`: the instant at which the task's offer ends."""
    context = request.context
    fields: dict[str, Any] = msgspec.to_builtins(request)
    fields["offer_until"] = offer_until
    fields |= {"workspaceId": request.tenant, "projectId": request.project, "agentId": request.agent}
    fields["taskId"] = request.task
    fields["context"] |= {
        "taskTitle": context.title, "taskDescription": context.description, "inputContext": _input_of(context.input),
        "checkpointData": context.checkpoint,
    }  # fmt: skip
    body = msgspec.json.encode(fields)
    if len(body) <= LARGEST_BODY:
        return body
    # The agent gets all of it with its claim; the gateway only learns what it is about.
    brief = SpawnContext(title=context.title, description=context.description[:1000])
    return spawn_body(msgspec.structs.replace(request, context=brief), offer_until)


def _input_of(given: Any) -> Any:
    """What the task's author gave as context, where its spec has that beside other fields."""
    inner = given.get("context") if isinstance(given, dict) else None
    return inner if isinstance(inner, dict) else given


def spawn_request(body: bytes) -> SpawnRequest:
    """Raises InvalidInput. Names that are not ours are ignored."""
    try:
        return msgspec.json.decode(body, type=SpawnRequest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not a valid spawn: {error}") from None


def session_of(answer: bytes) -> str | None:
    """The session in an answer to a spawn; None where there is none."""
    try:
        body = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return None
    session = body.get("session") if isinstance(body, dict) else None
    if isinstance(session, dict):
        session = session.get("sessionKey")
    return session if is_session(session) else None


def is_session(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= 300 and value.isprintable()
