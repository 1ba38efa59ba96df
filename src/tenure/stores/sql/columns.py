"""Prints the column list that each table must have: `python -m tenure.stores.sql.columns [table …]`.

`--into FILE` puts them into a migration instead, which must not have been published yet.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tenure.core.events import Event
from tenure.core.records import KINDS
from tenure.stores.sql.codec import Column, columns_of

SQLITE_TYPES = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL", "bytes": "BLOB", "json": "TEXT"}

# Narrow rows live in the tree of their key: one page less to write each. Wide ones would make that tree deep.
NARROW = {
    "claim", "usage", "landing", "edge", "dag", "track", "project", "agent", "session", "model", "reservation",
    "leader",
}  # fmt: skip


def tables() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    for struct, kind in KINDS.items():
        yield kind.table, struct
    yield "event", Event


def definition(column: Column) -> str:
    """One line of a CREATE TABLE, in SQLite's words."""
    return f"{column.name} {SQLITE_TYPES[column.type]}{'' if column.nullable else ' NOT NULL'}"


def create_table(table: str, struct: type[msgspec.Struct]) -> str:
    """What a migration says of a table. The event's sequence is its key: see the note in the migration."""
    lines = ["tenant TEXT NOT NULL"]
    if struct is Event:
        lines = ["sequence INTEGER PRIMARY KEY", "tenant TEXT NOT NULL"]
    lines += [definition(c) for c in columns_of(struct) if not (struct is Event and c.name == "sequence")]
    if struct is not Event:
        lines.append("PRIMARY KEY (tenant, project, id)")
    ending = "STRICT, WITHOUT ROWID" if table in NARROW else "STRICT"
    return f"CREATE TABLE {table} (\n    " + ",\n    ".join(lines) + f"\n) {ending};"


def refreshed(migration: str) -> str:
    """A migration's text with each table as its struct now is; a table that is new comes at the end."""
    for table, struct in tables():
        wanted = create_table(table, struct)
        block = re.compile(rf"^CREATE TABLE {table} \(.*?^\) STRICT[^;]*;", re.MULTILINE | re.DOTALL)
        if block.search(migration):
            migration = block.sub(lambda _, text=wanted: text, migration)  # type: ignore[misc]
        else:
            migration += f"\n{wanted}\n"
    return migration


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--into"]:
        path = Path(arguments[1])
        path.write_text(refreshed(path.read_text("utf-8")), "utf-8")
        return
    for table, struct in tables():
        if not arguments or table in arguments:
            sys.stdout.write(create_table(table, struct) + "\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
