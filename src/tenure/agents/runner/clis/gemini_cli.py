"""Gemini CLI: `gemini -o stream-json`, the prompt from stdin.

The text comes in pieces. Its exit code is an HTTP status modulo 256, or its own: 41 no sign-in, 55 a folder that is
not trusted; then stdout is empty and stderr has the message.
"""

from __future__ import annotations

from typing import Any

from tenure.agents.runner.agent_output import AgentOutput, EventReader, Exit, Failure, count, failed
from tenure.agents.runner.clis.cli import Cli, Start

NO_AUTH, NOT_TRUSTED = 41, 55


class Gemini(Cli):
    type = "gemini"
    program = "gemini"
    families = ("gemini",)
    model_variable = "GEMINI_MODEL"
    tells_cost = False
    tells_model = True

    def arguments(self, start: Start) -> list[str]:
        words = ["-o", "stream-json"]
        if start.model:
            words += ["-m", start.model]
        if not start.has("--approval-mode", "-y", "--yolo"):
            words += ["--approval-mode", "yolo"]  # in any other mode it has neither shell nor MCP without a terminal
        return words

    def environment(self, start: Start) -> dict[str, str]:
        # `--skip-trust` would let it run without the project's own settings: no context, no MCP, no hooks.
        return {"GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def reader(self, start: Start) -> GeminiReader:
        return GeminiReader()


class GeminiReader(EventReader):
    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []
        self._result: dict[str, Any] | None = None

    def _event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "init":
            self._session, self._model = event.get("session_id"), event.get("model")
        elif kind == "message" and event.get("role") == "assistant":
            if not event.get("delta"):
                self._pieces.clear()
            self._pieces.append(str(event.get("content") or ""))
        elif kind == "tool_use":
            self._pieces.clear()  # text before a tool call is not the last message
        elif kind == "result":
            self._result = event
            for model, used in ((event.get("stats") or {}).get("models") or {}).items():
                cached = count(used, "cached")
                self._meter.set(
                    model,
                    fresh=max(0, count(used, "input_tokens") - cached),
                    cached=cached,
                    output=count(used, "output_tokens"),
                )
            self._meter.took((event.get("stats") or {}).get("duration_ms"))

    def finish(self, exit: Exit) -> AgentOutput:
        text = "".join(self._pieces).strip()
        is_whole = self._result is not None
        return AgentOutput(text, failure=self._failure(exit), is_whole=is_whole, session=self._session)

    def _failure(self, exit: Exit) -> Failure | None:
        result = self._result or {}
        if result.get("status") == "success" and exit.code == 0:
            return None
        message = str((result.get("error") or {}).get("message") or exit.errors.strip()) or "it ended without a result"
        if exit.code == NO_AUTH:
            return Failure("auth_failure", message)
        if exit.code == NOT_TRUSTED:
            return Failure("environment", message)
        status = next((s for s in (401, 403, 429, 500, 503) if exit.code == s % 256), None)
        return failed(message, "task" if self._result else "environment", status=status, model=self._model)
