"""The file of an exported log: written from pages, checked without a store.

A line is a JSON object. The first one has the format, tenant, project and head; then come `seal`, `event`, `body`,
`document` and `pruned`, in this order: see `core/seal_check.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tenure.core.access_chain import Head
from tenure.core.decoders import converted
from tenure.core.errors import InvalidInput
from tenure.core.events import Event
from tenure.core.records import Archived, Body, PrunedLeaves, Seal
from tenure.core.seal_check import EXPORT, SealCheck, SealReport

_KINDS: dict[str, Any] = {"seal": Seal, "event": Event, "document": Archived, "pruned": PrunedLeaves}


@contextmanager
def new_export(path: str | os.PathLike[str]) -> Iterator[Callable[[Iterable[str]], int]]:
    """Writes lines to a new file with mode 0600; without an error at the end there is no file."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)}: {error.strerror}", "name a new file") from None
    try:
        with os.fdopen(number, "wb") as file:

            def write(lines: Iterable[str]) -> int:
                return sum(bool(file.write(line.encode() + b"\n")) for line in lines)

            yield write
            file.flush()
            os.fsync(number)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - as it was opened
        raise


class FileReport(NamedTuple):
    project: str
    head: Head  # as the file names it
    report: SealReport


def check_file(
    path: str,
    *,
    head_of: Callable[[str], Head | None] = lambda _: None,
    is_signed: Callable[[str, str, bytes], bool] | None = None,
) -> FileReport:
    """Check an export. `head_of` gives the head of a project that was kept elsewhere."""
    from tenure.core.access_chain import parse_head

    try:
        with Path(path).open("rb") as file:
            lines = _lines(path, file)
            first = next(lines, (0, {}))[1]
            if first.get("format") != EXPORT:
                raise InvalidInput(f"{path}: is not an export of a sealed log", "`tenure audit export FILE` writes one")
            project, tenant = str(first.get("project")), str(first.get("tenant"))
            seals, after = _seals(path, lines)
            check = SealCheck(project, seals, tenant=tenant, is_signed=is_signed)
            for number, line in after:
                _take(check, path, number, line)
            return FileReport(project, parse_head(str(first.get("head"))), check.report(head_of(project)))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None


def _lines(path: str, file: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in enumerate(file, 1):
        try:
            line = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _bad(path, number, "is not JSON: the file is damaged, or cut off") from None
        if not isinstance(line, dict):
            raise _bad(path, number, "is not a JSON object")
        yield number, line


def _seals(
    path: str, lines: Iterator[tuple[int, dict[str, Any]]]
) -> tuple[Sequence[Seal], Iterator[tuple[int, dict[str, Any]]]]:
    """The seals, which come first, and the lines after them."""
    seals: list[Seal] = []
    for number, line in lines:
        if "seal" not in line:
            return seals, chain([(number, line)], lines)
        seals.append(_row(path, number, line, "seal"))
    return seals, iter(())


def _take(check: SealCheck, path: str, number: int, line: dict[str, Any]) -> None:
    if "event" in line:
        check.take(_row(path, number, line, "event"))
    elif "document" in line:
        check.take_document(_row(path, number, line, "document"))
    elif "pruned" in line:
        check.take_pruned(_row(path, number, line, "pruned"))
    elif "body" in line:
        body: Body = _row(path, number, {"body": {"project": "", **line["body"]}}, "body", Body)
        check.take_body(body.id, body.content)
    else:
        raise _bad(path, number, "has nothing that an export has there")


def _row(path: str, number: int, line: dict[str, Any], name: str, kind: Any = None) -> Any:
    try:
        return converted(line[name], kind or _KINDS[name])
    except (msgspec.ValidationError, TypeError) as error:
        raise _bad(path, number, f"is not a {name}: {error}") from None


def _bad(path: str, number: int, what: str) -> InvalidInput:
    return InvalidInput(f"{path}:{number}: {what}", "export it again, or take another copy")
