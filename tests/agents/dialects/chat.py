"""OpenAI Chat Completions: OpenCode and Copilot CLI, by a provider of one's own. `prompt_tokens` contain the cached."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.agents.script import Answer, Asked, Offered, as_text

NAME = "chat"


def read(body: Mapping[str, Any]) -> Asked:
    texts: dict[str, list[str]] = {}
    for message in body.get("messages", ()):
        role = "system" if message["role"] == "developer" else message["role"]
        texts.setdefault(role, []).append(as_text(message.get("content")))
    functions = [each["function"] for each in body.get("tools", ())]
    return Asked(
        dialect=NAME,
        model=body.get("model", ""),
        system="\n".join(texts.get("system", ())),
        said=tuple(texts.get("user", ())),
        tools=tuple(Offered(each["name"], "", each.get("description", "")) for each in functions),
        results=tuple(texts.get("tool", ())),
        is_stream=bool(body.get("stream")),
        body=body,
    )


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text or None} | _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer), "logprobs": None}
    return _frame("chat.completion", answer, asked) | {"choices": [choice], "usage": _usage(answer)}


def stream(answer: Answer, asked: Asked) -> Iterator[tuple[str, dict[str, Any]]]:
    frame = _frame("chat.completion.chunk", answer, asked)
    delta = {"role": "assistant", "content": answer.text or None} | _calls(answer)
    for fields, reason in ((delta, None), ({}, _reason(answer))):
        yield "", frame | {"choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}
    yield "", frame | {"choices": [], "usage": _usage(answer)}


def error(status: int) -> dict[str, Any]:
    kind = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status, "server_error")
    return {"error": {"message": f"the mock model answers {status}", "type": kind, "code": kind, "param": None}}


def _frame(kind: str, answer: Answer, asked: Asked) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": 0, "model": asked.model}


def _calls(answer: Answer) -> dict[str, Any]:
    if answer.call is None:
        return {}
    function = {"name": answer.call.name, "arguments": json.dumps(dict(answer.call.arguments))}
    return {"tool_calls": [{"index": 0, "id": answer.call.id, "type": "function", "function": function}]}


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.call else "stop"


def _usage(answer: Answer) -> dict[str, Any]:
    prompt = answer.usage.fresh + answer.usage.cached
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer.usage.output,
        "total_tokens": prompt + answer.usage.output,
        "prompt_tokens_details": {"cached_tokens": answer.usage.cached},
    }
