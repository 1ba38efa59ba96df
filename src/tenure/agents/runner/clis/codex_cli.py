"""Codex: `codex exec --json`, the prompt from stdin.

Its input counts include cached input. It does not report costs. `error` lines may be retries that succeeded later, and
items of type `error` are warnings: only `turn.failed` is a failure.
"""

from __future__ import annotations

import json
from typing import Any

from tenure.agents.runner.agent_output import AgentOutput, EventReader, Exit, count, failed
from tenure.agents.runner.clis.cli import Cli, Start


class Codex(Cli):
    type = "codex"
    program = "codex"
    families = ("gpt", "codex", "o1", "o3", "o4")

    def arguments(self, start: Start) -> list[str]:
        words = ["exec", "--json", "-C", start.folder, "--skip-git-repo-check"]
        if not start.has("-s", "--sandbox", "--full-auto", "--dangerously-bypass-approvals-and-sandbox"):
            words += ["-s", "workspace-write"]
        if start.writable:
            words += ["-c", f"sandbox_workspace_write.writable_roots={json.dumps(list(start.writable))}"]
        if start.model:
            words += ["-m", start.model]
        return words

    def last_words(self) -> list[str]:
        return ["-"]

    def reader(self, start: Start) -> CodexReader:
        return CodexReader(start.model)


class CodexReader(EventReader):
    def __init__(self, model: str | None) -> None:
        super().__init__()
        self._name = model or "codex"  # it does not report the model of its settings
        self._text = ""
        self._failure: str | None = None
        self._trouble: str | None = None
        self._is_whole = False

    def _event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "thread.started":
            self._session = event.get("thread_id")
        elif kind == "item.completed":
            item: dict[str, Any] = event.get("item") or {}
            if item.get("type") == "agent_message":
                self._text = str(item.get("text") or "")
        elif kind == "turn.completed":
            used = event.get("usage") or {}
            cached, written = count(used, "cached_input_tokens"), count(used, "cache_write_input_tokens")
            self._meter.add(
                self._name,
                fresh=max(0, count(used, "input_tokens") - cached - written),
                cached=cached,
                written=written,
                output=count(used, "output_tokens"),
            )
            self._failure = None
            self._is_whole = True
        elif kind == "turn.failed":
            self._failure = str((event.get("error") or {}).get("message") or "the turn failed")
        elif kind == "error":
            self._trouble = str(event.get("message") or "")

    def finish(self, exit: Exit) -> AgentOutput:
        failure = None
        if self._failure is not None or exit.code:
            message = self._failure or self._trouble or exit.errors.strip() or f"it ended with code {exit.code}"
            default = "task" if self._session else "environment"  # it never started a session
            failure = failed(message, default, model=self._name)
        return AgentOutput(self._text, failure=failure, is_whole=self._is_whole, session=self._session)
