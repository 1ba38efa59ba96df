"""Runs what programs outside send to a channel of a sink (`commands = true`), as the sink's own principal.

`recover` settles due tasks, in one project or in all projects of the sink, or ends the claim of a task; `reassign_task`
offers a task to another agent. Each is a command like any other: roles, scope and repeats are decided by the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from tenure.core import commands, limits
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, NotAllowed, TenureError, spelled
from tenure.engine.duties import sweep
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.runtime.engine import Engine

LISTENS = 1.0  # seconds for which one step listens
LARGEST = limits.CHANNEL_COMMAND


class Channel(Protocol):
    def receive(self, timeout: float) -> list[bytes]: ...

    def answer(self, answer: object) -> None: ...

    def close(self) -> None: ...


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of the channel."""

    command: Literal["recover", "reassign_task"]
    id: str | None = None  # a repeat with the same id has no second effect; the answer names it
    project: str | None = None
    task_id: str | None = None  # or its key
    agent_id: str | None = None


class ChannelCommands(LeaderThread):
    def __init__(
        self,
        engine: Engine,
        sink: str,
        projects: tuple[str, ...],
        open_channel: Callable[[], Channel],
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`projects`: those of the sink; none: all. `failed` receives errors, each once until it changes."""
        super().__init__(engine, f"commands-{sink}", leading)
        self._sink, self._open, self._report = sink, open_channel, failed
        self._principal = Principal(role="member", user=f"sink:{sink}", projects=projects)
        self._channel: Channel | None = None
        self._last_error: str | None = None

    def work(self, led: LeaderEngine) -> bool:
        if self._channel is None:
            self._channel = self._open()
        for body in self._channel.receive(LISTENS):
            if self.leading() is None:
                return False
            self._channel.answer(self._answered(body))
        self._last_error = None
        return True

    def _answered(self, body: bytes) -> dict[str, Any]:
        id = None
        try:
            asked = _decoded(body)
            id = asked.id
            return {"id": id, **self._done(asked)}
        except TenureError as error:
            return {"id": id, "outcome": error.code, "message": error.message}

    def _done(self, asked: Asked) -> dict[str, Any]:
        if asked.command == "recover" and asked.task_id is None:
            return self._settled(asked.project)
        if asked.project is None or asked.task_id is None:
            raise InvalidInput(f"{asked.command}: project and task_id are missing")
        command: commands.Command
        if asked.command == "recover":
            reason = f"by {self._principal.user}"
            command = commands.Recover(project=asked.project, task=asked.task_id, reason=reason, request_id=asked.id)
        elif asked.agent_id is None:
            raise InvalidInput("reassign_task: agent_id is missing")
        else:
            command = commands.Reassign(
                project=asked.project, task=asked.task_id, agent=asked.agent_id, request_id=asked.id
            )
        outcome = self.engine.do(command, self._principal)
        return {"outcome": outcome.outcome, "message": outcome.message}

    def _settled(self, project: str | None) -> dict[str, Any]:
        """Settle due tasks now. The sweeps do the same, a little later."""
        mine = self._principal.projects
        if project is not None and mine and project not in mine:
            raise NotAllowed(f"{project}: the sink {self._sink} is for {', '.join(mine)[:200]}")
        names = [project] if project is not None else list(mine) or sweep.projects(self.engine)
        known = set(sweep.projects(self.engine))
        count = sum(sweep.sweep(self.engine, name).settled for name in names if name in known)
        return {"outcome": "UPDATED", "message": f"{count} tasks settled", "settled": count}

    def failed(self, error: Exception) -> None:
        text = spelled(error)
        self.close()
        if text != self._last_error:
            self._last_error = text
            self._report(f"commands of the sink {self._sink}: {text}")

    def idle(self) -> None:
        self.close()

    def is_busy(self) -> bool:
        return True

    def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()


def _decoded(body: bytes) -> Asked:
    if len(body) > LARGEST:
        raise InvalidInput(f"a command may have at most {LARGEST} bytes (got {len(body)})")
    try:
        return msgspec.json.decode(body, type=Asked)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"not a command: {error}") from None
