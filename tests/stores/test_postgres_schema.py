"""The schema: columns are the structs' fields, migrations are checked, and what isn't ours is refused untouched."""

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.errors import SchemaMismatch, StoreUnavailable
from tenure.core.records import Agent
from tenure.engine import Engine
from tenure.stores.port import EVENT_UNIQUE, UNIQUE
from tenure.stores.postgres import Postgres, schema
from tenure.stores.postgres.connection import Rows, connect
from tenure.stores.postgres.tables import parts_of
from tenure.stores.sql.codec import columns_of, tables
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import add, stored
from tests.servers.postgres import PostgresServer
from tests.stores.columns import OWN

INITIAL = schema.FOLDER / "0001_initial.sql"
PUBLISHED = {"0001_initial": "345cef7efb704600e3f618873756fd6f94931b6a0929c1c1de5f3bcdda14f829"}
MORE = f"{len(schema.migrations()) + 1:04d}_more"
SECOND = """-- breaking: {}
-- since: 9.8.7

CREATE TABLE extra (id text PRIMARY KEY);
ALTER TABLE agent ADD COLUMN extra text;
CREATE INDEX agent_extra ON agent (extra);
"""
COLUMNS = """
SELECT table_name::text, column_name::text, data_type::text, is_nullable::text, collation_name::text,
    replace(column_default::text, table_schema || '.', ''), is_identity::text
FROM information_schema.columns WHERE table_schema = ? ORDER BY 1, ordinal_position
"""
INDEXES = "SELECT replace(indexdef, schemaname || '.', '') FROM pg_indexes WHERE schemaname = ? ORDER BY 1"
OPTIONS = "SELECT relname::text, reloptions::text FROM pg_class WHERE relnamespace = to_regnamespace(?) ORDER BY 1"
CHECKS = """
SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = to_regnamespace(?) ORDER BY 1
"""


@pytest.fixture
def place(postgres: PostgresServer, tmp_path: Path) -> Iterator[str]:
    """The name of a schema of this test's own."""
    name = "s_" + re.sub(r"\W", "_", tmp_path.name.lower())[-50:]
    yield name
    ask(postgres, f"DROP SCHEMA IF EXISTS {name}, {name}_old CASCADE")


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A later version of the program, with one migration more."""
    folder = tmp_path / "migrations"
    shutil.copytree(schema.FOLDER, folder)
    (folder / f"{MORE}.sql").write_text(SECOND.format("no"))
    monkeypatch.setattr(schema, "FOLDER", folder)
    schema.migrations.cache_clear()
    yield folder
    schema.migrations.cache_clear()


def ask(server: PostgresServer, text: str, *values: object) -> Rows:
    """As somebody with another program would."""
    link = connect(server.url, 30)
    try:
        return link.all(text, values) if values or text.lstrip().startswith("SELECT") else link.script(text) or []
    finally:
        link.close()


def url(server: PostgresServer, place: str) -> str:
    return f"{server.url}?schema={place}"


def test_every_field_has_its_column_and_every_column_its_field(postgres: PostgresServer, place: str) -> None:
    Postgres(url(postgres, place)).close()
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for table, column, kind, nullable, *_ in ask(postgres, COLUMNS, place):
        found.setdefault(table, {})[column] = (kind, nullable == "YES")
    kinds = {"str": "text", "int": "bigint", "bool": "boolean", "float": "double precision", "bytes": "bytea"}
    for table, struct in tables():
        assert {column.name for column in columns_of(struct)} | {"tenant"} <= found[table].keys(), table
        for part, columns in parts_of(table, struct).items():
            wanted = {c.name: (kinds.get(c.type, "text"), c.nullable) for c in columns}
            ours = {"tenant", *OWN.get(part, ())}
            assert {name: what for name, what in found[part].items() if name not in ours} == wanted, part


def test_every_table_has_a_tenant(postgres: PostgresServer, place: str) -> None:
    """For policies: one that has none must be a fact of the whole store."""
    Postgres(url(postgres, place)).close()
    tables_ = "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(?) AND relkind = 'r'"
    having = {table for table, column, *_ in ask(postgres, COLUMNS, place) if column == "tenant"}
    assert {name for (name,) in ask(postgres, tables_, place)} - having == {"meta", "migration"}


def test_published_migrations_are_never_edited() -> None:
    published = {m.name: m.checksum for m in schema.migrations()}
    assert PUBLISHED.items() <= published.items()


def test_the_unique_indexes_are_the_contracts() -> None:
    pattern = re.compile(r"CREATE UNIQUE INDEX \w+ ON (\w+) \(([\w, ]+), project, tenant\)")
    text = INITIAL.read_text().replace("(CASE WHEN accepted THEN run::text ELSE id END)", "run")
    found = {(table.removesuffix("_base"), tuple(fields.split(", "))) for table, fields in pattern.findall(text)}
    names = {struct: table for table, struct in tables()}
    contract = {(names[kind], unique.fields) for kind, uniques in UNIQUE.items() for unique in uniques}
    assert found == contract | {("event", EVENT_UNIQUE.fields)}


def test_a_fresh_schema_equals_a_migrated_one(
    postgres: PostgresServer, place: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Postgres(url(postgres, place)).close()
    known = schema.migrations()
    old = f"{place}_old"
    with monkeypatch.context() as older:
        older.setattr(schema, "migrations", lambda: known[:1])
        older.setattr(schema.planner_statistics, "statements", lambda: ())  # they name later columns
        Postgres(url(postgres, old)).close()
    Postgres(url(postgres, old)).close()
    for question in (COLUMNS, INDEXES, OPTIONS, CHECKS):
        assert ask(postgres, question, old) == ask(postgres, question, place)


def test_who_meets_tables_of_a_newer_program_is_told_to_start_again(postgres: PostgresServer, place: str) -> None:
    """Whatever its statements fail with: they may name what is not there any more."""
    store = Postgres(url(postgres, place))
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project="p"))
    link = store.connections.take()
    link.script(f'ALTER TABLE "{place}".task_hot RENAME TO task_warm; UPDATE "{place}".meta SET breaking = 99')
    link.script(
        f'DROP VIEW "{place}".task CASCADE; DROP FUNCTION "{place}".has_due; DROP TABLE "{place}".queue CASCADE'
    )
    link.script(f'ALTER TABLE "{place}".event RENAME TO happening; DROP TABLE "{place}".epoch')
    store.connections.give(link)
    add, claim = c.Add(project="p", task=c.NewTask(title="x")), c.ClaimNext(project="p", agent="a", session="s")
    for ask in (
        lambda: engine.do(add), lambda: engine.do(claim), engine.verify, store.check,
        lambda: store.mark("local"), lambda: store.look("local", "p", ("a",)),
    ):  # fmt: skip
        with pytest.raises(SchemaMismatch) as refusal:
            ask()
        assert "needs schema 99 or later" in refusal.value.message
        assert "newer version" in (refusal.value.hint or "")
    store.close()


def test_an_upgrade_keeps_what_was_there_and_the_older_program_is_told(
    postgres: PostgresServer, place: str, request: pytest.FixtureRequest
) -> None:
    store = Postgres(url(postgres, place))
    add(store, row_of(Agent, project="p", id="bo"))
    request.getfixturevalue("newer")
    upgraded = Postgres(url(postgres, place))
    assert (upgraded.schema, upgraded.is_copy) == (len(schema.migrations()), False)
    assert set(stored(upgraded, Agent)) == {("p", "bo")}
    # not breaking: who runs already goes on, who starts anew is told
    add(store, row_of(Agent, project="p", id="cy"))
    request.getfixturevalue("monkeypatch").undo()
    schema.migrations.cache_clear()
    with pytest.raises(SchemaMismatch) as refusal:
        Postgres(url(postgres, place))
    assert MORE in refusal.value.message
    assert "9.8.7" in (refusal.value.hint or "")
    upgraded.close()
    store.close()


def test_a_breaking_step_stops_programs_that_run(
    postgres: PostgresServer, place: str, request: pytest.FixtureRequest
) -> None:
    running = Postgres(url(postgres, place))
    folder: Path = request.getfixturevalue("newer")
    (folder / f"{MORE}.sql").write_text(SECOND.format("yes"))
    schema.migrations.cache_clear()
    Postgres(url(postgres, place)).close()
    with pytest.raises(SchemaMismatch, match="while this process ran"):
        add(running, row_of(Agent, project="p", id="bo"))
    running.close()


def test_a_migration_that_fails_leaves_everything_as_it_was(
    postgres: PostgresServer, place: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (newer / f"{MORE}.sql").write_text(SECOND.format("no") + "INSERT INTO nowhere VALUES (1);\n")
    schema.migrations.cache_clear()
    known = schema.migrations()
    with monkeypatch.context() as older:
        older.setattr(schema, "migrations", lambda: known[:-1])
        Postgres(url(postgres, place)).close()
    before = ask(postgres, COLUMNS, place)
    with pytest.raises(SchemaMismatch, match="nowhere"):
        Postgres(url(postgres, place))
    assert ask(postgres, COLUMNS, place) == before


def test_a_changed_migration_is_refused(postgres: PostgresServer, place: str) -> None:
    Postgres(url(postgres, place)).close()
    ask(postgres, f"UPDATE {place}.migration SET checksum = 'f00'")
    with pytest.raises(SchemaMismatch, match="0001_initial"):
        Postgres(url(postgres, place))


def test_another_programs_schema_is_refused_and_left_alone(postgres: PostgresServer, place: str) -> None:
    ask(postgres, f"CREATE SCHEMA {place}; CREATE TABLE {place}.theirs (x int)")
    with pytest.raises(SchemaMismatch, match="theirs"):
        Postgres(url(postgres, place))
    assert ask(postgres, "SELECT count(*) FROM pg_tables WHERE schemaname = ?", place) == [(1,)]


def test_a_store_that_is_not_there_is_not_made_unasked(postgres: PostgresServer, place: str) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        Postgres(url(postgres, place), create=False)
    assert ask(postgres, "SELECT to_regnamespace(?)::text", place) == [(None,)]


def test_of_many_who_open_at_once_one_makes_the_tables(postgres: PostgresServer, place: str) -> None:
    start = threading.Barrier(6)
    found: list[object] = []

    def open_it() -> None:
        start.wait(30)
        try:
            store = Postgres(url(postgres, place))
            with store.begin("local", write=False) as transaction:
                found.append(transaction.epoch)
            store.close()
        except BaseException as error:  # noqa: BLE001 - shown below, in the test's own thread
            found.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6
    assert len(set(found)) == 1, found


def test_what_somebody_planted_is_found_by_a_check(postgres: PostgresServer, place: str) -> None:
    store = Postgres(url(postgres, place))
    ask(
        postgres,
        f"CREATE FUNCTION {place}.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        f"CREATE TRIGGER planted BEFORE INSERT ON {place}.task_hot FOR EACH ROW EXECUTE FUNCTION {place}.f()",
    )
    assert any("planted" in line for line in store.check())
    store.close()
