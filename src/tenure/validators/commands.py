"""`test-pass`: a configured command exits with 0 in the folder of the work. Setting: `command`, its name.

A contract only names a command. Its arguments are in trusted configuration (see `trust`), as a list that no shell
interprets. It gets the output as JSON on stdin, a short environment, and a sandbox where one is available; at its time
limit it is killed with everything that it started.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tenure.core import limits
from tenure.core.child_environments import ChildKind, for_child
from tenure.core.errors import InvalidInput
from tenure.core.inputs import check_key, suggestion
from tenure.processes import bounded_run
from tenure.processes.bounded_run import CommandRun, NotRun
from tenure.validators import sandbox
from tenure.validators.port import Output, Undecided, Verdict, refused, setting

SETTINGS = ("command",)
# The variables that a command gets besides those it names: an environment may contain keys.
PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME")
LAST_LINES = 4


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One command of the configuration: `[commands.unit]`, `argv = ["pytest", "-q"]`."""

    argv: tuple[str, ...]
    folder: str = "."  # relative to that of the work
    timeout: float = limits.COMMAND_TIMEOUT  # seconds
    env: tuple[str, ...] = ()  # names of further variables that it gets
    set: dict[str, str] = {}  # variables with their values
    network: bool = False
    sandbox: Literal["auto", "always", "never"] = "auto"


def read_commands(section: Mapping[str, Any]) -> dict[str, Command]:
    """The commands of a `[commands]` section; raises InvalidInput with the path of an error."""
    commands = {}
    for name, given in section.items():
        for key in given if isinstance(given, Mapping) else ():
            check_key(key, Command.__struct_fields__, f"commands.{name[:60]}")
        try:
            command = msgspec.convert(given, Command)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"commands.{name[:60]}: {error}") from None
        if not command.argv or not command.argv[0] or any("\0" in word for word in command.argv):
            raise InvalidInput(f"commands.{name[:60]}.argv must be a list of words, the program first")
        if not 0 < command.timeout <= limits.COMMAND_TIMEOUT_MAX:
            raise InvalidInput(
                f"commands.{name[:60]}.timeout must be more than 0 and at most {limits.COMMAND_TIMEOUT_MAX:.0f} s"
            )
        commands[name] = command
    return commands


class TestPass:
    __test__ = False  # pytest: not a test, in spite of its name
    name = "test-pass"
    is_quick = False

    def __init__(self, commands: Mapping[str, Command] | None, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """`commands`: trusted ones only; None where they are unknown, as in a contract for other machines.

        `is_wanted` is asked while a command runs; False ends it.
        """
        self._commands = commands
        self._is_wanted = is_wanted

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        name = setting(settings, "command", (str,), SETTINGS)
        if self._commands is not None and name not in self._commands:
            known = ", ".join(sorted(self._commands)) or "there are none"
            raise InvalidInput(
                f"output.settings.command: no command {name[:60]!r} is configured{suggestion(name, self._commands)}",
                f"Known: {known}.",
            )

    def judge(self, settings: Mapping[str, Any], output: Output) -> Verdict:
        name = setting(settings, "command", (str,), SETTINGS)
        command = (self._commands or {}).get(name)
        if command is None:
            raise Undecided(f"no command {name[:60]!r} is configured and trusted here")
        if output.folder is None:
            raise Undecided(f"{name}: there is no folder to run in")
        folder = Path(output.folder).resolve()
        at = (folder / command.folder).resolve()
        if not at.is_relative_to(folder) or not at.is_dir():
            raise Undecided(f"{name}: {command.folder!r} is not a folder below {folder}")
        env = _environment(command, output)
        program = shutil.which(command.argv[0], path=env.get("PATH")) if "/" not in command.argv[0] else ""
        if program is None:
            raise Undecided(f"{name}: program {command.argv[0]!r} not found")
        argv, around = _wrapped(name, command, folder, at)
        ran = run(argv, cwd=at, env=env, seconds=command.timeout, stdin=output.encoded, is_wanted=self._is_wanted)
        if ran.limit == "unwanted":
            raise Undecided(f"{name}: ended, since its verdict is not needed any more", again=True)
        return _verdict(name, command, ran, around)


def _environment(command: Command, output: Output) -> dict[str, str]:
    passed = {name: os.environ[name] for name in (*PASSED, *command.env) if name in os.environ}
    about = {"TENURE_TASK": output.about.key, "TENURE_GENERATION": str(output.about.generation)}
    return {**for_child(ChildKind.CHECK, passed), **about, **command.set}


def _wrapped(name: str, command: Command, folder: Path, at: Path) -> tuple[list[str], str]:
    """The arguments to start, and a description of the sandbox."""
    if command.sandbox == "never":
        return list(command.argv), "none: not wanted"
    trouble = sandbox.trouble()
    if trouble is None:
        return sandbox.wrapped(command.argv, folder, at, network=command.network), "bwrap"
    if command.sandbox == "always":
        raise Undecided(f"{name} must run only in a sandbox, but {trouble}")
    return list(command.argv), f"none: {trouble}"


def _verdict(name: str, command: Command, ran: CommandRun, around: str) -> Verdict:
    text = ran.output.decode(errors="replace")
    details = {
        "command": name,
        "exit": ran.exit,
        "seconds": ran.seconds,
        "sandbox": around,
        "output": text,
        "left_out": ran.left_out,
        "left_behind": ran.left_behind,
    }
    if ran.limit == "time":
        why = f"{name} did not end within {command.timeout:g} s, and was killed with everything that it started"
        return refused([why, *_last(text)], **details, limit="time")
    if ran.exit == 0:
        return Verdict(True, (), details)
    if ran.exit is not None and ran.exit < 0:
        return refused([f"{name} was ended by signal {-ran.exit}", *_last(text)], **details)
    if around == "bwrap" and text.startswith("bwrap: ") and text.count("\n") <= 1:
        raise Undecided(
            f"{name}: {text.strip()}", "It did not start; `sandbox` in its configuration sets how it may run."
        )
    return refused([f"{name} ended with {ran.exit}", *_last(text)], **details)


def _last(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()][-LAST_LINES:]


def run(argv: Sequence[str], **how: Any) -> CommandRun:
    """As `bounded_run.run`; raises Undecided where the command cannot be started or ended."""
    try:
        return bounded_run.run(argv, **how)
    except NotRun as error:
        hint = "Fix the command in the configuration." if error.is_misconfigured else None
        raise Undecided(error.message, hint, again=error.may_pass) from error
