"""The schema: columns are the structs' fields, migrations are checked, a file that isn't ours is refused untouched."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tenure.core.errors import SchemaMismatch
from tenure.core.events import Event
from tenure.core.records import Agent, Task, replace
from tenure.stores.port import EVENT_UNIQUE, UNIQUE
from tenure.stores.sql.codec import columns_of, tables
from tenure.stores.sql.migrations import read_migrations
from tenure.stores.sql.statements import table_of
from tenure.stores.sqlite import Sqlite, schema, store_file
from tenure.stores.sqlite.transaction import DIALECT
from tenure.testing.clock import FakeClock
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import add, stored
from tests.docs import sqlite_schema
from tests.stores.columns import create_table, definition

MIGRATIONS = schema.FOLDER
PUBLISHED = {"0001_initial": "da6b7d4e25e56e458c05ec4d915c6dd267e16121ca78d06c4057097a23196ee5"}
SECOND = """-- breaking: yes
-- since: 9.8.7

CREATE TABLE extra (id TEXT PRIMARY KEY) STRICT;
ALTER TABLE agent ADD COLUMN extra TEXT;
CREATE INDEX agent_extra ON agent (extra);
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A later version of the program, with one migration more."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    number = len(list(folder.glob("*.sql"))) + 1
    (folder / f"{number:04d}_more.sql").write_text(SECOND)
    monkeypatch.setattr(schema, "FOLDER", folder)
    monkeypatch.setattr(store_file, "SNAPSHOT", str(folder / "schema.txt"))
    _forget()
    (folder / "schema.txt").write_text(sqlite_schema.page())
    yield
    _forget()


def _forget() -> None:
    schema.migrations.cache_clear()
    schema.built.cache_clear()
    store_file.snapshot.cache_clear()


def _shell(path: Path, text: str) -> list[tuple[object, ...]]:
    """As somebody with another program would."""
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(text).fetchall()
    finally:
        connection.close()


def test_every_field_has_its_column_and_every_column_its_field() -> None:
    connection = apsw.Connection(":memory:")
    for migration in schema.migrations():
        connection.execute(migration.text)
    wrong = []
    for table, struct in tables():
        found = {
            name: f"{name} {kind}{' NOT NULL' if needed else ''}"
            for name, kind, needed in connection.execute(
                'SELECT name, type, "notnull" FROM pragma_table_info(?) WHERE name <> ?', (table, "tenant")
            )
        }
        if not found:
            wrong.append(create_table(table, struct))
            continue
        wanted = {column.name: definition(column) for column in columns_of(struct)}
        if struct is Event:
            wanted["sequence"] = "sequence INTEGER"
        wrong += [f"ALTER TABLE {table} ADD COLUMN {wanted[name]};" for name in wanted.keys() - found.keys()]
        wrong += [f"ALTER TABLE {table} DROP COLUMN {name};" for name in found.keys() - wanted.keys()]
        wrong += [
            f"-- {table}: {found[name]} should be: {wanted[name]}"
            for name in found.keys() & wanted.keys()
            if found[name] != wanted[name]
        ]
    assert not wrong, "\n".join(["add a migration:", *sorted(wrong)])


def test_published_migrations_are_never_edited() -> None:
    published = {m.name: m.checksum for m in schema.migrations()}
    assert PUBLISHED.items() <= published.items()


def test_the_snapshot_is_what_the_migrations_make() -> None:
    assert store_file.STATISTICS.join(store_file.snapshot()) == sqlite_schema.page(), "run ./x docs schema.sql"


def test_the_unique_indexes_are_the_contracts() -> None:
    indexes = {}
    for kind, name, table, text in schema.built(len(schema.migrations())):
        match = re.match(r"CREATE UNIQUE INDEX \w+ ON \w+ \(tenant, project, ([\w, ]+)\)(?: WHERE (.*))?", text or "")
        if kind == "index" and match:
            indexes[table, tuple(match[1].split(", "))] = name
    names = {struct: table for table, struct in tables()}
    contract = {(names[kind], unique.fields) for kind, uniques in UNIQUE.items() for unique in uniques}
    assert indexes.keys() == contract | {("event", EVENT_UNIQUE.fields)}


def test_a_fresh_schema_equals_a_migrated_one(
    path: Path, tmp_path: Path, newer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sqlite(str(path)).close()
    known = schema.migrations()
    for done in range(1, len(known)):
        old = tmp_path / f"old{done}.db"
        with monkeypatch.context() as older:
            older.setattr(schema, "migrations", lambda done=done: known[:done])
            Sqlite(str(old)).close()
        Sqlite(str(old)).close()
        assert _shell(old, store_file.MASTER) == _shell(path, store_file.MASTER)
        assert _shell(old, store_file.STEPS) == _shell(path, store_file.STEPS)


def test_a_file_made_from_the_snapshot_equals_one_that_the_migrations_made(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    Sqlite(str(path), clock=clock).close()
    step_by_step = tmp_path / "steps.db"
    with monkeypatch.context() as without:
        without.setattr(schema, "snapshot", lambda: ("", ""))
        Sqlite(str(step_by_step), clock=clock).close()
    assert _shell(path, store_file.MASTER) == _shell(step_by_step, store_file.MASTER)
    kept = [name for kind, name, _, _ in _shell(path, store_file.MASTER) if kind == "table" and name != "meta"]
    for table in kept:
        ordered = f"SELECT * FROM {table} ORDER BY 1, 2, 3"
        assert _shell(path, ordered) == _shell(step_by_step, ordered), table
    meta = "SELECT schema, boot, clock_offset, ahead_at, ahead_uptime FROM meta"
    assert _shell(path, meta) == _shell(step_by_step, meta)


def test_a_newer_version_upgrades_after_a_backup(path: Path, request: pytest.FixtureRequest) -> None:
    store = Sqlite(str(path))
    add(store, row_of(Agent, project="p", id="bo"))
    number = store.schema
    store.close()
    request.getfixturevalue("newer")
    upgraded = Sqlite(str(path))
    assert upgraded.schema == number + 1
    assert set(stored(upgraded, Agent)) == {("p", "bo")}
    assert upgraded.is_copy is False
    backup = path.with_name(f"store.db.schema-{number:04d}.backup")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert _shell(backup, "SELECT schema FROM meta") == [(number,)]
    assert _shell(backup, "SELECT id FROM agent") == [("bo",)]
    upgraded.close()


def test_an_older_program_says_which_version_is_needed(path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("newer")
    Sqlite(str(path)).close()
    request.getfixturevalue("monkeypatch").undo()
    _forget()
    before = path.read_bytes()
    with pytest.raises(SchemaMismatch) as refusal:
        Sqlite(str(path))
    assert "_more" in refusal.value.message
    assert "9.8.7" in (refusal.value.hint or "")
    assert path.read_bytes() == before


def test_a_program_that_runs_while_the_schema_grows_stops_writing(path: Path, request: pytest.FixtureRequest) -> None:
    running = Sqlite(str(path))
    request.getfixturevalue("newer")
    Sqlite(str(path)).close()
    with pytest.raises(SchemaMismatch):
        add(running, row_of(Agent, project="p", id="bo"))


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    Sqlite(str(path)).close()
    request.getfixturevalue("newer")
    (broken,) = (tmp_path / "migrations").glob("*_more.sql")
    broken.write_text(SECOND + "INSERT INTO nowhere VALUES (1);\n")
    _forget()
    before = _shell(path, store_file.MASTER)
    with pytest.raises(Exception, match="nowhere"):
        Sqlite(str(path))
    assert _shell(path, store_file.MASTER) == before


def test_a_changed_migration_is_refused(path: Path) -> None:
    Sqlite(str(path)).close()
    _shell(path, "UPDATE migration SET checksum = 'f00' WHERE number = 1")
    with pytest.raises(SchemaMismatch, match="0001_initial"):
        Sqlite(str(path))


PLANTED = {
    "trigger": "CREATE TRIGGER planted AFTER INSERT ON agent BEGIN DELETE FROM event; END",
    "view": "CREATE VIEW planted AS SELECT * FROM task",
    "index": "CREATE INDEX planted ON task (title_of_nothing)",
    "table": "CREATE TABLE planted (x)",
}


@pytest.mark.parametrize("what", ["trigger", "view", "index", "table"])
def test_what_was_planted_in_the_file_is_refused_by_name(path: Path, what: str) -> None:
    Sqlite(str(path)).close()
    _shell(path, PLANTED[what].replace("title_of_nothing", "state"))
    with pytest.raises(SchemaMismatch, match=f"{what} 'planted'"):
        Sqlite(str(path))


def test_what_was_taken_out_of_the_file_is_refused_by_name(path: Path) -> None:
    Sqlite(str(path)).close()
    _shell(path, "DROP INDEX result_accepted")
    with pytest.raises(SchemaMismatch, match="result_accepted"):
        Sqlite(str(path))


def test_what_was_changed_in_the_file_is_refused_by_name(path: Path) -> None:
    Sqlite(str(path)).close()
    _shell(path, "DROP INDEX task_ref; CREATE INDEX task_ref ON task (tenant, project, ref)")
    with pytest.raises(SchemaMismatch, match="task_ref"):
        Sqlite(str(path))


def test_a_trigger_that_is_planted_later_does_not_run(path: Path) -> None:
    store = Sqlite(str(path))
    add(store, row_of(Task, project="p", id="one"))
    _shell(path, "CREATE TRIGGER planted AFTER INSERT ON agent BEGIN DELETE FROM task; END")
    add(store, row_of(Agent, project="p", id="bo"))
    assert set(stored(store, Task)) == {("p", "one")}


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    _shell(path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    with pytest.raises(SchemaMismatch, match="theirs"):
        Sqlite(str(path))
    assert _shell(path, "SELECT x FROM theirs") == [(1,)]


def test_an_update_sets_only_what_changed() -> None:
    task = row_of(Task, project="p", id="one")
    statement = table_of(Task, DIALECT).updating("local", task, replace(task, lease_until=5, renewals=2))
    assert statement is not None
    text, values = statement
    assert text.startswith('UPDATE "task" SET "lease_until" = ?, "renewals" = ? WHERE ')
    assert values[:2] == [5, 2]
    assert table_of(Task, DIALECT).updating("local", task, replace(task)) is None


def test_migrations_are_named_numbered_and_marked() -> None:
    known = read_migrations(MIGRATIONS)
    assert [m.number for m in known] == list(range(1, len(known) + 1))
    assert all(re.fullmatch(r"\d{4}_[a-z0-9_]+", m.name) for m in known)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", m.since) for m in known)
