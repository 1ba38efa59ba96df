"""`regex`: the output matches a regular expression somewhere; anchor it with `^` and `$` to match the whole.

Settings: `pattern`, and `of`: `data` (a text, or else its JSON) or `summary`. The syntax is that of JSON Schema,
without look-around and back references: so the time is linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput, TooLarge
from tenure.validators.port import Output, Verdict, cut, refused, setting
from tenure.validators.schemas import LARGEST_OUTPUT, InWorkers, too_large

SETTINGS = ("pattern", "of")
OF = ("data", "summary")


class Regex(InWorkers):
    name = "regex"

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        pattern, _ = _read(settings)
        schema = msgspec.json.encode({"type": "string", "pattern": pattern})
        reply = self._workers().ask("check_schema", schema, b"2020-12")
        if reply.answer is None or not reply.answer["ok"]:
            raise InvalidInput(
                f"output.settings.pattern: {cut(pattern, 80)!r} is not a regular expression that can be matched here",
                "Look-around and back references are not supported, and a repetition is at most some thousands.",
            )

    def judge(self, settings: Mapping[str, Any], output: Output) -> Verdict:
        pattern, of = _read(settings)
        if of == "data" and output.is_over(LARGEST_OUTPUT):
            return too_large(LARGEST_OUTPUT)
        text = output.text if of == "data" else output.summary
        # a lone surrogate is neither valid UTF-8 nor valid JSON
        reply = self._workers().ask("judge_regex", pattern.encode(), text.encode(errors="replace"))
        if reply.limit is not None or reply.answer is None:
            limit = reply.limit or "time"
            return refused([f"the {of} could not be matched within {self._workers().seconds:g} s"], limit=limit)
        if reply.answer["ok"]:
            return Verdict(True)
        return refused([f"the {of} does not match {cut(pattern, 200)}", *reply.answer.get("reasons", ())])


def _read(settings: Mapping[str, Any]) -> tuple[str, str]:
    pattern = setting(settings, "pattern", (str,), SETTINGS)
    of = setting(settings, "of", (str,), SETTINGS, "data")
    if of not in OF:
        raise InvalidInput(f"output.settings.of must be one of {', '.join(OF)} (got {of[:20]!r})")
    if len(pattern) > limits.PATTERN:
        raise TooLarge(f"output.settings.pattern: {len(pattern)} characters; at most {limits.PATTERN}")
    return pattern, of
