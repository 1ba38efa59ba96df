"""Tables, migrations that may be interrupted anywhere, and which databases are refused."""

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.core.errors import SchemaMismatch, StoreUnavailable
from tenure.core.records import Agent, Edge
from tenure.stores.mariadb import Mariadb, connection, schema
from tenure.stores.port import EVENT_UNIQUE, UNIQUE
from tenure.stores.sql.codec import columns_of, tables
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import add, stored
from tests.servers.mariadb import MariadbServer
from tests.stores.columns import mariadb_definition, mariadb_next

PLACE = "schema_test"
COLUMNS = f"""
SELECT table_name, column_name, column_type, is_nullable, generation_expression, collation_name
FROM information_schema.columns WHERE table_schema = '{PLACE}' ORDER BY table_name, column_name
"""
KEYS = f"""
SELECT table_name, index_name, non_unique, seq_in_index, column_name, sub_part
FROM information_schema.statistics WHERE table_schema = '{PLACE}' ORDER BY 1, 2, 4
"""
OWN = {"task": {"lane_hash"}, "result": {"accepted_run"}}
# Checksums of what was shipped: an edit would make every store that has it one of another build.
PUBLISHED = {"0001_initial": "ee9c82faf60098b38837b762e61e5087c28d80bab5afc74161f042d59a805f07"}
# That make a store: the database before, the record after each step.
STATEMENTS = 1 + sum(len(schema.statements_of(step)) + 1 for step in schema.migrations())
NEXT = """-- breaking: {}
-- since: 0.3.0

ALTER TABLE agent ADD COLUMN IF NOT EXISTS shoe_size BIGINT NOT NULL DEFAULT 40;
CREATE TABLE IF NOT EXISTS shoe (
    id VARCHAR(20) PRIMARY KEY
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
UPDATE agent SET shoe_size = 41 WHERE shoe_size = 40;
ALTER TABLE meta ADD COLUMN IF NOT EXISTS shoes BIGINT;
"""


class Died(BaseException):
    """The process was killed."""


@pytest.fixture
def url(mariadb: MariadbServer) -> Iterator[str]:
    mariadb.drop(PLACE)
    yield mariadb.place(PLACE)
    mariadb.drop(PLACE)


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program with one migration more, which can be edited."""
    folder = tmp_path / "migrations"
    shutil.copytree(schema.FOLDER, folder)
    (folder / f"{len(schema.migrations()) + 1:04d}_shoes.sql").write_text(NEXT.format("yes"))
    monkeypatch.setattr(schema, "FOLDER", folder)
    schema.migrations.cache_clear()
    yield folder
    schema.migrations.cache_clear()


def shape(server: MariadbServer) -> list[tuple[Any, ...]]:
    return [*server.ask(COLUMNS), *server.ask(KEYS)]


def killed(url: str, after: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a process that opens the store was killed before its statement of this number that writes."""
    send = connection.Connection._send
    left = [after]

    def count(self: connection.Connection, together: list[bytes], answers: list[Any]) -> None:
        if not together[0].lstrip().startswith((b"SELECT", b"DO ")):
            if not left[0]:
                self.close()
                raise Died
            left[0] -= 1
        send(self, together, answers)

    with monkeypatch.context() as patch:
        patch.setattr(connection.Connection, "_send", count)
        try:
            Mariadb(url).close()
        except Died:
            return True
    return False


def test_every_field_has_its_column_and_every_column_its_field(mariadb: MariadbServer, url: str) -> None:
    Mariadb(url).close()
    found: dict[str, dict[str, str]] = {}
    for table, column, kind, nullable, *_ in mariadb.ask(COLUMNS):
        width = kind.upper().replace("(20)", "").replace("TINYINT(4)", "TINYINT")
        found.setdefault(table, {})[column] = f'"{column}" {width}{"" if nullable == "YES" else " NOT NULL"}'
    for table, struct in tables():
        wanted = {column.name: mariadb_definition(table, column) for column in columns_of(struct)}
        ours = {"tenant", *OWN.get(table, ())}
        assert {name: what for name, what in found[table].items() if name not in ours} == wanted, table


def test_no_step_is_missing() -> None:
    """What is printed here belongs into the next migration, with a key for each index that SQLite's has."""
    assert mariadb_next(step.text for step in schema.migrations()) == ""


def test_the_statements_of_a_next_step_are_named() -> None:
    first, *later = (step.text for step in schema.migrations())
    older = first.replace('    "public_key" LONGTEXT,\n', "").replace('TABLE IF NOT EXISTS "signature"', "TABLE shoe")
    made = mariadb_next([older, *later])
    assert 'ALTER TABLE "session" ADD COLUMN IF NOT EXISTS "public_key" LONGTEXT;' in made
    assert 'CREATE TABLE IF NOT EXISTS "signature" (' in made


def test_published_migrations_are_never_edited() -> None:
    assert PUBLISHED.items() <= {step.name: step.checksum for step in schema.migrations()}.items()


def test_no_step_alters_the_table_whose_age_identifies_the_store() -> None:
    assert "table_name = 'migration'" in schema.HERE
    for step in schema.migrations():
        for text in schema.statements_of(step):
            assert not re.match(r'(ALTER|DROP|RENAME|TRUNCATE|OPTIMIZE)\s+TABLE\s.*"?\bmigration\b', text, re.I | re.S)


def test_the_unique_keys_are_the_contracts() -> None:
    pattern = re.compile(r'CREATE TABLE IF NOT EXISTS "(\w+)"|UNIQUE KEY \w+ \("tenant", "project", ([^)]+)\)')
    found, table = set(), ""
    for name, fields in pattern.findall((schema.FOLDER / "0001_initial.sql").read_text()):
        table = name or table
        if fields:
            found.add((table, tuple(fields.replace('"', "").replace("accepted_run", "run").split(", "))))
    names = {struct: table for table, struct in tables()}
    contract = {(names[kind], unique.fields) for kind, uniques in UNIQUE.items() for unique in uniques}
    assert found == contract | {("event", EVENT_UNIQUE.fields)}


@pytest.mark.sampled
@pytest.mark.parametrize("after", range(STATEMENTS))
def test_tables_that_were_half_made_are_finished(
    mariadb: MariadbServer, url: str, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    assert killed(url, after, monkeypatch)
    store = Mariadb(url)
    assert not store.is_copy
    add(store, row_of(Agent, project="p", id="bo"))
    assert store.check() == []
    store.close()
    once = shape(mariadb)
    mariadb.drop(PLACE)
    Mariadb(url).close()
    assert once == shape(mariadb)


def test_every_statement_that_makes_tables_can_be_the_last(
    mariadb: MariadbServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not killed(url, STATEMENTS, monkeypatch)


def test_an_upgrade_that_was_interrupted_is_finished(
    mariadb: MariadbServer, url: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = schema.migrations()[:-1]
    for after in range(100):
        mariadb.drop(PLACE)
        with monkeypatch.context() as older:
            older.setattr(schema, "migrations", lambda: known)
            store = Mariadb(url)
            add(store, row_of(Agent, project="p", id="bo"))
        was_killed = killed(url, after, monkeypatch)
        if was_killed and after:  # the first statement closes it to older programs
            with pytest.raises(SchemaMismatch, match="Start again"):
                add(store, row_of(Agent, project="p", id="cy"))
        store.close()
        upgraded = Mariadb(url)
        assert (upgraded.schema, upgraded.is_copy) == (len(known) + 1, False)
        assert set(stored(upgraded, Agent)) == {("p", "bo")}
        upgraded.close()
        assert mariadb.ask(f"SELECT shoe_size FROM {PLACE}.agent") == ((41,),)
        if not was_killed:
            break
    assert after == 6  # closing, four statements, the record


def test_a_step_that_is_not_breaking_lets_older_programs_go_on(
    mariadb: MariadbServer, url: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (step,) = newer.glob("*_shoes.sql")
    step.write_text(NEXT.format("no"))
    schema.migrations.cache_clear()
    known = schema.migrations()[:-1]
    with monkeypatch.context() as older:
        older.setattr(schema, "migrations", lambda: known)
        store = Mariadb(url)
    Mariadb(url).close()
    add(store, row_of(Agent, project="p", id="bo"))
    store.close()
    with monkeypatch.context() as older:
        older.setattr(schema, "migrations", lambda: known)
        with pytest.raises(SchemaMismatch, match=r"0\.3\.0 or newer"):
            Mariadb(url)


def test_a_changed_migration_is_refused(mariadb: MariadbServer, url: str) -> None:
    Mariadb(url).close()
    mariadb.ask(f"UPDATE {PLACE}.migration SET checksum = 'other'")
    with pytest.raises(SchemaMismatch, match="another build"):
        Mariadb(url)


def test_another_programs_database_is_refused_and_left_alone(mariadb: MariadbServer, url: str) -> None:
    mariadb.ask(f"CREATE DATABASE {PLACE}", f"CREATE TABLE {PLACE}.task (id INT)")
    with pytest.raises(SchemaMismatch, match="not tenure's"):
        Mariadb(url)
    assert mariadb.ask(f"SHOW TABLES IN {PLACE}") == (("task",),)


def test_of_many_who_open_at_once_one_makes_the_tables(mariadb: MariadbServer, url: str) -> None:
    start = threading.Barrier(6)
    opened: list[Mariadb | BaseException] = []

    def open_it() -> None:
        start.wait(30)
        try:
            opened.append(Mariadb(url))
        except BaseException as error:  # noqa: BLE001 - shown below
            opened.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {type(one) for one in opened} == {Mariadb}
    assert mariadb.ask(f"SELECT count(*) FROM {PLACE}.migration") == ((len(schema.migrations()),),)
    for one in opened:
        assert isinstance(one, Mariadb)
        one.close()


def test_what_somebody_planted_is_found_by_a_check(mariadb: MariadbServer, url: str) -> None:
    store = Mariadb(url)
    assert store.check() == []
    add(store, row_of(Edge, project="p", id="gone>gone", task="gone", needs="gone"))
    mariadb.ask(
        f"CREATE TRIGGER {PLACE}.spy BEFORE INSERT ON {PLACE}.agent FOR EACH ROW SET @x = 1",
        f"ALTER TABLE {PLACE}.leader CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    )
    faults = " ".join(store.check())
    assert "trigger spy" in faults
    assert "edge.task" in faults
    assert "table leader" in faults
    store.close()


def test_a_server_of_another_make_or_too_old_is_refused(
    mariadb: MariadbServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("8.0.36", "10.6.12-MariaDB-1", "5.5.5-10.5.1-MariaDB"):
        with monkeypatch.context() as patch:
            patch.setattr(connection.Connection, "version", version)
            with pytest.raises(StoreUnavailable, match=re.escape(version)):
                Mariadb(url)
