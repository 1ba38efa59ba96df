"""The contract of an importer: items, and a report of errors and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.commands import Dependency
from tenure.core.errors import InvalidInput
from tenure.plans.nodes import Fault, Finding, SourcePosition

OPEN, DONE, DROPPED = "open", "done", "dropped"
LARGEST_SOURCE = limits.IMPORT_BYTES
MOST_NOTES = limits.IMPORT_NOTES


class Item(msgspec.Struct, kw_only=True):
    """One piece of work in another tool. `status` is OPEN, DONE or DROPPED, `was` the tool's own word for it."""

    id: str
    title: str
    path: str
    place: SourcePosition
    status: str = OPEN
    was: str = ""
    draft: str = ""  # why a person must publish it first
    description: str = ""
    type: str = "code"
    priority: int = 50
    tags: list[str] = []
    depends_on: list[Dependency] = []
    parent: str | None = None
    deadline: int | None = None
    not_before: int | None = None
    estimated: float | None = None  # seconds
    metadata: dict[str, Any] = {}


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Where the import differs from the source."""

    what: str  # done, dropped, begun, draft, met, loosened, parent, changed, kept
    id: str
    message: str
    path: str
    line: int


class Report:
    """Errors in the files, and differences between the import and its source."""

    def __init__(self, *, skip_bad: bool) -> None:
        self.skip_bad = skip_bad
        self.findings: list[Finding] = []
        self.notes: list[Note] = []

    def bad(self, path: str, place: SourcePosition, code: str, message: str, hint: str | None = None) -> None:
        """An unreadable part: an error, or a warning where bad parts are skipped."""
        level = "warning" if self.skip_bad else "error"
        self.findings.append(
            Finding(line=place.line, column=place.column, code=code, message=message, hint=hint, path=path, level=level)
        )

    def put(self, path: str, faults: Iterable[Fault | Finding]) -> None:
        for fault in faults:
            place = fault.place if isinstance(fault, Fault) else SourcePosition(fault.line, fault.column)
            self.bad(path, place, fault.code, fault.message, fault.hint)

    def note(self, item: Item, what: str, message: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.append(Note(what=what, id=item.id, message=message, path=item.path, line=item.place.line))


class Items(NamedTuple):
    path: str  # the file or folder they were read from
    items: list[Item]


class Importer(NamedTuple):
    """`read` returns the items of a folder or file, of one `tag` where it is given and the tool `has_tags`.

    It raises InvalidInput where the path has no files of the tool; errors inside them go to the report.
    """

    read: Callable[[Path, Report, str | None], Items]
    has_tags: bool = False


def find_source(path: Path, names: Sequence[str], hint: str) -> Path:
    """The file itself, or the first of these names below a folder; InvalidInput where there is none."""
    if path.is_file():
        return path
    for name in names:
        if (path / name).is_file():
            return path / name
    raise InvalidInput(f"{path}: no {names[0]} here", hint)


def read_source(path: Path) -> bytes:
    """The bytes of a file; InvalidInput where it cannot be read or is far too large."""
    try:
        with path.open("rb") as file:
            source = file.read(LARGEST_SOURCE + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}", "check the path") from None
    if len(source) > LARGEST_SOURCE:
        raise InvalidInput(f"{path}: more than {LARGEST_SOURCE >> 20} MiB")
    return source
