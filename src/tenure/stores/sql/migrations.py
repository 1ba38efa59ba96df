"""Numbered, named, checksummed steps of a schema: `0001_initial.sql`, `0002_…`.

The first lines of each file are its header: `-- breaking: no` (older programs may continue while it is applied) and
`-- since: 0.1.0` (the first version that has it). Applied steps are recorded in the table `migration`; a store with a
recorded step whose text has changed since, or that this program does not have, is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tenure.core.errors import Bug, SchemaMismatch

_FILE = re.compile(r"(\d{4})_[a-z0-9_]+")
_HEADER = re.compile(r"-- (breaking|since): (\S+)")


class Migration(NamedTuple):
    number: int
    name: str  # with its number: 0001_initial
    breaking: bool
    since: str
    checksum: str
    text: str


class Applied(NamedTuple):
    """One row of the table `migration`."""

    number: int
    name: str
    checksum: str
    since: str


def read_migrations(folder: Path) -> tuple[Migration, ...]:
    """All steps in `folder`, in order. Raises Bug where one is misnamed, unmarked or missing in the count."""
    found = [_read(path) for path in sorted(folder.glob("*.sql"))]
    for expected, migration in enumerate(found, start=1):
        if migration.number != expected:
            raise Bug(f"{migration.name}: number {expected:04d} is missing before it")
    return tuple(found)


def _read(path: Path) -> Migration:
    name = path.name.removesuffix(".sql")
    match = _FILE.fullmatch(name)
    text = path.read_text("utf-8")
    header = dict(_HEADER.findall(text.split("\n\n", 1)[0]))
    if match is None or header.get("breaking") not in ("yes", "no") or "since" not in header:
        raise Bug(f"{path.name}: must be named 0002_what_it_does.sql and begin with '-- breaking: yes|no', '-- since:'")
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return Migration(int(match[1]), name, header["breaking"] == "yes", header["since"], checksum, text)


def pending(known: Sequence[Migration], applied: Sequence[Applied], what: str) -> tuple[Migration, ...]:
    """The steps still to apply. Raises SchemaMismatch where `what` has steps that this program does not have."""
    if len(applied) > len(known):
        newest = applied[-1]
        raise SchemaMismatch(
            f"{what} has schema {newest.number} ({newest.name}); this version of tenure knows {len(known)}",
            f"Use tenure {newest.since} or newer.",
        )
    for ours, theirs in zip(known, applied, strict=False):
        if (ours.number, ours.name, ours.checksum) != (theirs.number, theirs.name, theirs.checksum):
            raise SchemaMismatch(
                f"{what}: migration {theirs.number} was applied as {theirs.name} with checksum {theirs.checksum[:12]}; "
                f"this version of tenure has {ours.name} with {ours.checksum[:12]}",
                "It was made by another build of tenure. Open it with that one, or restore a backup.",
            )
    return tuple(known[len(applied) :])
