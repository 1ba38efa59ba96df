"""Prints the column list that each table must have: `python -m tenure.stores.sql.columns [--postgres] [table …]`.

`--into FILE` puts them into a migration instead, which must not have been published yet.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
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


POSTGRES_TYPES = {
    "str": 'text COLLATE "C"', "int": "bigint", "bool": "boolean", "float": "double precision", "bytes": "bytea",
    # Not jsonb, which forgets how a number was written and refuses NUL; the engine alone reads it.
    "json": 'text COLLATE "C"',
}  # fmt: skip

# Rows that are written many times leave room on their pages for their next versions.
FILL = {"task": 70, "claim": 85, "agent": 70, "session": 70, "dag": 70, "track": 70, "leader": 70, "usage": 85}


def definition(column: Column) -> str:
    """One line of a CREATE TABLE, in SQLite's words."""
    return f"{column.name} {SQLITE_TYPES[column.type]}{'' if column.nullable else ' NOT NULL'}"


def postgres_definition(column: Column) -> str:
    """The same in PostgreSQL's, which reserves a few of our names."""
    return f'"{column.name}" {POSTGRES_TYPES[column.type]}{"" if column.nullable else " NOT NULL"}'


def create_table(table: str, struct: type[msgspec.Struct]) -> str:
    """What a migration says of a table. The event's sequence is its key: see the note in the migration."""
    lines = ["tenant TEXT NOT NULL"]
    if struct is Event:
        lines = ["sequence INTEGER PRIMARY KEY", "tenant TEXT NOT NULL"]
    lines += [definition(c) for c in columns_of(struct) if not (struct is Event and c.name == "sequence")]
    if struct is not Event:
        lines.append("PRIMARY KEY (tenant, project, id)")
    ending = "STRICT, WITHOUT ROWID" if table in NARROW else "STRICT"
    return _table(table, lines, f") {ending};")


def create_postgres_table(table: str, struct: type[msgspec.Struct]) -> str:
    """As `create_table`. An event also keeps the transaction that wrote it: who reads across projects asks for it."""
    lines = ['tenant text COLLATE "C" NOT NULL']
    if struct is Event:
        lines = ["sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", *lines]
    lines += [postgres_definition(c) for c in columns_of(struct) if not (struct is Event and c.name == "sequence")]
    if struct is Event:
        lines.append("xid xid8 NOT NULL DEFAULT pg_current_xact_id()")
    else:
        lines.append("PRIMARY KEY (tenant, project, id)")
    ending = f") WITH (fillfactor = {FILL[table]});" if table in FILL else ");"
    return _table(table, lines, ending)


def _table(name: str, lines: list[str], ending: str) -> str:
    return f"CREATE TABLE {name} (\n    " + ",\n    ".join(lines) + f"\n{ending}"


def refreshed(migration: str, create: Callable[[str, type[msgspec.Struct]], str] = create_table) -> str:
    """A migration's text with each table as its struct now is; a table that is new comes at the end."""
    for table, struct in tables():
        wanted = create(table, struct)
        block = re.compile(rf"^CREATE TABLE {table} \(.*?^\)[^;]*;", re.MULTILINE | re.DOTALL)
        if block.search(migration):
            migration = block.sub(lambda _, text=wanted: text, migration)  # type: ignore[misc]
        else:
            migration += f"\n{wanted}\n"
    return migration


def main(arguments: list[str]) -> None:
    create = create_table
    if arguments[:1] == ["--postgres"]:
        create, arguments = create_postgres_table, arguments[1:]
    if arguments[:1] == ["--into"]:
        path = Path(arguments[1])
        path.write_text(refreshed(path.read_text("utf-8"), create), "utf-8")
        return
    for table, struct in tables():
        if not arguments or table in arguments:
            sys.stdout.write(create(table, struct) + "\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
