"""Gemini generateContent: Gemini CLI. `promptTokenCount` contains the cached ones."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.agents.script import Answer, Asked, Offered, as_text

NAME = "gemini"


def read(body: Mapping[str, Any]) -> Asked:
    said: list[str] = []
    results: list[str] = []
    for content in body.get("contents", ()):
        for part in content.get("parts", ()):
            if "functionResponse" in part:
                results.append(as_text(part["functionResponse"].get("response")))
            elif "text" in part and content.get("role") != "model":
                said.append(part["text"])
    declared = [each for group in body.get("tools", ()) for each in group.get("functionDeclarations", ())]
    return Asked(
        dialect=NAME,
        model=body.get("model", ""),
        system=as_text((body.get("systemInstruction") or {}).get("parts")),
        said=tuple(said),
        tools=tuple(Offered(each["name"], "", each.get("description", "")) for each in declared),
        results=tuple(results),
        is_stream=bool(body.get("stream")),
        body=body,
    )


def whole(answer: Answer, asked: Asked) -> dict[str, Any]:
    if answer.call:
        part: dict[str, Any] = {
            "functionCall": {
                "id": answer.call.id,
                "name": answer.call.name,
                "args": dict(answer.call.arguments),
            }
        }
    else:
        part = {"text": answer.text}
    prompt = answer.usage.fresh + answer.usage.cached
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": answer.usage.cached,
            "candidatesTokenCount": answer.usage.output,
            "totalTokenCount": prompt + answer.usage.output,
        },
        "modelVersion": asked.model,
        "responseId": answer.id,
    }


def stream(answer: Answer, asked: Asked) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "", whole(answer, asked)


def error(status: int) -> dict[str, Any]:
    kind = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}.get(status, "INTERNAL")
    return {"error": {"code": status, "message": f"the mock model answers {status}", "status": kind}}
