"""Claude Code, as its hooks see it: events in, answers out, on a store of its own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tenure.agents import hooks
from tenure.agents.receipts import Receipts
from tenure.client import Client
from tenure.config import Home

SESSION = "11111111-2222-4333-8444-555555555555"
ENVIRON = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": SESSION, "USER": "ann"}


class Agent:
    """Claude Code as its hooks see it. `at` is the time of day that the hooks go by, in seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.at = time.time()
        self.calls = 0
        self.environ = {**ENVIRON, "TENURE_STATE": str(folder / "state")}
        self.home = folder / ".tenure"
        self.url = str(self.home / "tenure.db")

    def __call__(self, event: str, **payload: Any) -> dict[str, Any]:
        self.calls += 1
        said = {"session_id": SESSION, "cwd": str(self.folder), "hook_event_name": event, **payload}
        if event.endswith("ToolUse"):
            said = {"tool_use_id": f"call_{self.calls}", "tool_name": "Bash", **said}
        payload = json.dumps(said).encode()
        return hooks.answer(payload, hooks.HookOptions(), self.environ, str(self.folder), lambda: self.at)

    def text_of(self, event: str, **payload: Any) -> str:
        answer = self(event, **payload)
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def later(self, seconds: float) -> None:
        self.at += seconds

    def client(self, **settings: Any) -> Client:
        return Client(
            self.url,
            "default",
            **({"agent": "claude-5555", "session": SESSION, "role": "agent", "create": True} | settings),
        )

    @property
    def receipts(self) -> Receipts:
        return self.receipts_of("claude-5555")

    def receipts_of(self, agent: str | None) -> Receipts:
        return Receipts(Home(str(self.home), self.url), "default", SESSION, agent, self.environ)

    def claim(self, task: str | None = None, lease: float = 1800) -> str:
        granted = self.client().claim(task, lease=lease)
        assert granted.receipt, granted
        assert granted.task
        self.receipts.keep(granted.task["id"], granted.task["key"], granted.receipt)
        return granted.receipt

    def wants(self, *settings: str) -> None:
        (self.home / "config.toml").write_text("[hooks]\n" + "".join(f"{name} = true\n" for name in settings))

    def taken_over(self, task: str) -> None:
        """Somebody else holds the task from now on."""
        self.client(agent="ann", session="terminal", role="owner").recover(task)
        assert self.client(agent="bo", session="other").claim(task).ok
