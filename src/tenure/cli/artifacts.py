"""`artifact put|get|list`: named outputs of a task, kept apart from its result."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenure.cli.answers import say
from tenure.cli.holder_verbs import RECEIPT, TASK
from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown

if TYPE_CHECKING:
    from tenure.client.contents import Content, Download


@options(
    TASK,
    arg("file", help="a file, or - for stdin"),
    RECEIPT,
    arg("--name", metavar="NAME", help="its name, as reports/summary.md (else the file's name)"),
    arg("--type", metavar="TYPE", help="its media type, as text/markdown (else by its name)"),
)
def put(run: Run, given: Namespace) -> Answer:
    """Store a file as an output of the task you hold. Tasks that depend on this one receive it.

    A later file of the same name replaces it; artifacts of earlier holders stay in the history.
    """
    name = given.name or ("" if given.file == "-" else os.path.basename(given.file))
    if not name:
        raise Usage("artifact put: stdin needs a --name")
    source: Content = sys.stdin.buffer if given.file == "-" else Path(run.folder, given.file)
    outcome = run.present(given, lambda r: run.client.put_artifact(r, name, source, type=given.type))
    return answered(outcome, (lambda: _kept(outcome.artifact or {})) if outcome.ok else "")


def _kept(artifact: Any) -> str:
    from tenure.cli.text_format import plain

    return f"kept {plain(artifact['name'])}, {sized(artifact['size'])}, as {plain(artifact['ref'])}"


@options(
    arg("task", help="the task; or artifact:TASK/NAME, as inputs name it"),
    arg("name", nargs="?", help="which one"),
    arg("--generation", type=int, metavar="N", help="from an earlier claim (else the last)"),
    arg("--into", default=".", metavar="DIR", help="the folder to write it into, under its name (.)"),
    arg("--as", dest="rename", metavar="NAME", help="under another name"),
    arg("--stdout", action="store_true", help="print its bytes instead"),
    arg("--force", action="store_true", help="overwrite an existing file"),
)
def get(run: Run, given: Namespace) -> Answer | int:
    """Write an artifact into a folder, never outside of it, and never over a file without --force."""
    task, name = _named(given)
    if given.stdout and run.is_json:
        raise Usage("artifact get: --stdout prints bytes, --json one JSON value", "give one of them")
    got = run.client.get_artifact(task, name, generation=given.generation)
    if given.stdout:
        return _print(got)
    from tenure.client.wire import plain as wire

    path = got.save(os.path.join(run.folder, given.into), given.rename, replace=given.force)
    shown = os.path.relpath(path, run.folder)
    return Answer({**wire(got.view), "path": shown}, f"{shown}, {sized(got.view['size'])}")


def _named(given: Namespace) -> tuple[str, str]:
    if given.name is not None:
        return given.task, given.name
    from tenure.core.artifacts import named_by

    named = named_by(given.task)
    if named is None:
        raise Usage("artifact get: which artifact?", "`tenure artifact list TASK` shows what there is")
    return named.task, named.name


def _print(got: Download) -> int:
    from tenure.cli.answers import reader_left

    try:
        if sys.stdout.isatty():  # a terminal would obey control characters in it
            say(b"".join(got).decode(errors="replace"))
            return 0
        for piece in got:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        reader_left()
    return 0


@options(TASK, arg("--generation", type=int, metavar="N", help="only of this claim"))
def list_(run: Run, given: Namespace) -> Answer:
    """List the artifacts of a task's claims, the latest generation of each name first."""
    task = run.task_held(given.task)
    return shown(run.client.artifacts(task, generation=given.generation), _listed)


def _listed(entries: list[dict[str, Any]]) -> str:
    from tenure.cli.text_format import plain, table

    rows = [
        (plain(e["name"]), sized(e["size"]), e["type"], e["generation"], e["agent"], e["digest"][:12]) for e in entries
    ]
    return table(rows, ("name", "size", "type", "gen", "agent", "sha-256")) or "no artifacts"


def sized(size: int) -> str:
    amount, unit = float(size), "bytes"
    for larger in ("KB", "MB", "GB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
