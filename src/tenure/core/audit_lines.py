"""The lines of an exported log: how they are written, and the strict check that a file has these and no others.

A line is the canonical JSON of one row under the name of its part: keys sorted, no spaces, UTF-8, fields with their
defaults left out, a line break at its end. The parts come in order:

    {"exported_at":…,"format":"tenure.audit.v2","head":…,"project":…,"tenant":…}
    {"seal":…}      with rising numbers
    {"event":…}     with rising sequences; {"body":…}, a large value, follows the event that names it
    {"document":…}  of the archive, with rising ids
    {"event":…} {"pruned":…}  the event of a deletion, and the leaves of what it has deleted, with rising ids
    {"end":{"digest":…}}  the SHA-256 of every byte before this line

The seals prove the events. Nothing in the log proves the header, so the digest does: who changes the file must compute
it again, and then it differs from the one that the export has printed.

Files of `tenure.audit.v1`, which older versions wrote, have no end, may state defaults, have keys in the order of the
fields, and large values and events of deletions by the page. Nothing covers their header.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tenure.core.decoders import converted, defaults_of
from tenure.core.errors import InvalidInput
from tenure.core.events import Event
from tenure.core.records import Archived, Body, PrunedLeaves, Seal
from tenure.core.task_records import REF, is_reference

FORMAT, FORMER = "tenure.audit.v2", "tenure.audit.v1"
SEAL, EVENT, BODY, DOCUMENT, PRUNED, END = "seal", "event", "body", "document", "pruned", "end"
DELETION = "archive.pruned"
_KINDS: dict[str, Any] = {SEAL: Seal, EVENT: Event, BODY: Body, DOCUMENT: Archived, PRUNED: PrunedLeaves}
_TURN = {SEAL: 0, EVENT: 1, BODY: 1, DOCUMENT: 2, PRUNED: 3, END: 4}
_UNWRITTEN = {BODY: frozenset({"project", "uses"})}  # fields of a row that a line does not have
_sorted = msgspec.json.Encoder(order="sorted").encode


class Header(NamedTuple):
    """In the order of the former format."""

    format: str
    tenant: str
    project: str
    exported_at: int
    head: str


class LogLine(NamedTuple):
    part: str
    row: Any


def header_line(tenant: str, project: str, exported_at: int, head: str) -> str:
    return _sorted(Header(FORMAT, tenant, project, exported_at, head)._asdict()).decode()


def line_of(part: str, row: Any) -> str:
    """The canonical line of a row, as a reader of JSON has it: a key may have been a number before."""
    fields = {name: getattr(row, name) for name in _fields(part)}
    return _canonical(part, _row(part, msgspec.json.decode(msgspec.json.encode(fields)))).decode()


def end_line(digest: str) -> str:
    return _sorted({END: {"digest": digest}}).decode()


def named_bodies(event: Event) -> set[str]:
    """Names of the large values that the signature of an event's result covers."""
    tables = {table: fields for table, _, fields in event.patch}
    data: Any = (tables.get("result") or {}).get("data")
    return {str(data[REF])} if "signature" in tables and is_reference(data) else set()


def _fields(part: str) -> list[str]:
    left_out = _UNWRITTEN.get(part, frozenset())
    return [name for name in _KINDS[part].__struct_fields__ if name not in left_out]


def _row(part: str, fields: Any) -> Any:
    given = {"project": "", **fields} if part == BODY else fields
    return converted(given, _KINDS[part])


def _canonical(part: str, row: Any) -> bytes:
    defaults = defaults_of(type(row))
    fields = {name: getattr(row, name) for name in _fields(part)}
    return _sorted({part: {n: v for n, v in fields.items() if n not in defaults or v != defaults[n]}})


class LineCheck:
    """Reads the lines of a file in order. Faults in the way they are written go to `find`."""

    def __init__(self, path: str, find: Callable[[str], None]) -> None:
        self._path, self._find = path, find
        self._number = 0
        self._turn = 0
        self._last: dict[str, Any] = {EVENT: 0, DOCUMENT: "", PRUNED: ""}
        self._named: set[str] = set()  # by the event before this line: large values that may follow
        self._deletions: dict[int, Event] = {}  # in the log, by their sequence
        self._deletion: Event | None = None  # of the line before, in the last part
        self._repeated: set[str] = set()
        self._content = hashlib.sha256()
        self.digest: str | None = None  # of the file, as its end states it
        self.header = Header("", "", "", 0, "")

    @property
    def is_former(self) -> bool:
        return self.header.format == FORMER

    def take_header(self, text: bytes) -> Header:
        said = self._decoded(text) if text else {}
        if said.get("format") not in (FORMAT, FORMER):
            raise InvalidInput(
                f"{self._path}: is not an export of a sealed log", "`tenure audit export FILE` writes one"
            )
        try:
            header = Header(**{name: said.get(name) for name in Header._fields})  # type: ignore[arg-type]
            self.header = msgspec.convert(header, Header)
        except msgspec.ValidationError as error:
            raise self._bad(f"is not the header of an export: {error}") from None
        encoded = msgspec.json.encode if self.is_former else _sorted
        self._compare(text, encoded(self.header._asdict()), set(said) - set(Header._fields))
        return self.header

    def take(self, text: bytes) -> LogLine | None:
        """The row of a line for the check of the seals; None where that has it already, or needs no more."""
        if self.digest is not None:
            self._complain("comes after the end")
        before = self._content.copy()
        said = self._decoded(text)
        part = next((name for name in _TURN if name in said), None)
        if part is None or (part == END and self.is_former):
            raise self._bad("has nothing that an export has there")
        if part == END:
            self._take_end(text, said, before.hexdigest())
            return None
        try:
            row = _row(part, said[part])
        except (msgspec.ValidationError, TypeError) as error:
            raise self._bad(f"is not a {part}: {error}") from None
        self._check_form(part, row, text, said)
        return LogLine(part, row) if self._is_next(part, row) else None

    def finish(self) -> None:
        """After the last line."""
        self._check_deletion(None)
        if self.digest is None and not self.is_former:
            self._find("the file has no end: lines were cut off")

    # --- the form of a line ---

    def _decoded(self, text: bytes) -> dict[str, Any]:
        self._number += 1
        self._content.update(text)
        try:
            said = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._bad("is not JSON: the file is damaged, or cut off") from None
        if not isinstance(said, dict):
            raise self._bad("is not a JSON object")
        return said

    def _check_form(self, part: str, row: Any, text: bytes, said: dict[str, Any]) -> None:
        known = _fields(part)
        unknown = {*(set(said) - {part}), *(set(said[part]) - set(known))}
        if not self.is_former:
            self._compare(text, _canonical(part, row), unknown)
            return
        try:
            again = msgspec.json.encode(said)
        except (TypeError, OverflowError, RecursionError):  # an integer beyond 64 bits, which no row has
            again = b""
        in_order = [name for name in known if name in said[part]] == list(said[part])
        self._compare(text, again if in_order else b"", unknown)

    def _compare(self, text: bytes, canonical: bytes, unknown: set[str]) -> None:
        if unknown:
            self._complain(f"has the unknown field {min(unknown)[:80]!r}")
        elif text != canonical + b"\n":
            self._complain("is not as it was written: a field twice, in another place, or spelt in another way")

    # --- the order of lines ---

    def _is_next(self, part: str, row: Any) -> bool:
        """Check the place of a row; whether it is new to the check of the seals."""
        if part == EVENT and self._turn > _TURN[EVENT]:
            return self._is_deletion(row)
        self._check_deletion(row if part == PRUNED else None)
        if _TURN[part] < self._turn:
            self._complain(f"is a {part} behind the place of these")
        self._turn = max(self._turn, _TURN[part])
        if part == BODY:
            self._check_body(row)
        elif part in self._last:
            place = row.sequence if part == EVENT else row.id
            if place <= self._last[part]:
                self._complain(f"is there twice, or in another place ({part} {place})")
            self._last[part] = max(place, self._last[part])
        if part == EVENT:
            self._named = named_bodies(row)
            if row.kind == DELETION:
                self._deletions[row.sequence] = row
        return True

    def _check_body(self, row: Body) -> None:
        if self.is_former:
            return
        if row.id not in self._named:
            self._complain("is a large value that the event before it does not name")
        self._named.discard(row.id)

    def _is_deletion(self, event: Event) -> bool:
        """An event behind the log says what deleted the leaves after it; it may be younger than the log's end."""
        self._check_deletion(None)
        self._turn = max(self._turn, _TURN[PRUNED])
        if event.kind != DELETION or event.id in self._repeated:
            self._complain(f"is there twice, or in another place (event {event.sequence})")
        self._repeated.add(event.id)
        self._deletion = None if self.is_former else event
        if event.sequence > self._last[EVENT]:
            return True
        if self._deletions.get(event.sequence) != event:
            self._complain(f"differs from the same line in the log (event {event.sequence})")
        return False

    def _check_deletion(self, leaves: PrunedLeaves | None) -> None:
        """The line before names these leaves, or it names none."""
        named = None if self._deletion is None else self._deletion.id
        given = None if leaves is None or self.is_former else leaves.id
        if named != given:
            self._complain("does not follow its event" if given else "is not what the event before it names")
        self._deletion = None

    # --- the end ---

    def _take_end(self, text: bytes, said: dict[str, Any], digest: str) -> None:
        self._check_deletion(None)
        stated = said[END].get("digest") if isinstance(said[END], dict) else None
        self.digest = stated if isinstance(stated, str) else ""
        self._compare(text, end_line(self.digest).encode(), set(said) - {END})
        if self.digest != digest:
            self._find("the file was changed after it was written: its digest is not that of its lines")

    def _complain(self, what: str) -> None:
        self._find(f"line {self._number}: {what}")

    def _bad(self, what: str) -> InvalidInput:
        return InvalidInput(f"{self._path}:{self._number}: {what}", "export it again, or take another copy")
