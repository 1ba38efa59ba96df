"""OpenCode: `opencode run --format json`, the prompt from stdin.

Tokens and costs come step by step and are summed; input excludes cached input. The output does not name the model, so
usage is booked for the requested one, else for that of its settings.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from tenure.agents.runner.agent_output import AgentOutput, EventReader, Exit, Failure, count, failed
from tenure.agents.runner.clis.cli import Cli, Start


class OpenCode(Cli):
    type = "opencode"
    program = "opencode"

    def arguments(self, start: Start) -> list[str]:
        return ["run", "--format", "json", *(["-m", start.model] if start.model else [])]

    def takes(self, model: str) -> bool:
        return "/" in model  # provider/model

    def reader(self, start: Start) -> OpenCodeReader:
        return OpenCodeReader(self.own_model(start))

    def own_model(self, start: Start) -> str | None:
        named = super().own_model(start)
        if named is not None:
            return named
        home = start.environ.get("HOME") or os.path.expanduser("~")
        config = start.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        for folder in (start.folder, os.path.join(config, "opencode")):
            try:
                with open(os.path.join(folder, "opencode.json"), "rb") as file:
                    model = msgspec.json.decode(file.read(), type=dict[str, Any]).get("model")
            except (OSError, msgspec.DecodeError, RecursionError):
                continue
            if isinstance(model, str) and model:
                return model
        return None


class OpenCodeReader(EventReader):
    def __init__(self, model: str | None) -> None:
        super().__init__()
        self._name = model or "opencode"
        self._pieces: list[str] = []
        self._error: dict[str, Any] | None = None
        self._is_whole = False

    def _event(self, event: dict[str, Any]) -> None:
        self._session = event.get("sessionID") or self._session
        kind, part = event.get("type"), event.get("part") or {}
        if kind == "step_start":
            self._pieces.clear()
        elif kind == "text":
            self._pieces.append(str(part.get("text") or ""))
        elif kind == "step_finish":
            used = part.get("tokens") or {}
            self._is_whole = part.get("reason") == "stop"
            cache, cost = used.get("cache") or {}, part.get("cost")
            self._meter.add(
                self._name,
                fresh=count(used, "input"),
                cached=count(cache, "read"),
                written=count(cache, "write"),
                output=count(used, "output") + count(used, "reasoning"),
                cost=None if cost is None else float(cost),
            )
        elif kind == "error":
            self._error = event.get("error") or {}

    def finish(self, exit: Exit) -> AgentOutput:
        text = "\n".join(piece for piece in self._pieces if piece).strip()
        return AgentOutput(text, failure=self._failure(exit), is_whole=self._is_whole, session=self._session)

    def _failure(self, exit: Exit) -> Failure | None:
        if exit.code == 0 and self._error is None:
            return None
        data = (self._error or {}).get("data") or {}
        message = str(data.get("message") or exit.errors.strip() or f"it ended with code {exit.code}")
        status = data.get("statusCode")
        failure = failed(message, "task" if self._session else "environment", status=status, model=self._name)
        after = str((data.get("responseHeaders") or {}).get("retry-after"))
        if failure.error_class == "rate_limit" and after.replace(".", "", 1).isdigit():
            failure = failure._replace(retry_after=float(after))
        return failure
