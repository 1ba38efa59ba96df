"""A judge behind an endpoint that is compatible with OpenAI's: POST {url}/chat/completions."""

from __future__ import annotations

from tenure.validators.judges import http
from tenure.validators.judges.judge_config import Answer, Judge
from tenure.validators.port import Undecided

URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"


class OpenAIJudge:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._url = http.checked_url(judge.url or URL, "judges.url") + "/chat/completions"

    def ask(self, system: str, prompt: str) -> Answer:
        key = http.key_of(self._judge.key or KEY)
        # Nothing else: some endpoints require `max_tokens` or `temperature`, others refuse them.
        body = {
            "model": self._judge.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            **self._judge.more,
        }
        answer = http.asked(self._url, {"authorization": f"Bearer {key}"}, body, self._judge.timeout, key)
        text = http.text_at(answer, "choices", 0, "message", "content")
        if text is None:
            raise Undecided(f"the judge at {self._url} answers without a text", again=True)
        usage = answer.get("usage")
        cached = http.tokens(usage, "prompt_tokens_details", "cached_tokens")
        return Answer(
            text,
            http.text_at(answer, "model") or self._judge.model,
            {
                "fresh": max(0, http.tokens(usage, "prompt_tokens") - cached),  # the one counts the other too
                "cached": cached,
                "written": 0,
                "output": http.tokens(usage, "completion_tokens"),
            },
        )
