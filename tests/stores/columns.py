"""Prints the columns that each table must have: `python -m tests.stores.columns [--postgres | --mariadb] [table …]`.

A published migration is never edited: compare this with the columns that the tables have, and write the next one. With
`--mariadb --next` the comparison is made: the statements are printed that the next migration needs, keys aside.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap

import msgspec

from tenure import stores
from tenure.core.events import Event
from tenure.stores.postgres.tables import HOT, parts_of
from tenure.stores.sql.codec import Column, columns_of, tables
from tenure.stores.sql.migrations import read_migrations

SQLITE_TYPES = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL", "bytes": "BLOB", "json": "TEXT"}

# Narrow rows live in the tree of their key: one page less to write each. Wide ones would make that tree deep.
NARROW = {
    "claim", "usage", "landing", "content", "edge", "dag", "track", "project", "agent", "session", "model",
    "reservation", "leader", "api_key", "log_cursor", "budget", "health_minute",
}  # fmt: skip


POSTGRES_TYPES = {
    "str": 'text COLLATE "C"', "int": "bigint", "bool": "boolean", "float": "double precision", "bytes": "bytea",
    # Not jsonb, which forgets how a number was written and refuses NUL; the engine alone reads it.
    "json": 'text COLLATE "C"',
}  # fmt: skip

# Rows that are written many times leave room on their pages for their next versions.
FILL = {
    "task_hot": 50, "claim_row": 50, "agent": 70, "session": 70, "dag": 70, "track": 70, "leader": 70, "usage": 85,
    "budget": 50, "health_minute": 70,
}  # fmt: skip

# Columns that no struct has: see the migration, `log_cursor` and `event_blocks`.
OWN = {
    "session": {"held_from": "bigint NOT NULL DEFAULT 0"},
    "event": {"of_claim": "boolean NOT NULL DEFAULT false", "xid": "xid8 NOT NULL DEFAULT pg_current_xact_id()"},
    "claim_row": {"grant_event": "bigint", "result_event": "bigint"},
    "task_base": {"space": "integer NOT NULL", "number": "bigint GENERATED ALWAYS AS IDENTITY"},
    "task_hot": {
        "space": "integer NOT NULL",
        "number": "bigint NOT NULL",
        "nonce": "bytea",
        "claim_user": 'text COLLATE "C"',
        "granted": "bigint",
        "grant_event": "bigint",
    },
}

MARIADB = Path(stores.__file__).parent / "mariadb" / "migrations"
MARIADB_TYPES = {
    "str": "LONGTEXT", "int": "BIGINT", "bool": "TINYINT", "float": "DOUBLE", "bytes": "LONGBLOB", "json": "LONGTEXT",
}  # fmt: skip

MARIADB_ENDING = "ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC"
MARIADB_EMPTY = {"str": "''", "int": "0", "bool": "FALSE", "float": "0", "bytes": "''", "json": "'[]'"}

# Characters of texts that MariaDB has in an index, whose key may have 3,072 bytes: four for a character. A text of
# "table.column" goes before one of the column alone.
MARIADB_WIDTHS = {
    "tenant": 64, "project": 128, "id": 512, "task.id": 128, "archived.id": 128, "brief.id": 128, "checkpoint.id": 128,
    "claim.id": 192, "edge.id": 300, "result.id": 128, "session.id": 255, "delivery.id": 400, "validation.id": 128,
    "schedule.id": 255, "spawn.id": 128, "event.id": 128, "key": 440, "ref": 512, "dag": 255, "agent": 255,
    "session": 255, "parent": 128, "local_name": 255, "idempotency_key": 255, "offer_to": 255, "set_aside_for": 255,
    "state": 32, "task": 128, "needs": 128, "request_id": 255, "process": 255, "webhook": 128, "causation_id": 128,
    "recipient": 255,
}  # fmt: skip


def definition(column: Column) -> str:
    """One line of a CREATE TABLE for SQLite."""
    return f"{column.name} {SQLITE_TYPES[column.type]}{'' if column.nullable else ' NOT NULL'}"


def postgres_definition(column: Column) -> str:
    """The same for PostgreSQL, which reserves a few of our names."""
    return f'"{column.name}" {POSTGRES_TYPES[column.type]}{"" if column.nullable else " NOT NULL"}'


def create_table(table: str, struct: type[msgspec.Struct]) -> str:
    """The statement for a migration. The key of an event is its sequence: see the note in the migration."""
    lines = ["tenant TEXT NOT NULL"]
    if struct is Event:
        lines = ["sequence INTEGER PRIMARY KEY", "tenant TEXT NOT NULL"]
    lines += [definition(c) for c in columns_of(struct) if not (struct is Event and c.name == "sequence")]
    if struct is not Event:
        lines.append("PRIMARY KEY (tenant, project, id)")
    ending = "STRICT, WITHOUT ROWID" if table in NARROW else "STRICT"
    return _table(table, lines, f") {ending};")


def create_postgres_table(table: str, struct: type[msgspec.Struct]) -> str:
    """As `create_table`. An event also has the transaction that wrote it, for readers across projects."""
    parts = parts_of(table, struct)
    made = [_postgres_part(name, columns, is_event=struct is Event) for name, columns in parts.items()]
    if table in HOT:
        made.append(_view(table, list(parts.values()), columns_of(struct)))
    return "\n\n".join(made)


def _postgres_part(name: str, columns: list[Column], *, is_event: bool) -> str:
    # The id comes first: it differs at the first comparison, while tenant and project are mostly equal.
    lines = ['tenant text COLLATE "C" NOT NULL']
    if is_event:
        lines = ["sequence bigint GENERATED ALWAYS AS IDENTITY", *lines]
    lines += [postgres_definition(c) for c in columns if not (is_event and c.name == "sequence")]
    lines += [f"{own} {kind}" for own, kind in OWN.get(name, {}).items()]
    key = "tenant, sequence" if is_event else "space, number" if name == "task_hot" else "id, project, tenant"
    lines.append(f"PRIMARY KEY ({key})")
    return _table(name, lines, f") WITH (fillfactor = {FILL[name]});" if name in FILL else ");")


def _view(table: str, parts: list[list[Column]], columns: tuple[Column, ...]) -> str:
    hot = {column.name for column in parts[0]}
    names = ", ".join(f'{"h" if column.name in hot else "b"}."{column.name}"' for column in columns)
    text = (
        f"CREATE VIEW {table} AS SELECT b.tenant, {names}, h.number, h.space FROM {table}_base AS b"
        f" JOIN {table}_hot AS h ON h.space = b.space AND h.number = b.number;"
    )
    return "\n".join(wrap(text, 118, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


def mariadb_definition(table: str, column: Column) -> str:
    """As `definition`. A text in an index has a width; others may have any length."""
    kind = MARIADB_TYPES[column.type]
    width = MARIADB_WIDTHS.get(f"{table}.{column.name}", MARIADB_WIDTHS.get(column.name))
    if column.type == "str" and width is not None:
        kind = f"VARCHAR({width})"
    return f'"{column.name}" {kind}{"" if column.nullable else " NOT NULL"}'


def create_mariadb_table(table: str, struct: type[msgspec.Struct]) -> str:
    """As `create_table`, without the keys of its indexes."""
    lines = ['"tenant" VARCHAR(64) NOT NULL', *(mariadb_definition(table, column) for column in columns_of(struct))]
    lines.append(f'PRIMARY KEY ("tenant", {"sequence" if struct is Event else "project, id"})')
    return _table(f'IF NOT EXISTS "{table}"', lines, f") {MARIADB_ENDING};")


def mariadb_next(migrations: Iterable[str]) -> str:
    """What the next migration needs so that every table and field is there. Every statement may be run again."""
    there: dict[str, set[str]] = {}
    for text in migrations:
        for table, body in re.findall(r'CREATE TABLE IF NOT EXISTS "(\w+)" \((.*?)\n\)', text, re.DOTALL):
            there.setdefault(table, set()).update(re.findall(r'^    "(\w+)"', body, re.MULTILINE))
        for table, column in re.findall(r'ALTER TABLE "(\w+)" ADD COLUMN IF NOT EXISTS "(\w+)"', text):
            there[table].add(column)
    made = []
    for table, struct in tables():
        if table not in there:
            made.append(create_mariadb_table(table, struct))
            continue
        for column in columns_of(struct):
            if column.name not in there[table]:
                default = "" if column.nullable else f" DEFAULT {MARIADB_EMPTY[column.type]}"
                made.append(
                    f'ALTER TABLE "{table}" ADD COLUMN IF NOT EXISTS {mariadb_definition(table, column)}{default};'
                )
    return "\n".join(made)


def _table(name: str, lines: list[str], ending: str) -> str:
    return f"CREATE TABLE {name} (\n    " + ",\n    ".join(lines) + f"\n{ending}"


def main(arguments: list[str]) -> None:
    if arguments == ["--mariadb", "--next"]:
        sys.stdout.write(mariadb_next(step.text for step in read_migrations(MARIADB)) + "\n")
        return
    ways = {"--postgres": create_postgres_table, "--mariadb": create_mariadb_table}
    create = create_table
    if arguments and arguments[0] in ways:
        create, arguments = ways[arguments[0]], arguments[1:]
    for table, struct in tables():
        if not arguments or table in arguments:
            sys.stdout.write(create(table, struct) + "\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
