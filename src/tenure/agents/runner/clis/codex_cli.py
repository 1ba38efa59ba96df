"""Codex: `codex exec --json`, the prompt from stdin.

Its input counts include cached input. It reports neither costs nor its model: that is in the record that it keeps of
the session, and in its settings. `error` lines may be retries that succeeded later, and items of type `error` are
warnings: only `turn.failed` is a failure.
"""

from __future__ import annotations

import glob
import json
import os
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tenure.agents.runner.agent_output import AgentOutput, EventReader, Exit, count, failed
from tenure.agents.runner.clis.cli import Cli, Start
from tenure.agents.transcript_usage import model_in


class Codex(Cli):
    type = "codex"
    program = "codex"
    families = ("gpt", "codex", "o1", "o3", "o4")
    tells_cost = False

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
        return CodexReader(start, self.own_model(start))

    def own_model(self, start: Start) -> str | None:
        """From `-c model=…`, the profile, or the settings of the project or of the user."""
        named = super().own_model(start) or _of_override(start)
        if named is not None:
            return named
        user = _settings(os.path.join(home_of(start.environ), "config.toml"))
        project = _settings(os.path.join(start.folder, ".codex", "config.toml"))
        profile = start.value("-p", "--profile") or user.get("profile")
        profiles = user.get("profiles")
        chosen = profiles.get(profile) if isinstance(profiles, dict) and profile is not None else None
        found = [settings.get("model") for settings in (chosen, project, user) if isinstance(settings, dict)]
        return next((model for model in found if isinstance(model, str) and model), None)


def home_of(environ: Mapping[str, str]) -> str:
    return environ.get("CODEX_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".codex")


def _of_override(start: Start) -> str | None:
    """`-c model="gpt-…"`, the last one; a value that is not valid TOML counts as text, as Codex has it."""
    found = None
    for word, after in pairwise((*start.extra, "")):
        setting = after if word in ("-c", "--config") else word.removeprefix("--config=") if "=" in word else ""
        name, _, value = setting.partition("=")
        if name.strip() == "model" and value:
            found = value.strip().strip("\"'")
    return found or None


def _settings(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def model_of_session(environ: Mapping[str, str], session: str) -> str | None:
    """The model in the record that Codex keeps of a session; the last one, where it was changed."""
    name = f"rollout-*-{glob.escape(os.path.basename(session))}.jsonl"
    found = glob.glob(os.path.join(glob.escape(home_of(environ)), "sessions", "*", "*", "*", name))
    return model_in(found[0]) if found else None


class CodexReader(EventReader):
    def __init__(self, start: Start, model: str | None) -> None:
        super().__init__()
        self._start, self._settings_model = start, model
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
                self._name(),
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

    def _name(self) -> str:
        """One name for the whole session: later usage must not be booked under another."""
        if self._model is None:
            recorded = None
            if self._start.model is None and self._session:
                recorded = model_of_session(self._start.environ, self._session)
            self._model = recorded or self._settings_model or "codex"
        return self._model

    def finish(self, exit: Exit) -> AgentOutput:
        failure = None
        if self._failure is not None or exit.code:
            message = self._failure or self._trouble or exit.errors.strip() or f"it ended with code {exit.code}"
            default = "task" if self._session else "environment"  # it never started a session
            failure = failed(message, default, model=self._name())
        return AgentOutput(self._text, failure=failure, is_whole=self._is_whole, session=self._session)
