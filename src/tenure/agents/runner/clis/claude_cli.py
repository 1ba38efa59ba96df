"""Claude Code: `claude -p --output-format stream-json`.

Its last line has the text, the totals per model and the denied tools. Exit code 0 does not mean that it could work
(tools may be denied), nor does `subtype: success` (see `is_error`).
"""

from __future__ import annotations

from typing import Any

from tenure.agents.runner.agent_output import AgentOutput, EventReader, Exit, Failure, count, failed, usd
from tenure.agents.runner.clis.cli import Cli, Start

TOOLS = "Bash,Edit,Write,NotebookEdit,WebFetch,WebSearch,mcp__tenure"


class Claude(Cli):
    type = "claude"
    program = "claude"
    families = ("claude", "sonnet", "opus", "haiku")
    model_variable = "ANTHROPIC_MODEL"

    def arguments(self, start: Start) -> list[str]:
        # The prompt comes by stdin: a single argument may have no more than 128 KB.
        words = ["-p", "--output-format", "stream-json", "--verbose"]
        if start.model:
            words += ["--model", start.model]
        if start.budget:
            words += ["--max-budget-usd", start.budget]
        if not start.has("--allowedTools", "--allowed-tools", "--permission-mode", "--dangerously-skip-permissions"):
            words += ["--allowedTools", TOOLS]
        return words

    def reader(self, start: Start) -> ClaudeReader:
        return ClaudeReader()


class ClaudeReader(EventReader):
    def __init__(self) -> None:
        super().__init__()
        self._last = ""
        self._result: dict[str, Any] | None = None

    def _event(self, event: dict[str, Any]) -> None:
        self._session = event.get("session_id") or self._session
        kind = (event.get("type"), event.get("subtype"))
        if kind == ("system", "init"):
            self._model = event.get("model") or self._model
        elif kind[0] == "assistant":
            self._last = _text(event.get("message")) or self._last
        elif kind[0] == "result":
            self._result = event
            for model, used in (event.get("modelUsage") or {}).items():
                cost = used.get("costUSD")
                self._meter.set(
                    model,
                    fresh=count(used, "inputTokens"),
                    cached=count(used, "cacheReadInputTokens"),
                    written=count(used, "cacheCreationInputTokens"),
                    output=count(used, "outputTokens"),
                    cost_usd=None if cost is None else usd(float(cost)),
                )
            self._meter.took(event.get("duration_api_ms"))

    def finish(self, exit: Exit) -> AgentOutput:
        result = self._result
        if result is None:
            return AgentOutput(self._last, failure=self._without_result(exit), session=self._session)
        text = str(result.get("result") or self._last)
        denied = sorted({str(d.get("tool_name")) for d in result.get("permission_denials") or ()})
        notes = (f"tools that were denied: {', '.join(denied)}",) if denied else ()
        return AgentOutput(text, failure=self._failure(result, text), is_whole=True, session=self._session, notes=notes)

    def _failure(self, result: dict[str, Any], text: str) -> Failure | None:
        if not result.get("is_error"):
            return None
        subtype = str(result.get("subtype"))
        message = "; ".join(str(e) for e in result.get("errors") or ()) or text or subtype
        if subtype == "error_max_budget_usd":
            return Failure("budget_exceeded", message)
        status = result.get("api_error_status")
        if result.get("terminal_reason") != "api_error" and not isinstance(status, int):
            return Failure("task", message)  # free text of the agent
        return failed(message, status=status, model=self._model)

    def _without_result(self, exit: Exit) -> Failure:
        message = exit.errors.strip() or f"it ended with code {exit.code} and no result"
        return failed(message, "environment" if exit.code and not self._last else "task", model=self._model)


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(p.get("text", "")) for p in parts if isinstance(p, dict) and p.get("type") == "text")
