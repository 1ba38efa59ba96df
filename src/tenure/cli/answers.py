"""Answers: the table of exit codes; one answer on stdout, errors and warnings on stderr.

The only module that writes to a terminal or pipe; a test checks that. The only control characters it sends are our own
styles: `text_format.style` marks them with a word that foreign text cannot know, and every other control character is
shown instead of sent.

Printing an answer comes after the effect, so no text there may say that nothing happened: the outcome goes to stderr
where stdout cannot be written.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from tenure.cli.text_format import MARK, in_signs
from tenure.core.errors import Bug, TenureError
from tenure.core.patterns import pattern
from tenure.core.safe_text import escaped_json, neutral

if TYPE_CHECKING:
    from tenure.cli.main import Answer, Run
    from tenure.core.outcomes import Outcome


class Exit(msgspec.Struct, frozen=True):
    code: int
    meaning: str
    kind: str | None = None  # of outcomes
    errors: str = ""  # codes of errors


# Exit codes, the one table. Scripts rely on them; the reference page is made from it.
TABLE = (
    Exit(0, "ok", "ok"),
    Exit(1, "no store here", errors="NO_STORE"),
    Exit(2, "usage: an unknown verb or option", errors="USAGE"),
    Exit(3, "no task to claim; of `run`, also: only tasks that wait for a person are left", "nothing"),
    Exit(4, "not found", "missing", "NOT_FOUND AMBIGUOUS HISTORY_PRUNED"),
    Exit(5, "already claimed by another", "held"),
    Exit(
        6,
        "not the holder any more: stale, mismatched, expired, completed, cancelled, or no receipt",
        "stale",
        "NO_RECEIPT NOT_HELD",
    ),
    Exit(
        7,
        "denied: the state, a limit, a conflict or the role does not allow it",
        "denied",
        "NOT_ALLOWED LIMIT_REACHED COPY_REFUSED MOVE_REFUSED STORE_ONLY TREE_NOT_CLEAN COMMIT_REFUSED HOOK_REFUSED "
        "MERGE_CONFLICT NOTHING_TO_LAND CHECKOUT_IN_THE_WAY BRANCH_MOVES GIT_FAILED NOT_PLACED NOT_CHECKED_HERE",
    ),
    Exit(
        8,
        "invalid input or output, version conflict, too large",
        "invalid",
        "NO_REPOSITORY INVALID_INPUT UNSUPPORTED_TYPE TOO_LARGE CYCLE REQUEST_ID_REUSED REFUSED TASK_FAILED "
        "CHECK_FAILED",
    ),
    Exit(9, "an operator has terminated this agent"),
    Exit(
        10,
        "the store is unavailable or overloaded; nothing was done",
        errors="AUTH_UNAVAILABLE RATE_LIMITED OVERLOADED STORE_UNAVAILABLE STORE_ERROR CLOCK_JUMP CONFLICT "
        "SCHEMA_MISMATCH STORE_CORRUPT ARTIFACT_CORRUPT UNDECIDED SECRET_UNREADABLE SINK_UNAVAILABLE "
        "SPAWN_FAILED TENANT_MOVING ANSWER_REFUSED",
    ),
    # NO_ROUTE, NO_METHOD: the URL is not of a tenure server, or of another version; NOT_HOME: `homes` lacks a server
    Exit(
        11,
        "bad configuration",
        errors="BAD_CONFIG NO_ROUTE NO_METHOD UNTRUSTED NO_PROGRAM NO_PRICE SECRETS_OFF UNSAFE_ROLE NOT_HOME",
    ),
    Exit(12, "not authorised", errors="NOT_SIGNED_IN"),
    Exit(70, "an internal error; nothing was done", errors="BUG"),
    Exit(
        75,
        "outcome unknown, or done but the answer could not be written: retry",
        errors="OUTCOME_UNKNOWN UNFINISHED SPAWN_UNKNOWN",
    ),
    Exit(130, "interrupted", errors="INTERRUPTED"),
)
EXITS = {exit.code: exit.meaning for exit in TABLE}
OF_KIND = {exit.kind: exit.code for exit in TABLE if exit.kind}
OF_ERROR = {error: exit.code for exit in TABLE for error in exit.errors.split()}
OF_OUTCOME = {"DENIED_AGENT": 9}  # where the kind is not enough


def exit_of(outcome: str) -> int:
    from tenure.core.outcomes import CODES

    return OF_OUTCOME.get(outcome, OF_KIND[CODES[outcome].kind])


class Interrupted(TenureError):
    code = "INTERRUPTED"
    definite = False  # it may have come after the commit


class Unfinished(TenureError):
    code = "UNFINISHED"
    definite = False


# --- writing ------------------------------------------------------------------------------------------------


_STYLES = pattern(f"{re.escape(MARK)}([0-9;]*)m")
_FRAME_STYLES = pattern("(\x1b\\[[0-9;]*m)")


def printed(text: str) -> str:
    """The text as it is sent."""
    if MARK not in text:
        return neutral(text)
    parts = _STYLES.split(text)  # text, style, text, style, …
    return "".join(f"\x1b[{part}m" if number % 2 else neutral(part) for number, part in enumerate(parts))


def clean_frame(frame: str) -> str:
    """A frame that rich has drawn, without any control but styles."""
    parts = _FRAME_STYLES.split(frame)
    return "".join(part if number % 2 else neutral(part) for number, part in enumerate(parts))


def say(text: str, stream: TextIO | None = None) -> None:
    """Write the text and the end of its line, now."""
    stream = stream or sys.stdout
    text = in_signs(printed(text))
    text = text if text.endswith("\n") else text + "\n"
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a terminal that has not all of these characters
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def redraw(shown: int, text: str, lines: Sequence[str]) -> None:
    """Replace the last `shown` lines of the terminal by the text, and by lines that are replaced in turn."""
    sys.stdout.write(f"\r\x1b[{shown}A\x1b[J" if shown else "\r\x1b[J")
    say("\n".join([*([text] if text else []), *lines])) if text or lines else sys.stdout.flush()


def say_json(value: Any) -> None:
    """Write one JSON value on a line, now. It is the same value with its control characters escaped as JSON does."""
    import msgspec

    try:
        text = msgspec.json.encode(value).decode()
        sys.stdout.write((text if text.isascii() and "\x7f" not in text else escaped_json(text)) + "\n")
    except UnicodeEncodeError:  # by the terminal's encoding, or for half of a character that a shell passed on
        import json

        sys.stdout.write(json.dumps(msgspec.to_builtins(value)) + "\n")
    sys.stdout.flush()


def asked(question: str) -> bool:
    """Whether the person at the terminal says yes."""
    sys.stdout.write(f"{printed(question)} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# --- printing one answer ------------------------------------------------------------------------------------


def outcome_text(outcome: Outcome) -> str:
    line = in_a_line(outcome)
    line = f"{line}\n  {outcome.hint}" if outcome.hint else line
    if outcome.brief is None:
        return line
    note = "" if outcome.outcome == "CHANGED" else f"\n  {outcome.directive_text or 'the description was changed'}"
    return f"{line}{note}\n{outcome.diff}"


def in_a_line(outcome: Outcome) -> str:
    return f"{outcome.outcome}: {outcome.message}" if outcome.message else outcome.outcome


def print_answer(answer: Answer, run: Run) -> int:
    """Print the answer and return the exit code. If stdout cannot be written, stderr reports the outcome."""
    text = "" if run.is_json else "\n".join(part for part in (_text(answer, run), answer.left_out) if part)
    if run.is_json and answer.left_out:
        run.warn(answer.left_out)
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
        return outcome_text(run.done[-1])


def reader_left() -> None:
    """The reader of stdout is gone, as after `head`. Not an error: the command had its effect."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_CLOSED: set[int] = set()  # streams that this process was started without


def open_streams() -> None:
    """Open closed standard streams on /dev/null, so that no other file gets their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115 until the end
            _CLOSED.add(number)


def print_error(error: TenureError, wants_json: bool) -> int:
    if wants_json:
        fields = {"code": error.code, "message": error.message, "hint": error.hint, "definite": error.definite}
        try:
            say_json({"error": {name: value for name, value in fields.items() if value is not None}})
        except BrokenPipeError:
            reader_left()
        except OSError as unwritten:
            reader_left()
            say(f"tenure: {error.message}\n  the answer could not be written: {unwritten}", sys.stderr)
    else:
        say(f"tenure: {error.message}\n" + (f"  {error.hint}\n" if error.hint else ""), sys.stderr)
    code = OF_ERROR.get(error.code)
    if code is None:  # a refusal that was raised by `check()` has the code of its outcome
        from tenure.core.outcomes import CODES

        code = exit_of(error.code) if error.code in CODES else 70
    return 75 if code in (10, 70) and not error.definite else code  # those two mean that nothing was done


def kept_crash(error: BaseException, words: Sequence[str]) -> Bug:
    """The bug to report, with the path of the details; arguments are listed without their values."""
    import tempfile
    import traceback

    if os.environ.get("TENURE_DEBUG"):
        traceback.print_exception(error)
    where = "set TENURE_DEBUG=1 to see the traceback"
    try:
        handle, path = tempfile.mkstemp(prefix="tenure-crash-", suffix=".txt")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"tenure {words[0] if words else ''}\n")
            traceback.print_exception(error, file=file)
        where = f"details are in {path}; please report them"
    except OSError:
        pass
    return Bug(f"internal error: {type(error).__name__}: {error}", where)
