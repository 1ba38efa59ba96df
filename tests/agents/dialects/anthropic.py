"""Anthropic Messages: Claude Code. Cache reads are counted apart from `input_tokens`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.agents.script import Answer, Asked, Offered, as_text

NAME = "anthropic"


def read(body: Mapping[str, Any]) -> Asked:
    said: list[str] = []
    results: list[str] = []
    for message in body.get("messages", ()):
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                results.append(as_text(block.get("content")))
            elif block["type"] == "text" and message["role"] != "assistant":
                said.append(block["text"])
    return Asked(
        dialect=NAME,
        model=body.get("model", ""),
        system=as_text(body.get("system")),
        said=tuple(said),
        tools=tuple(Offered(each["name"], "", each.get("description", "")) for each in body.get("tools", ())),
        results=tuple(results),
        is_stream=bool(body.get("stream")),
        body=body,
    )


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [_block(answer)],
        "stop_reason": "tool_use" if answer.call else "end_turn",
        "stop_sequence": None,
        "usage": _usage(answer),
    }


def stream(answer: Answer, asked: Asked) -> Iterator[tuple[str, dict[str, Any]]]:
    message = whole(answer, asked)
    started = message | {"content": [], "stop_reason": None, "usage": _usage(answer) | {"output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": started}
    block = message["content"][0]
    if answer.call:
        empty = block | {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty = block | {"text": ""}
        delta = {"type": "text_delta", "text": answer.text}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": empty}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": _usage(answer)}
    yield "message_stop", {"type": "message_stop"}


def error(status: int) -> dict[str, Any]:
    kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": f"the mock model answers {status}"}}


def _block(answer: Answer) -> dict[str, Any]:
    if answer.call is None:
        return {"type": "text", "text": answer.text}
    call = answer.call
    return {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": dict(call.arguments)}


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": answer.usage.fresh,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": answer.usage.cached,
        "output_tokens": answer.usage.output,
    }
