"""`json-schema`: the output's data fits a JSON Schema. Settings: `schema`, and `draft` where `$schema` does not say it.

Drafts 4, 6, 7, 2019-09 and 2020-12 (the default). Nothing is fetched: a schema must be self-contained. Patterns are
matched in linear time, so look-around and back references are refused. `format` is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput, TooLarge
from tenure.validators import workers
from tenure.validators.port import Output, Verdict, refused, setting

SETTINGS = ("schema", "draft")
DRAFTS = ("4", "6", "7", "2019-09", "2020-12")
LARGEST_OUTPUT = limits.SCHEMA_OUTPUT_BYTES


class InWorkers:
    """A validator whose checks run in the worker processes: in `pool`, by default the pool of this process."""

    is_quick = True

    def __init__(self, pool: workers.Workers | None = None) -> None:
        self._pool = pool

    def _workers(self) -> workers.Workers:
        return self._pool or workers.shared()


class JsonSchema(InWorkers):
    name = "json-schema"

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        schema, draft = _read(settings)
        reply = self._workers().ask("check_schema", schema, draft)
        if reply.limit is not None:
            raise InvalidInput(
                f"output.settings.schema: {_ended(reply.limit, self._workers().seconds)}", "Make it smaller or simpler."
            )
        if reply.answer is not None and not reply.answer["ok"]:
            raise InvalidInput(f"output.settings.schema: {reply.answer['reasons'][0]}")

    def judge(self, settings: Mapping[str, Any], output: Output) -> Verdict:
        schema, draft = _read(settings)
        if output.is_over(LARGEST_OUTPUT):
            return too_large(LARGEST_OUTPUT)
        reply = self._workers().ask("judge_schema", schema, draft, output.encoded)
        if reply.answer is None:
            return refused([_ended(str(reply.limit), self._workers().seconds)], limit=reply.limit)
        if reply.answer["ok"]:
            return Verdict(True)
        if reply.limit is not None:
            return refused([*reply.answer["reasons"], "there are more errors, too many to collect"], limit=reply.limit)
        return refused(reply.answer["reasons"])


def too_large(most: int) -> Verdict:
    return refused([f"the output has more than {most:,} bytes; submit it as an artifact"], limit="size")


def _read(settings: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Schema and draft, with their size checked first."""
    schema = setting(settings, "schema", (dict, bool), SETTINGS)
    draft = setting(settings, "draft", (str,), SETTINGS, "")
    if draft and draft not in DRAFTS:
        raise InvalidInput(f"output.settings.draft must be one of {', '.join(DRAFTS)} (got {draft[:20]!r})")
    _check_depth(schema)
    encoded = msgspec.json.encode(schema)
    if len(encoded) > limits.SCHEMA_BYTES:
        raise TooLarge(f"output.settings.schema: {len(encoded):,} bytes; at most {limits.SCHEMA_BYTES:,}")
    return encoded, draft.encode()


def _check_depth(schema: Any) -> None:
    level = [schema]
    for _ in range(limits.SCHEMA_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise InvalidInput(f"output.settings.schema: nested more than {limits.SCHEMA_DEPTH} deep")


def _ended(limit: str, seconds: float) -> str:
    if limit == "time":
        return f"the schema could not be checked within {seconds:g} s"
    return "checking by the schema takes too much memory"
