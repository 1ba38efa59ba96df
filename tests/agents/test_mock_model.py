"""The mock model itself: the same script in every dialect, and nothing lost of what it was asked."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.agents.mock_model import MockModel, serve
from tests.agents.script import Mcp, Refuse, Say, Shell, Usage

SCRIPT = (Shell("echo hi"), Mcp("claim", lambda results: {"task": results[0].strip()}), Say("All done."))
USAGE = Usage(fresh=7, cached=5, output=3)


def _anthropic(results: list[str]) -> tuple[str, dict[str, Any]]:
    blocks = [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": r}]} for r in results]
    tools = [{"name": "Bash"}, {"name": "mcp__tenure__claim"}]
    messages = [{"role": "user", "content": "Go."}, {"role": "user", "content": blocks}]
    return "/v1/messages", {"model": "m", "system": [{"text": "Rules."}], "messages": messages, "tools": tools}


def _responses(results: list[str]) -> tuple[str, dict[str, Any]]:
    outputs = [{"type": "function_call_output", "call_id": "x", "output": r} for r in results]
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    inner = [{"type": "function", "name": "claim"}]
    tools = [{"type": "function", "name": "exec_command"}, {"type": "namespace", "name": "mcp__tenure", "tools": inner}]
    return "/v1/responses", {"model": "m", "instructions": "Rules.", "input": [said, *outputs], "tools": tools}


def _chat(results: list[str]) -> tuple[str, dict[str, Any]]:
    outputs = [{"role": "tool", "tool_call_id": "x", "content": r} for r in results]
    said = [{"role": "system", "content": "Rules."}, {"role": "user", "content": "Go."}]
    tools = [{"type": "function", "function": {"name": name}} for name in ("bash", "tenure-claim")]
    return "/v1/chat/completions", {"model": "m", "messages": [*said, *outputs], "tools": tools}


def _gemini(results: list[str]) -> tuple[str, dict[str, Any]]:
    outputs = [{"functionResponse": {"name": "x", "response": {"output": r}}} for r in results]
    contents = [{"role": "user", "parts": [{"text": "Go."}]}, {"role": "user", "parts": outputs}]
    tools = [{"functionDeclarations": [{"name": "run_shell_command"}, {"name": "mcp_tenure_claim"}]}]
    rules = {"parts": [{"text": "Rules."}]}
    return "/v1beta/models/m:generateContent", {"systemInstruction": rules, "contents": contents, "tools": tools}


DIALECTS = {"anthropic": _anthropic, "responses": _responses, "chat": _chat, "gemini": _gemini}


def _post(model: MockModel, path: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(model.url + path, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_results_of_tools_move_the_script_on(dialect: str) -> None:
    with serve(SCRIPT) as model:
        first, second, third = (
            _post(model, *DIALECTS[dialect](results)) for results in ([], ["A-001"], ["A-001", "a receipt"])
        )

    assert "echo hi" in first
    assert "claim" in second
    assert "A-001" in second
    assert "All done." in third


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_that_is_sent_again_gets_the_same_answer(dialect: str) -> None:
    with serve(SCRIPT) as model:
        answers = [_post(model, *DIALECTS[dialect](["A-001"])) for _ in range(2)]

    assert all('"task' in answer or 'task\\"' in answer for answer in answers)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_asked_is_kept(dialect: str) -> None:
    with serve(SCRIPT) as model:
        _post(model, *DIALECTS[dialect](["A-001"]))

    assert "Rules." in model.last.words
    assert "Go." in model.last.words
    assert model.last.model == "m"
    assert model.last.results == ("A-001",)
    assert len(model.last.tool_names) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_streamed_answer_says_the_same_as_a_whole_one(dialect: str) -> None:
    path, body = DIALECTS[dialect](["A-001", "a receipt"])
    path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    with serve(SCRIPT) as model:
        said = _post(model, path, body | {"stream": True})

    events = [line.removeprefix("data: ") for line in said.splitlines() if line.startswith("data: ")]
    assert events
    assert "All done." in said
    assert all(event == "[DONE]" or json.loads(event) for event in events)


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("anthropic", {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 3}),
        ("responses", {"input_tokens": 12, "output_tokens": 3}),
        ("chat", {"prompt_tokens": 12, "completion_tokens": 3}),
        ("gemini", {"promptTokenCount": 12, "cachedContentTokenCount": 5, "candidatesTokenCount": 3}),
    ],
)
def test_tokens_are_counted_as_each_vendor_counts_them(dialect: str, expected: dict[str, int]) -> None:
    with serve(SCRIPT, USAGE) as model:
        answer = json.loads(_post(model, *DIALECTS[dialect]([])))

    usage = answer.get("usage") or answer["usageMetadata"]
    assert expected.items() <= usage.items()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_is_given_as_often_as_the_script_says(dialect: str) -> None:
    with serve([Refuse(429, times=1, retry_after=3)]) as model:
        with pytest.raises(urllib.error.HTTPError) as refused:
            _post(model, *DIALECTS[dialect]([]))
        again = _post(model, *DIALECTS[dialect]([]))

    assert refused.value.code == 429
    assert refused.value.headers["Retry-After"] == "3"
    refused.value.close()
    assert "It goes again." in again


def test_a_request_without_tools_does_not_move_the_script() -> None:
    path, body = _chat([])
    with serve(SCRIPT) as model:
        said = _post(model, path, body | {"tools": []})

    assert "echo hi" not in said
    assert len(model.housekeeping) == 1
    assert model.asked == []


def test_a_tool_that_is_not_offered_fails_the_test_that_scripted_it() -> None:
    def play() -> None:
        with serve([Mcp("claim", server="another")]) as model:
            with pytest.raises(urllib.error.HTTPError) as refused:
                _post(model, *_chat([]))
            refused.value.close()

    with pytest.raises(AssertionError, match="not among the tools offered: bash, tenure-claim"):
        play()


def test_a_page_that_the_model_does_not_have_is_reported() -> None:
    with serve(SCRIPT) as model:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{model.url}/v1/models")
        refused.value.close()

    assert model.strays == ["GET /v1/models"]
