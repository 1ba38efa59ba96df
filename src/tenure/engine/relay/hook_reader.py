"""Runs local hooks: commands of the user's own, at most once for each event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tenure.core.errors import close_all
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.reader import Reader
from tenure.engine.runtime.engine import Engine
from tenure.sinks.command import SECONDS, CommandRunner
from tenure.sinks.envelope import messages_of

NAME = "hooks"


class HookReader(Reader):
    def __init__(
        self,
        engine: Engine,
        commands: Mapping[str, Sequence[Sequence[str]]],
        runner: CommandRunner,
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`commands`: of each kind of event. The caller has checked that they are trusted."""
        super().__init__(engine, NAME, "local commands", frozenset(commands), leading, failed=failed)
        self._commands, self._runner = commands, runner

    def stop(self) -> None:
        """Hooks that have begun may end in their time."""
        close_all(super().stop, partial(self._runner.wait, SECONDS), self._runner.close)

    def read(self, led: LeaderEngine) -> bool:
        page = self.page(led)
        if page.row.paused_at is not None or page.end == page.row.sequence:
            return False
        # The place moves before a command runs: a crash in between loses the run, and never repeats it.
        if not self.move(led, page.row, page.end, sent=len(page.events)):
            return True
        for event, facts in page.events:
            body = messages_of(event, facts)[0].body
            for argv in self._commands[event.kind]:
                self._runner.start(argv, body)
        return page.is_full
