"""Every statement and key of a tenant's transactions names the tenant.

What a server's row-level security shows for PostgreSQL is shown here for the others, of each statement that they send.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from tenure.core.records import KINDS, Claim, Task, replace
from tenure.stores.mariadb import Mariadb
from tenure.stores.mariadb import connection as of_mariadb
from tenure.stores.mariadb import statement_texts as mariadb_texts
from tenure.stores.port import HOLDERS, TENANTS, Store
from tenure.stores.sqlite import Sqlite
from tenure.stores.sqlite import transaction as sqlite_texts
from tenure.stores.sqlite.connections import SqliteConnection
from tenure.stores.valkey import Valkey
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, SECRETS, Scene
from tests.engine.rich_scene import enrich
from tests.servers import mariadb as mariadb_server
from tests.servers import valkey as valkey_server
from tests.stores.tenants_named import tables_of, without_tenant

STATEMENTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN NOT")


def use(store: Store, clock: FakeClock, tenant: str) -> None:
    """Every verb of the port in one tenant, on a project with something of everything."""
    scene = Scene(store, clock, context=replace(SECRETS, tenant=tenant))
    with store.begin(tenant, write=True) as tx:
        tx.set_epoch("0e" * 4)
    enrich(scene)
    store.mark(tenant)
    here = {"project": PROJECT}
    with store.begin(tenant, write=False) as tx:
        for kind in KINDS:
            rows = tx.find(kind, {}, limit=5)
            tx.find(kind, here, order="-id", after=(None, "x"), limit=2)
            tx.load(kind, [(row.project, row.id) for row in rows] or [(PROJECT, "x"), (PROJECT, "y")])
            tx.load(kind, [(PROJECT, "x")])
            tx.count(kind, here, "project")
            tx.tally(kind, here, 5)
        tx.sums(Task, here, "state", ["generation"])
        for lane, heads in tx.lanes(PROJECT, 2).items():
            tx.ready(PROJECT, lane, after=heads[0], limit=2)
        tx.due(None, tx.now, 5)
        tx.due(PROJECT, tx.now, 5)
        tx.next_due(PROJECT)
        for where in ({}, here, here | {"task": "x"}, here | {"session": "s"}, here | {"causation_id": "x"}):
            tx.events(where)
            tx.events(where, limit=1, last=True)
        if HOLDERS in store.features:
            receipts = [(task.ref, task.generation) for task in tx.find(Task, here | {"state": "claimed"})]
            for some in (receipts[:1], receipts):
                tx.holders(PROJECT, some)  # type: ignore[attr-defined]  # of such stores
    with store.begin(tenant, write=True) as tx:
        tx.drop_events(PROJECT, [claim.task for claim in tx.find(Claim, here)])
    if TENANTS in store.features:
        store.tenants_due([tenant], 1 << 60, 0)


def texts_of(module: Any) -> Iterator[str]:
    """Its whole statements, also those that no run sends."""
    for text in vars(module).values():
        if isinstance(text, str) and text.lstrip().startswith(STATEMENTS):
            yield text


def check(sent: Sequence[str], tables: set[str], tenant: str, exceptions: dict[str, str]) -> None:
    assert tables >= {kind.table for kind in KINDS.values()} | {"event"}
    found = {part: text for text in dict.fromkeys(sent) for part in without_tenant(text, tables, tenant)}
    wrong = {part: text for part, text in found.items() if not any(start in part for start in exceptions)}
    assert wrong == {}
    stale = [start for start in exceptions if not any(start in part for part in found)]
    assert stale == [], "no statement is such an exception any more"
    touched = {table for text in sent for table in tables_of(text, tables, tenant)}
    assert tables == touched, "else nothing was shown of some"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT id FROM task WHERE tenant = ? AND project = ?", 0),
        ("SELECT id FROM task WHERE project = ?", 1),
        ("SELECT id FROM task WHERE tenant = 'zeta' AND id = 'FROM claim'", 0),
        ("SELECT id FROM task WHERE tenant = 'acme'", 1),
        ("SELECT id FROM task WHERE tenant = ? AND project = ? OR id = ?", 1),
        ("SELECT t.id FROM task AS t JOIN claim AS c ON c.task = t.id WHERE t.tenant = ?", 1),
        ("SELECT t.id FROM task AS t JOIN claim AS c ON c.tenant = t.tenant WHERE t.tenant = ?", 0),
        ("SELECT t.id FROM task AS t WHERE t.tenant = t.tenant", 1),
        ("SELECT (SELECT max(id) FROM claim) FROM task WHERE tenant = ?", 1),
        ('DELETE FROM "task" WHERE "tenant" = ?; UPDATE "claim" SET "tenant" = ?', 1),
        ('INSERT INTO "task" ("tenant", "id") VALUES (?, ?)', 0),
        ('INSERT INTO "task" ("id") VALUES (?)', 1),
        ("SELECT epoch FROM meta", 0),
    ],
)
def test_a_query_without_its_tenant_is_found(text: str, wrong: int) -> None:
    assert len(without_tenant(text, {"task", "claim"}, "zeta")) == wrong


# --- SQLite ---

# Its file keeps one tenant, and it is the file's own `check` that no row is another's.
OF_A_FILE = {
    "SELECT time FROM event ORDER BY sequence DESC": "the clock of the whole file",
    "SELECT max0@ FROM event": "the end of the whole file's log",
    "SELECT lane FROM task WHERE rowid = found.row": "a row that the query around it has found in the tenant",
    "SELECT lane, band, rank, sequence, id, plain FROM found JOIN task ON task.rowid": "as above",
}


def test_every_statement_of_sqlite_names_the_tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    made = SqliteConnection.__init__

    def noted(run: Callable[..., Any]) -> Callable[..., Any]:
        def noting(text: str, *values: Any) -> Any:
            sent.append(text)
            return run(text, *values)

        return noting

    def watched(self: SqliteConnection, raw: Any) -> None:
        made(self, raw)
        self.execute, self.executemany = noted(self.execute), noted(self.executemany)

    clock = FakeClock()
    Sqlite(str(tmp_path / "store.db"), clock=clock).close()
    monkeypatch.setattr(SqliteConnection, "__init__", watched)
    store = Sqlite(str(tmp_path / "store.db"), clock=clock)
    use(store, clock, "local")
    with store._use(lambda connection: connection.raw) as raw:
        tables = {
            name
            for (name,) in raw.execute(
                "SELECT m.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c"
                " WHERE m.type = 'table' AND c.name = 'tenant'"
            )
        }
    store.close()
    check([*sent, *texts_of(sqlite_texts)], tables, "local", OF_A_FILE)


# --- MariaDB ---

OF_ALL_TENANTS = {
    "UPDATE epoch SET epoch = ": "an epoch of the whole store is one of each tenant",
    "UPDATE turn SET held = held + 1 ORDER BY tenant": "in a cluster it ends the writers of all tenants",
    "SELECT tenant FROM epoch": "the names of the tenants whose claims it ends",
}


@pytest.mark.usefixtures("mariadb")
def test_every_statement_of_mariadb_names_the_tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    real = of_mariadb.Connection.run

    def run(link: Any, statements: Sequence[of_mariadb.Statement]) -> Any:
        sent.extend(of_mariadb.rendered(text, values) if values else text for text, values in statements)
        return real(link, statements)

    clock = FakeClock()
    store = Mariadb(mariadb_server.url_of(tmp_path), clock=clock)
    monkeypatch.setattr(of_mariadb.Connection, "run", run)
    use(store, clock, "zeta")
    monkeypatch.undo()
    columns = "SELECT table_name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = ?"
    tables = {name for (name,) in store._run([(columns, ["tenant"])])[0]}
    store.close()
    check([*sent, *texts_of(mariadb_texts)], tables, "zeta", OF_ALL_TENANTS)


# --- Valkey ---


@pytest.mark.usefixtures("valkey")
def test_every_key_of_valkey_begins_with_the_tenant(tmp_path: Path) -> None:
    """The server itself refuses any other key to this user, in scripts too."""
    place = valkey_server.url_of(tmp_path)
    space = place.partition("space=")[2]
    start = f"{{{space}:zeta}}:"
    of_the_store = (f"{{{space}}}:store", f"{{{space}}}:tenants")  # its form and place; the names of its tenants
    allowed = [f"~{key}" for key in (f"{start}*", *of_the_store)]
    clock = FakeClock()
    with redis.Redis.from_url(os.environ[valkey_server.WHERE].replace("valkey://", "redis://")) as link:
        link.acl_log_reset()
        link.execute_command("ACL", "SETUSER", "apart", "reset", "on", ">apart", "+@all", *allowed)
        store = Valkey(place.replace("://", "://apart:apart@"), clock=clock)
        use(store, clock, "zeta")
        store.close()
        link.acl_deluser("apart")
        refused = [entry["object"] for entry in link.acl_log() if entry["username"] == "apart"]
        parts = {key.decode().removeprefix(start).partition(":")[0] for key in link.scan_iter(f"{start}*", count=1000)}
    assert refused == [], "also where the store goes on without an answer"
    assert parts == {"versions", "meta", "log", "row", "index", "unique", "lanes", "lane", "due", "task"}
