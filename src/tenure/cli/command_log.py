"""The log of commands: one JSON object a line in the file of the setting `log.file`. `daemon` writes there too.

It has the verb and never its arguments, which may hold secrets. A log that cannot be written fails no command.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tenure.config import LEVELS

if TYPE_CHECKING:
    from tenure.cli.main import Run

_REFUSED = frozenset({3, 5, 6, 7, 9})  # exit codes of refusals: nothing changed, nothing failed


def level_of(code: int) -> str:
    return "info" if code == 0 else "warning" if code in _REFUSED else "error"


class CommandLog:
    """`level`: the lowest that is written. Without a file, `say` writes to stderr and `note` writes nothing."""

    def __init__(self, path: str | None, level: str = "info") -> None:
        self._path, self._lowest = path, LEVELS.index(level)

    def say(self, level: str, text: str) -> None:
        """A message of a long-running command."""
        if self._path is not None:
            self.note(level, message=text)
        elif LEVELS.index(level) >= self._lowest:
            from tenure.cli.answers import say

            say(f"tenure: {text}", sys.stderr)

    def note(self, level: str, **fields: Any) -> None:
        if self._path is None or LEVELS.index(level) < self._lowest:
            return
        import msgspec

        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
        line = msgspec.json.encode({"time": stamp, "level": level, "pid": os.getpid(), **fields}) + b"\n"
        with suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            try:
                os.write(handle, line)  # one write: lines of several processes do not mix
            finally:
                os.close(handle)


def log_of(run: Run) -> CommandLog:
    from tenure.config import file_of

    return CommandLog(file_of(run.settings, "log.file"), str(run.setting("log.level")))


def note_command(run: Run, code: int, took: float) -> None:
    """The line of one command; nothing where its settings were never read, or name no file."""
    if "settings" not in vars(run) or run.settings.seen("log.file").value is None:
        return
    from tenure.core.errors import TenureError

    with suppress(TenureError):  # a file that a clone names is not written
        fields: dict[str, Any] = {"verb": run.verb, "exit": code, "took_ms": round(took * 1000, 1)}
        if "who" in vars(run):
            fields |= {"agent": run.who.agent, "session": run.who.session}
        log_of(run).note(level_of(code), **fields)
