"""A command of a validator: `processes.bounded_run`, where a command that did not run gives no verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tenure.processes import bounded_run
from tenure.processes.bounded_run import HEAD, TAIL, CommandRun, NotRun
from tenure.validators.port import Undecided

__all__ = ["HEAD", "TAIL", "CommandRun", "run"]


def run(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    keep_stderr: bool = True,
    is_wanted: Callable[[], bool] = lambda: True,
) -> CommandRun:
    """Raises Undecided where the command cannot be started or ended; see `bounded_run.run`."""
    try:
        return bounded_run.run(
            argv, cwd=cwd, env=env, seconds=seconds, stdin=stdin, keep_stderr=keep_stderr, is_wanted=is_wanted
        )
    except NotRun as error:
        hint = "Fix the command in the configuration." if error.is_misconfigured else None
        raise Undecided(error.message, hint, again=error.may_pass) from error
