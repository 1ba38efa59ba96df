"""Print one answer on stdout, errors and warnings on stderr, and return the exit code.

A failure here comes after the effect, so no text here may say that nothing happened: the outcome goes to stderr where
stdout cannot be written.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tenure.cli.exit_codes import OF_ERROR
from tenure.core.errors import TenureError

if TYPE_CHECKING:
    from tenure.cli.main import Answer, Run
    from tenure.core.outcomes import Outcome


class Interrupted(TenureError):
    code = "INTERRUPTED"
    definite = False  # it may have come after the commit


class Unfinished(TenureError):
    code = "UNFINISHED"
    definite = False


def said(outcome: Outcome) -> str:
    line = in_a_line(outcome)
    line = f"{line}\n  {outcome.hint}" if outcome.hint else line
    if outcome.brief is None:
        return line
    told = "" if outcome.outcome == "CHANGED" else f"\n  {outcome.directive_text or 'the description was changed'}"
    return f"{line}{told}\n{outcome.diff}"


def in_a_line(outcome: Outcome) -> str:
    return f"{outcome.outcome}: {outcome.message}" if outcome.message else outcome.outcome


def tell(answer: Answer, run: Run) -> int:
    """Print the answer and return the exit code. If stdout cannot be written, stderr reports the outcome."""
    from tenure.cli.terminal_output import say, say_json

    text = "" if run.is_json else _text(answer, run)
    for warning in run.warnings:
        say(f"tenure: {warning}", sys.stderr)
    try:
        if 1 in _CLOSED:
            raise OSError("stdout is closed")
        if run.is_json:
            is_dict = isinstance(answer.value, dict)
            say_json({**answer.value, "warnings": run.warnings} if run.warnings and is_dict else answer.value)
        elif text:
            say(text)
    except BrokenPipeError:
        reader_left()
    except OSError as error:
        reader_left()
        for undo in run.unwritten:
            undo()
        say(f"tenure: the answer could not be written: {error}", sys.stderr)
        for outcome in run.done[-1:]:
            say(f"  it was done: {in_a_line(outcome)}", sys.stderr)
            for claim in outcome.claims or (outcome,):
                if claim.receipt:
                    say(f"  receipt {claim.receipt}", sys.stderr)
        return 75
    return answer.code


def _text(answer: Answer, run: Run) -> str:
    try:
        return answer.text if isinstance(answer.text, str) else answer.text()
    except Exception as error:
        if not run.done:
            raise
        run.warn(f"it was done; showing it failed: {type(error).__name__}: {error}")
        return said(run.done[-1])


def reader_left() -> None:
    """The reader of stdout is gone, as after `head`. Not an error: the command had its effect."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_CLOSED: set[int] = set()  # streams that this process was started without


def open_closed() -> None:
    """Open closed standard streams on /dev/null, so that no other file gets their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115 until the end
            _CLOSED.add(number)


def refuse(error: TenureError, wants_json: bool) -> int:
    from tenure.cli.terminal_output import say, say_json

    if wants_json:
        told = {"code": error.code, "message": error.message, "hint": error.hint, "definite": error.definite}
        try:
            say_json({"error": {name: value for name, value in told.items() if value is not None}})
        except BrokenPipeError:
            reader_left()
        except OSError as unwritten:
            reader_left()
            say(f"tenure: {error.message}\n  the answer could not be written: {unwritten}", sys.stderr)
    else:
        say(f"tenure: {error.message}\n" + (f"  {error.hint}\n" if error.hint else ""), sys.stderr)
    code = 130 if isinstance(error, Interrupted) else OF_ERROR.get(error.code, 70)
    return 75 if code in (10, 70) and not error.definite else code  # those two mean that nothing was done
