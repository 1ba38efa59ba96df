"""A judge behind Anthropic's endpoint, or a compatible one: POST {url}/v1/messages."""

from __future__ import annotations

from tenure.core import limits
from tenure.validators.judges import http
from tenure.validators.judges.judge_config import Answer, Judge
from tenure.validators.port import Undecided

URL = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"
VERSION = "2023-06-01"
MOST_TOKENS = limits.JUDGE_TOKENS


class AnthropicJudge:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._url = http.checked_url(judge.url or URL, "judges.url") + "/v1/messages"

    def ask(self, system: str, prompt: str) -> Answer:
        key = http.key_of(self._judge.key or KEY)
        body = {
            "model": self._judge.model,
            "max_tokens": MOST_TOKENS,
            "system": system,
            "messages": [{"role": "user", "content": prompt}],
            **self._judge.more,
        }
        headers = {"x-api-key": key, "anthropic-version": VERSION}
        answer = http.asked(self._url, headers, body, self._judge.timeout, key)
        blocks = answer.get("content")
        texts = [http.text_at(block, "text") for block in blocks] if isinstance(blocks, list) else []
        if not any(texts):
            raise Undecided(f"the judge at {self._url} answers without a text", again=True)
        usage = answer.get("usage")
        return Answer(
            "".join(text for text in texts if text),
            http.text_at(answer, "model") or self._judge.model,
            {
                "fresh": http.tokens(usage, "input_tokens"),
                "cached": http.tokens(usage, "cache_read_input_tokens"),
                "written": http.tokens(usage, "cache_creation_input_tokens"),
                "output": http.tokens(usage, "output_tokens"),
            },
        )
