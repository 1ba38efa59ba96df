"""Checks outputs in a separate process, which its parent may kill at any time. See `workers`.

Stdin brings orders: a line of JSON (`do`, the `sizes` of what follows, `seconds`), then that many bytes for each size.
Stdout answers each with lines of JSON: early results first, the last line with `done`. The end of stdin ends the
process, and so does its own alarm, if the parent does not kill it in time.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import msgspec

from tenure.core import limits

MOST = limits.REASONS
LONGEST = limits.REASON
REMEMBERED = 64  # compiled schemas
COMPILED_REGEX = 4 << 20  # bytes
OUT_OF_MEMORY = 77  # an exit code

DRAFTS: dict[str, type[jsonschema_rs.Validator]] = {
    "4": jsonschema_rs.Draft4Validator,
    "6": jsonschema_rs.Draft6Validator,
    "7": jsonschema_rs.Draft7Validator,
    "2019-09": jsonschema_rs.Draft201909Validator,
    "2020-12": jsonschema_rs.Draft202012Validator,
}

_compiled: dict[tuple[bytes, str], jsonschema_rs.Validator] = {}


def refuse(uri: str) -> Any:
    """The library would fetch it from the network or from a file."""
    raise ValueError(f"{uri[:200]} is not part of the schema, and nothing is fetched")


def compiled(schema: bytes, draft: str) -> jsonschema_rs.Validator:
    found = _compiled.get((schema, draft))
    if found is None:
        make = DRAFTS[draft] if draft else jsonschema_rs.validator_for
        found = make(
            msgspec.json.decode(schema),
            retriever=refuse,
            validate_formats=True,  # a `format` in a contract must hold
            pattern_options=jsonschema_rs.RegexOptions(size_limit=COMPILED_REGEX, dfa_size_limit=COMPILED_REGEX),
        )
        while len(_compiled) >= REMEMBERED:
            del _compiled[next(iter(_compiled))]
        _compiled[schema, draft] = found
    return found


def check_schema(schema: bytes, draft: bytes) -> None:
    """Is the schema usable? Also tried on small values, since some schemas fail only when they are used."""
    try:
        validator = compiled(schema, draft.decode())
        samples: tuple[Any, ...] = (None, {}, [])
        for smallest in samples:
            validator.is_valid(smallest)
    except (ValueError, RecursionError) as error:
        say(ok=False, reasons=[spelled(error)], done=True)
    else:
        say(ok=True, done=True)


def judge_schema(schema: bytes, draft: bytes, output: bytes) -> None:
    try:
        value = msgspec.json.decode(output)
        validator = compiled(schema, draft.decode())
    except (ValueError, RecursionError) as error:
        say(ok=False, reasons=[spelled(error)], done=True)
        return
    try:
        validator.validate(value)
    except (ValueError, RecursionError) as error:
        # The first error is found at once. The library collects all errors before it returns one, and 312 bytes of
        # schema can cause 262,144: so the first is reported before that.
        say(ok=False, reasons=[spelled(error)])
    else:
        say(ok=True, done=True)
        return
    try:
        errors = validator.iter_errors(value)
        reasons = [spelled(error) for _, error in zip(range(MOST), errors, strict=False)]
    except (ValueError, RecursionError):
        reasons = []  # the first error was reported
    say(ok=False, reasons=reasons, done=True)


def judge_regex(pattern: bytes, text: bytes) -> None:
    schema = msgspec.json.encode({"type": "string", "pattern": pattern.decode()})
    try:
        ok = compiled(schema, "2020-12").is_valid(text.decode())
    except (ValueError, RecursionError) as error:
        say(ok=False, reasons=[spelled(error)], done=True)
    else:
        say(ok=ok, done=True)


def spelled(error: Exception) -> str:
    """An error in one line: its path and message."""
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error)[:LONGEST]
    where = "".join(f"/{str(part)[:60]}" for part in error.instance_path[:20])
    what = error.message.partition("\n")[0]
    if len(what) > LONGEST:  # the library quotes the value before the error
        what = what[: LONGEST // 2] + " … " + what[-LONGEST // 3 :]
    return f"{where}: {what}" if where else what


def say(**what: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


ORDERS: dict[str, Callable[..., None]] = {
    "check_schema": check_schema,
    "judge_schema": judge_schema,
    "judge_regex": judge_regex,
}


def main() -> None:
    gc.disable()  # JSON has no cycles, and the search for them takes longer than the check
    say(ready=True)
    while line := sys.stdin.buffer.readline():
        order = msgspec.json.decode(line)
        given = [sys.stdin.buffer.read(size) for size in order["sizes"]]
        signal.setitimer(signal.ITIMER_REAL, order["seconds"])  # SIGALRM is not handled, so it ends the process
        try:
            ORDERS[order["do"]](*given)
        except MemoryError:
            sys.exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
