"""Judges behind an endpoint: Anthropic's or OpenAI's, or a compatible one.

A question is verified, bounded in time and size, and no message contains any of the key.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.validators.judges.judge_config import Answer, Judge
from tenure.validators.port import Undecided, cut

if TYPE_CHECKING:
    import httpx2

LOOPBACK = ("localhost", "127.0.0.1", "::1")
PASSING = (408, 409, 425, 429, 500, 502, 503, 504, 529)  # temporary statuses


class _Endpoint:
    URL: str
    PATH: str
    KEY: str  # the variable that has the key, unless the judge names another

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._url = checked_url(judge.url or self.URL, "judges.url") + self.PATH

    def ask(self, system: str, prompt: str) -> Answer:
        judge, key = self._judge, key_of(self._judge.key or self.KEY)
        body = {"model": judge.model, **self.body(system, prompt), **judge.more}
        answer = asked(self._url, self.headers(key), body, judge.timeout, key)
        text = self.text(answer)
        if text is None:
            raise Undecided(f"the judge at {self._url} answers without a text", again=True)
        return Answer(text, text_at(answer, "model") or judge.model, self.usage(answer.get("usage")))

    def headers(self, key: str) -> dict[str, str]:
        raise NotImplementedError

    def body(self, system: str, prompt: str) -> dict[str, Any]:
        raise NotImplementedError

    def text(self, answer: dict[str, Any]) -> str | None:
        raise NotImplementedError

    def usage(self, given: Any) -> dict[str, int]:
        raise NotImplementedError


class AnthropicJudge(_Endpoint):
    URL, PATH, KEY = "https://api.anthropic.com", "/v1/messages", "ANTHROPIC_API_KEY"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, system: str, prompt: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        return {"max_tokens": limits.JUDGE_TOKENS, "system": system, "messages": messages}

    def text(self, answer: dict[str, Any]) -> str | None:
        blocks = answer.get("content")
        texts = [text_at(block, "text") for block in blocks] if isinstance(blocks, list) else []
        return "".join(text for text in texts if text) or None

    def usage(self, given: Any) -> dict[str, int]:
        return {
            "fresh": tokens(given, "input_tokens"),
            "cached": tokens(given, "cache_read_input_tokens"),
            "written": tokens(given, "cache_creation_input_tokens"),
            "output": tokens(given, "output_tokens"),
        }


class OpenAIJudge(_Endpoint):
    URL, PATH, KEY = "https://api.openai.com/v1", "/chat/completions", "OPENAI_API_KEY"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def body(self, system: str, prompt: str) -> dict[str, Any]:
        # Nothing else: some endpoints require `max_tokens` or `temperature`, others refuse them.
        return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}]}

    def text(self, answer: dict[str, Any]) -> str | None:
        return text_at(answer, "choices", 0, "message", "content")

    def usage(self, given: Any) -> dict[str, int]:
        cached = tokens(given, "prompt_tokens_details", "cached_tokens")
        fresh = max(0, tokens(given, "prompt_tokens") - cached)  # the one counts the other too
        return {"fresh": fresh, "cached": cached, "written": 0, "output": tokens(given, "completion_tokens")}


def checked_url(url: str, what: str) -> str:
    """https://, or http:// on this machine: a key is never sent unencrypted."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)
    if not host or not is_safe or parts.username is not None or parts.query or parts.fragment:
        raise InvalidInput(
            f"{what}: {cut(url, 80)!r} is not a valid address of an endpoint", "Write it as https://host/path."
        )
    return url.rstrip("/")


def key_of(name: str) -> str:
    key = os.environ.get(name, "")
    if not key:
        raise Undecided(f"the judge's key is missing: {name} is not set")
    return key


def asked(url: str, headers: Mapping[str, str], body: Any, seconds: float, key: str) -> dict[str, Any]:
    """The answer's JSON object; raises Undecided for everything else."""
    import httpx2

    until = time.monotonic() + seconds
    try:
        with (
            httpx2.Client(
                timeout=httpx2.Timeout(seconds, connect=min(seconds, 10.0)),
                follow_redirects=False,  # the key is for this address only
                trust_env=urlsplit(url).hostname not in LOOPBACK,
            ) as client,
            client.stream("POST", url, headers=headers, json=body) as response,
        ):
            content = _content(response, until)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Undecided(f"the judge at {url} cannot be reached: {type(error).__name__}", again=True) from error
    if response.status_code != 200:
        raise _trouble(url, response, content, key)
    try:
        answer = msgspec.json.decode(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Undecided(f"the judge at {url} did not answer in JSON", again=True)
    return answer


def _content(response: httpx2.Response, until: float) -> bytes:
    content = bytearray()
    for part in response.iter_bytes():
        content += part
        if len(content) > limits.JUDGE_REPLY_BYTES:
            raise Undecided(
                f"the judge at {response.url} answers with more than {limits.JUDGE_REPLY_BYTES:,} bytes", again=True
            )
        if time.monotonic() > until:  # a slow trickle of bytes stays within every other limit
            raise Undecided(f"the judge at {response.url} takes too long to answer", again=True)
    return bytes(content)


def _trouble(url: str, response: httpx2.Response, content: bytes, key: str) -> Undecided:
    again = response.status_code in PASSING
    why = ""
    if response.status_code not in (401, 403):  # some answers repeat a part of the key
        text = content[:2000].decode(errors="replace").replace(key, "…")
        why = ": " + cut(" ".join(text.split()), 200)
    return Undecided(
        f"the judge at {url} answers {response.status_code}{why}", again=again, retry_after=_retry_after(response)
    )


def _retry_after(response: httpx2.Response) -> float | None:
    header = response.headers.get("retry-after", "")
    return min(float(header), limits.JUDGE_RETRY_MAX) if header.isascii() and header.isdigit() else None


def text_at(answer: Any, *path: str | int) -> str | None:
    """The text at this path, if there is one."""
    for step in path:
        try:
            answer = answer[step]
        except (KeyError, IndexError, TypeError):
            return None
    return answer if isinstance(answer, str) else None


def tokens(usage: Any, *path: str) -> int:
    """A count of tokens, 0 where there is none."""
    for step in path:
        usage = usage.get(step) if isinstance(usage, dict) else None
    return usage if isinstance(usage, int) and not isinstance(usage, bool) and usage > 0 else 0
