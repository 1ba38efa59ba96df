"""Copilot CLI: `copilot --output-format json`, the prompt from stdin.

Tokens are not in its output but in a file that it writes at its end; input includes cached input. It counts costs in
credits, not in dollars. A denied tool still ends with exit code 0.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.agents.runner.agent_output import AgentOutput, EventReader, Exit, Failure, count, failed
from tenure.agents.runner.clis.cli import Cli, Start


class Copilot(Cli):
    type = "copilot"
    program = "copilot"
    families = ("gpt", "claude", "gemini", "o3", "o4")
    model_variable = "COPILOT_MODEL"
    tells_cost = False
    tells_model = True

    def arguments(self, start: Start) -> list[str]:
        words = ["--output-format", "json", "--usage-output-file", usage_file(start)]
        if start.model:
            words += ["--model", start.model]
        if not start.has("--allow-all", "--allow-all-tools", "--allow-tool", "--yolo"):
            words += ["--allow-all"]
        if not start.has("--trust-folder"):
            words += ["--trust-folder"]  # else the project's MCP servers and hooks are silently left out
        return words

    def reader(self, start: Start) -> CopilotReader:
        return CopilotReader(usage_file(start))


def usage_file(start: Start) -> str:
    return start.beside + "copilot-usage.json"


class CopilotReader(EventReader):
    def __init__(self, usage_file: str) -> None:
        super().__init__()
        self._usage_file = usage_file
        self._text = ""
        self._denied = 0
        self._error: dict[str, Any] | None = None
        self._code: int | None = None

    def _event(self, event: dict[str, Any]) -> None:
        kind, data = event.get("type"), event.get("data") or {}
        if kind == "assistant.message":
            self._model = data.get("model") or self._model
            self._text = str(data.get("content") or "") or self._text
        elif kind == "tool.execution_complete":
            self._denied += (data.get("error") or {}).get("code") == "denied"
        elif kind == "session.error":
            self._error = data
        elif kind == "result":
            self._session = event.get("sessionId")
            self._code = event.get("exitCode")

    def finish(self, exit: Exit) -> AgentOutput:
        self._read_usage()
        notes = (f"{self._denied} calls of tools were denied",) if self._denied else ()
        is_whole = self._code is not None
        return AgentOutput(
            self._text, failure=self._failure(exit), is_whole=is_whole, session=self._session, notes=notes
        )

    def _read_usage(self) -> None:
        try:
            with open(self._usage_file, "rb") as file:
                metrics_file = msgspec.json.decode(file.read(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError, RecursionError):
            return  # it was ended before it could write it
        for model, metrics in (metrics_file.get("modelMetrics") or {}).items():
            used = metrics.get("usage") or {}
            cached, written = count(used, "cacheReadTokens"), count(used, "cacheWriteTokens")
            self._meter.set(
                model,
                fresh=max(0, count(used, "inputTokens") - cached - written),
                cached=cached,
                written=written,
                output=count(used, "outputTokens"),
            )
        self._meter.took(metrics_file.get("totalApiDurationMs"))

    def _failure(self, exit: Exit) -> Failure | None:
        if exit.code == 0 and self._code in (None, 0):
            return None
        error = self._error or {}
        message = str(error.get("message") or exit.errors.strip() or f"it ended with code {exit.code}")
        status = error.get("statusCode")
        default = "task" if self._code is not None else "environment"
        return failed(message, default, status=status, model=self._model)
