"""Tokens that an agent has used since an instant, from the transcript that the agent itself writes.

Claude Code writes the usage of each message, once a block of it: a message counts once, by its id. Gemini CLI does the
same, Copilot CLI has a line for each request. Codex writes running totals of the session. OpenCode names no file: our
plug-in writes its messages to one. Other lines, and files of another form, are passed over. The totals are those of a
period, so that reporting them twice books nothing twice.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.commands import Totals

LARGEST = limits.TRANSCRIPT_READ
_CLAUDE = {
    "fresh": "input_tokens", "cached": "cache_read_input_tokens", "written": "cache_creation_input_tokens",
    "output": "output_tokens",
}  # fmt: skip


class Spent(NamedTuple):
    """The usage of one message; `id` is (session, message)."""

    id: tuple[str, str]
    model: str
    at: float  # seconds
    tokens: dict[str, int]


def totals_between(path: str, since: float, until: float | None = None) -> tuple[Totals, ...]:
    """What each model used from `since` on, and before `until`; nothing where the file cannot be read."""
    found: dict[tuple[str, str], Spent] = {}
    for spent in _messages(path):
        found[spent.id] = spent  # the last block of a message has its whole usage
    sums: dict[str, dict[str, int]] = {}
    for spent in found.values():
        if spent.at >= since and (until is None or spent.at < until):
            kept = sums.setdefault(spent.model, dict.fromkeys(_CLAUDE, 0))
            for name, count in spent.tokens.items():
                kept[name] += count
    return tuple(
        msgspec.convert({"model": model, **tokens}, Totals) for model, tokens in sums.items() if any(tokens.values())
    )


def model_in(path: str) -> str | None:
    """The last model that a transcript of Codex names."""
    payloads = (line.get("payload") for line in _lines(path))
    found = [str(one["model"]) for one in payloads if isinstance(one, dict) and one.get("model")]
    return found[-1] if found else None


def _messages(path: str) -> Iterator[Spent]:
    model, before = "", dict.fromkeys(_CLAUDE, 0)
    for number, line in enumerate(_lines(path)):
        if (spent := _of_gemini(line) or _of_copilot(line) or _of_opencode(line)) is not None:
            yield spent
            continue
        message = line.get("message")
        if isinstance(message, dict) and isinstance(message.get("usage"), dict):
            id = str(message.get("id") or f"line {number}")
            tokens = {name: _count(message["usage"].get(field)) for name, field in _CLAUDE.items()}
            yield Spent((str(line.get("sessionId", "")), id), str(message.get("model") or ""), _at(line), tokens)
            continue
        payload = line.get("payload")
        if not isinstance(payload, dict):
            continue
        model = str(payload.get("model") or model)
        info = payload.get("info") if payload.get("type") == "token_count" else None
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if isinstance(total, dict):
            cached = _count(total.get("cached_input_tokens"))
            now = {
                "fresh": max(0, _count(total.get("input_tokens")) - cached), "cached": cached, "written": 0,
                "output": _count(total.get("output_tokens")),
            }  # fmt: skip
            grown = {name: max(0, now[name] - before[name]) for name in now}
            before = now
            yield Spent(("", f"line {number}"), model or "unknown", _at(line), grown)


def _of_gemini(line: dict[str, Any]) -> Spent | None:
    used = line.get("tokens")
    if line.get("type") != "gemini" or not isinstance(used, dict):
        return None
    cached = _count(used.get("cached"))
    tokens = {
        "fresh": max(0, _count(used.get("input")) - cached) + _count(used.get("tool")), "cached": cached, "written": 0,
        "output": _count(used.get("output")) + _count(used.get("thoughts")),
    }  # fmt: skip
    return Spent(("", str(line.get("id"))), str(line.get("model") or "unknown"), _at(line), tokens)


def _of_copilot(line: dict[str, Any]) -> Spent | None:
    data = line.get("data")
    used = data.get("usage") if isinstance(data, dict) else None
    if line.get("type") != "session.usage_record" or not isinstance(used, dict):
        return None
    cached, written = _count(used.get("cacheReadTokens")), _count(used.get("cacheWriteTokens"))
    tokens = {
        "fresh": max(0, _count(used.get("inputTokens")) - cached - written), "cached": cached, "written": written,
        "output": _count(used.get("outputTokens")),
    }  # fmt: skip
    return Spent(("", str(line.get("id"))), str(used.get("model") or "unknown"), _at(line), tokens)


def _of_opencode(line: dict[str, Any]) -> Spent | None:
    info = line.get("info")
    if line.get("type") != "message.updated" or not isinstance(info, dict):
        return None
    used, time = info.get("tokens") or {}, info.get("time") or {}
    cache = used.get("cache") or {}
    tokens = {
        "fresh": _count(used.get("input")), "cached": _count(cache.get("read")), "written": _count(cache.get("write")),
        "output": _count(used.get("output")) + _count(used.get("reasoning")),
    }  # fmt: skip
    at = _count(time.get("created")) / 1000
    return Spent((str(info.get("sessionID")), str(info.get("id"))), str(info.get("modelID") or "unknown"), at, tokens)


def _lines(path: str) -> Iterator[dict[str, Any]]:
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return
        with open(path, "rb") as file:
            for line in file:
                try:
                    value = msgspec.json.decode(line)
                except (msgspec.DecodeError, RecursionError):
                    continue  # also the line that is being written
                if isinstance(value, dict):
                    yield value
    except OSError:
        return


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _at(line: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
    except ValueError:
        return 0.0
