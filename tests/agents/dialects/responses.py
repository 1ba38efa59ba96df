"""OpenAI Responses: Codex. `input_tokens` contain the cached ones."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.agents.script import Answer, Asked, Offered, as_text

NAME = "responses"


def read(body: Mapping[str, Any]) -> Asked:
    said: list[str] = []
    results: list[str] = []
    given = body.get("input", ())
    for item in [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind.endswith("_call_output"):
            results.append(as_text(item.get("output")))
        elif kind == "message" and item["role"] != "assistant":
            said.append(as_text(item["content"]))
    return Asked(
        dialect=NAME,
        model=body.get("model", ""),
        system=body.get("instructions") or "",
        said=tuple(said),
        tools=tuple(_offered(body.get("tools", ()))),
        results=tuple(results),
        is_stream=bool(body.get("stream")),
        body=body,
    )


def _offered(tools: Any) -> Iterator[Offered]:
    for each in tools:
        if each["type"] == "namespace":
            for inner in each["tools"]:
                yield Offered(inner["name"], each["name"], inner.get("description", ""))
        elif each["type"] == "function":
            yield Offered(each["name"], "", each.get("description", ""))


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": asked.model,
        "output": [_item(answer)],
        "usage": {
            "input_tokens": answer.usage.fresh + answer.usage.cached,
            "input_tokens_details": {"cached_tokens": answer.usage.cached},
            "output_tokens": answer.usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.usage.fresh + answer.usage.cached + answer.usage.output,
        },
    }


def stream(answer: Answer, asked: Asked) -> Iterator[tuple[str, dict[str, Any]]]:
    response = whole(answer, asked)
    started = response | {"status": "in_progress", "output": [], "usage": None}
    item = response["output"][0]
    yield from _event("response.created", response=started)
    if answer.call:
        yield from _event("response.output_item.added", output_index=0, item=item | {"arguments": ""})
        yield from _event(
            "response.function_call_arguments.done", output_index=0, item_id=item["id"], arguments=item["arguments"]
        )
    else:
        at = {"output_index": 0, "content_index": 0, "item_id": item["id"]}
        yield from _event("response.output_item.added", output_index=0, item=item | {"content": []})
        yield from _event("response.content_part.added", **at, part=item["content"][0] | {"text": ""})
        yield from _event("response.output_text.delta", **at, delta=answer.text)
        yield from _event("response.output_text.done", **at, text=answer.text)
        yield from _event("response.content_part.done", **at, part=item["content"][0])
    yield from _event("response.output_item.done", output_index=0, item=item)
    yield from _event("response.completed", response=response)


def error(status: int) -> dict[str, Any]:
    kind = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status, "server_error")
    return {"error": {"message": f"the mock model answers {status}", "type": kind, "code": kind, "param": None}}


def _event(name: str, **fields: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    yield name, {"type": name, **fields}


def _item(answer: Answer) -> dict[str, Any]:
    if answer.call is None:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        whose = {"type": "message", "id": f"msg_{answer.id}", "role": "assistant", "status": "completed"}
        return whose | {"content": [part]}
    call = answer.call
    item = {
        "type": "function_call",
        "id": f"fc_{answer.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": json.dumps(dict(call.arguments)),
        "status": "completed",
    }
    return item | ({"namespace": call.namespace} if call.namespace else {})
