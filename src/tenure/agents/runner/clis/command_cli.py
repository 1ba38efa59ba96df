"""Any command: the prompt on stdin, the result on stdout.

Exit code 0 submits its output; 75 (EX_TEMPFAIL) reports that its environment failed, not the task; any other is a
failure of the task. If the last line is a JSON object with one of the keys below, that object is the report:

    {"result": any JSON, "summary": "…", "usage": {"model": "…", "fresh": 9, "cached": 5, "output": 3, "cost_usd": "1"}}
    {"fail": {"class": "rate_limit", "message": "…", "retry_after": 30}}

`usage` may be a list, and may be on any earlier line as well: totals so far, per model.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from tenure.agents.runner.agent_output import AgentOutput, Exit, Failure, event_of, named
from tenure.agents.runner.clis.cli import GENERIC, Cli, Start
from tenure.core import limits, retry
from tenure.core.commands import Totals

TEMPORARY = 75
KEYS = ("result", "summary", "usage", "fail")
MOST_KEPT = limits.COMMAND_OUTPUT


class Command(Cli):
    type = GENERIC

    def __init__(self, words: tuple[str, ...]) -> None:
        self.program = words[0]
        self._words = words[1:]

    def arguments(self, start: Start) -> list[str]:
        return list(self._words)

    def takes(self, model: str) -> bool:
        return True

    def reader(self, start: Start) -> CommandReader:
        return CommandReader()


class CommandReader:
    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._size = 0
        self._usage: dict[tuple[str, str], Totals] = {}
        self._bad: list[str] = []
        self._last: dict[str, Any] = {}

    def feed(self, line: str) -> None:
        if not line.strip():
            return
        event = event_of(line)
        self._last = event if event is not None and any(key in event for key in KEYS) else {}
        if "usage" in self._last:
            self._book(self._last["usage"])
        if self._last.keys() == {"usage"}:
            return  # not part of the result
        self._lines.append(line)
        self._size += len(line)
        while self._size > MOST_KEPT and len(self._lines) > 1:
            self._size -= len(self._lines.popleft())

    def _book(self, usage: Any) -> None:
        try:
            for totals in msgspec.convert(usage if isinstance(usage, list) else [usage], list[Totals]):
                name = named(totals.model)
                self._usage[name, totals.operation] = msgspec.structs.replace(totals, model=name)
        except msgspec.ValidationError as error:
            self._bad.append(f"its usage was not understood: {error}")

    def usage(self) -> tuple[Totals, ...]:
        return tuple(self._usage.values())

    def finish(self, exit: Exit) -> AgentOutput:
        text = "\n".join(self._lines)[-MOST_KEPT:]
        notes = tuple(dict.fromkeys(self._bad))
        if "fail" in self._last:
            return AgentOutput(text, failure=_failure(self._last["fail"], exit), notes=notes)
        if exit.code:
            name = "environment" if exit.code == TEMPORARY else "task"
            reason = exit.errors.strip() or text[-2000:].strip() or "it said nothing"
            return AgentOutput(text, failure=Failure(name, f"exit code {exit.code}: {reason}"), notes=notes)
        if "result" in self._last or "summary" in self._last:
            summary = str(self._last.get("summary") or "")
            return AgentOutput(summary, self._last.get("result"), summary, is_whole=True, notes=notes)
        return AgentOutput(text, notes=notes)


def _failure(report: Any, exit: Exit) -> Failure:
    if not isinstance(report, dict):
        return Failure("task", str(report))
    name = str(report.get("class", "task"))
    after, model = report.get("retry_after"), report.get("model")
    return Failure(
        name if name in retry.CLASSES else "task",
        str(report.get("message") or exit.errors.strip() or "it gave no reason"),
        float(after) if isinstance(after, (int, float)) and not isinstance(after, bool) and after >= 0 else None,
        str(model) if model else None,
    )
