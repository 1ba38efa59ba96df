"""Local hooks: commands of the user's own that run after an event. Pure: which event, which command.

`[hooks] on_task_completed = ["cmd", "arg"]`, or a list of such. Nothing here runs anything; `sinks/command.py` does,
after `tenure trust`.
"""

from __future__ import annotations

from typing import Any

from tenure.core import inputs, limits
from tenure.core.errors import InvalidInput
from tenure.core.events import KINDS

PREFIX = "on_"
MOST_COMMANDS = limits.HOOK_COMMANDS


def kind_of(setting: str) -> str:
    """The event kind of `on_task_completed`: the first `_` stands for the dot."""
    name = setting.removeprefix(PREFIX)
    kind = name.replace("_", ".", 1)
    if not setting.startswith(PREFIX) or kind not in KINDS:
        known = [PREFIX + kind.replace(".", "_", 1) for kind in KINDS]
        raise InvalidInput(
            f"hooks.{setting[:60]} names no kind of event{inputs.suggestion(setting, known)}",
            "as in on_task_completed or on_agent_died",
        )
    return kind


def commands_of(setting: str, value: Any) -> tuple[tuple[str, ...], ...]:
    """The commands that a setting gives: one as a list of texts, or a list of such lists."""
    given = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    if len(given) > MOST_COMMANDS:
        raise InvalidInput(f"hooks.{setting} has {len(given)} commands; at most {MOST_COMMANDS} may be given")
    for command in given:
        is_good = isinstance(command, list) and command and all(isinstance(part, str) for part in command)
        if not is_good or not command[0] or any("\0" in part for part in command):
            raise InvalidInput(
                f"hooks.{setting} must be a command as a list of texts, or a list of such",
                'as in ["notify-send", "done"]; no shell reads it',
            )
    return tuple(tuple(command) for command in given)
