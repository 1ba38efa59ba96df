"""The file of an exported log: written from pages, checked without a store.

`core/audit_lines.py` has the form of its lines, `core/seal_check.py` what they prove.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from tenure.core import limits
from tenure.core.access_chain import Head
from tenure.core.audit_lines import BODY, DOCUMENT, EVENT, PRUNED, SEAL, Header, LineCheck, LogLine, end_line
from tenure.core.errors import InvalidInput
from tenure.core.records import Seal
from tenure.core.seal_check import SealCheck, SealReport

if TYPE_CHECKING:
    from tenure.core.views import ExportView


class NewExport:
    """Writes the lines of an export, and its end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._content = file, hashlib.sha256()
        self._lines = 0

    def write(self, lines: Iterable[str]) -> None:
        for line in lines:
            text = line.encode() + b"\n"
            self._content.update(text)
            self._file.write(text)
            self._lines += 1

    def end(self) -> ExportView:
        digest = self._content.hexdigest()
        self.write([end_line(digest)])
        return {"lines": self._lines, "digest": digest}


@contextmanager
def new_export(path: str | os.PathLike[str]) -> Iterator[NewExport]:
    """A new file with mode 0600; after an error there is none."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)}: {error.strerror}", "name a new file") from None
    try:
        with os.fdopen(number, "wb") as file:
            yield NewExport(file)
            file.flush()
            os.fsync(number)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - as it was opened
        raise


class FileReport(NamedTuple):
    header: Header
    digest: str | None  # of the file; None: of a format without one, where nothing covers the header
    report: SealReport


def check_file(
    path: str,
    *,
    head_of: Callable[[Header], Head | None] = lambda _: None,
    is_signed: Callable[[str, str, bytes], bool] | None = None,
) -> FileReport:
    """Check an export. `head_of` gives the head of its project that was kept elsewhere."""
    findings: list[str] = []
    try:
        with Path(path).open("rb") as file:
            lines = LineCheck(path, findings.append)
            header = lines.take_header(file.readline())
            rows = (line for text in file if (line := lines.take(text)) is not None)
            seals, after = _seals(rows)
            check = SealCheck(header.project, seals, tenant=header.tenant, is_signed=is_signed)
            for line in after:
                _take(check, line)
            lines.finish()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None
    report = check.report(head_of(header))
    if header.head != str(report.head):
        findings.append(f"the file names the head {header.head}, and its last seal is {report.head}")
    more = len(findings) - limits.AUDIT_FINDINGS
    left_out = [f"… and {more} more"] if more > 0 else []
    every = [*findings[: limits.AUDIT_FINDINGS], *left_out, *report.findings]
    return FileReport(header, lines.digest, report._replace(findings=every))


def _seals(rows: Iterator[LogLine]) -> tuple[list[Seal], Iterator[LogLine]]:
    """The seals, which come first, and the rows after them."""
    seals: list[Seal] = []
    for line in rows:
        if line.part != SEAL:
            return seals, chain([line], rows)
        seals.append(line.row)
    return seals, iter(())


def _take(check: SealCheck, line: LogLine) -> None:
    if line.part == EVENT:
        check.take(line.row)
    elif line.part == DOCUMENT:
        check.take_document(line.row)
    elif line.part == PRUNED:
        check.take_pruned(line.row)
    elif line.part == BODY:
        check.take_body(line.row.id, line.row.content)
