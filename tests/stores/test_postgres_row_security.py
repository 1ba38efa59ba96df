"""Row-level security: tenants are kept apart by the server itself, whatever a statement forgets."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.errors import MoveRefused, SchemaMismatch, TenureError, UnsafeRole
from tenure.core.records import Agent, Archived, Task, replace
from tenure.engine import Context, Engine
from tenure.engine.archive.mover import move_all
from tenure.engine.audit import sealer
from tenure.engine.runtime.epoch import begin_epoch
from tenure.stores.port import Change
from tenure.stores.postgres import Postgres, row_security, schema
from tenure.stores.postgres.connection import Connection, Statement
from tenure.stores.postgres.errors import Failed
from tenure.stores.postgres.event_blocks import ITEMS
from tenure.stores.postgres.row_security import STORE_WIDE
from tests.servers.pgbouncer import PgbouncerServer
from tests.servers.postgres import WHERE, PostgresServer
from tests.servers.restricted import OWNER, POOLED, ROLE, open_restricted, restricted_schema, url_as

TENANTS = ("acme", "umbra")
HAVE_TENANT = """
SELECT c.relname::text, EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'tenant'),
    c.relrowsecurity, c.relforcerowsecurity, ARRAY(SELECT polname::text FROM pg_policy WHERE polrelid = c.oid)
FROM pg_class AS c WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p')
"""


@pytest.fixture
def place(restricted: PostgresServer, tmp_path: Path) -> Iterator[str]:
    """The name of a schema of this test's own."""
    name = "r_" + re.sub(r"\W", "_", tmp_path.name.lower())[-50:]
    yield name
    restricted.ask(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def engine_of(store: Postgres, tenant: str) -> Engine:
    return Engine(store, SystemRandom(), Context(tenant=tenant))


def fill(store: Postgres) -> None:
    """Both tenants get the same names: a project, an agent, tasks that are done, held and ready."""
    for tenant in TENANTS:
        engine = engine_of(store, tenant)
        engine.do(c.DefineProject(project="p"))
        engine.do(c.Register(project="p", agent="ann", session="s"))
        engine.run([c.Add(project="p", task=c.NewTask(title=f"of {tenant}")) for _ in range(4)])
        claims = [engine.do(c.ClaimNext(project="p", agent="ann", session="s")) for _ in range(2)]
        engine.do(c.Submit(project="p", receipt=str(claims[0].receipt), data=tenant))


@pytest.fixture
def store(restricted: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    store = open_restricted(tmp_path, None)
    fill(store)
    yield store
    store.close()


def all_as(url: str, text: str, *values: object, tenant: str | None = None) -> list[Any]:
    with psycopg.connect(url.partition("?")[0]) as link:
        if tenant is not None:
            link.execute("SELECT set_config('tenure.tenant', %s, true)", [tenant])
        return link.execute(text.encode(), values or None).fetchall()


# --- what is restricted ---


def test_every_table_has_a_policy_or_is_a_fact_of_the_whole_store(restricted: PostgresServer, tmp_path: Path) -> None:
    """A migration that makes a table without a tenant must name it, and say why everybody may read it."""
    place = restricted_schema(tmp_path)
    tables = all_as(restricted.url, HAVE_TENANT, place)
    assert {name for name, has_tenant, *_ in tables if not has_tenant} == STORE_WIDE
    for name, has_tenant, is_on, is_forced, policies in tables:
        if has_tenant:
            assert (is_on, is_forced, policies) == (True, False, [row_security.POLICY]), name


def test_the_role_sees_one_tenant_and_without_a_tenant_nothing(store: Postgres, tmp_path: Path) -> None:
    place = restricted_schema(tmp_path)
    url = url_as(ROLE, place)
    tables = all_as(url_as("tenure", place), HAVE_TENANT, place)
    views = ("task", "claim", "result", "task_listed", "task_counted")
    filled = 0
    for name in [*(name for name, has_tenant, *_ in tables if has_tenant), *views]:
        seen = {t: all_as(url, f"SELECT DISTINCT tenant FROM {place}.{name}", tenant=t) for t in TENANTS}
        assert all(rows in ([], [(tenant,)]) for tenant, rows in seen.items()), (name, seen)
        assert all_as(url, f"SELECT count(*) FROM {place}.{name}") == [(0,)], name
        filled += all(seen.values())
    assert filled > 15, "else nothing was shown"


def test_nothing_of_another_tenant_can_be_written(store: Postgres, tmp_path: Path) -> None:
    place = restricted_schema(tmp_path)
    url = url_as(ROLE, place)
    with psycopg.connect(url.partition("?")[0]) as link:
        link.execute("SELECT set_config('tenure.tenant', 'acme', true)")
        for text in ("UPDATE {0}.agent SET last_seen = 0", "DELETE FROM {0}.agent"):
            done = link.execute(f"{text} WHERE tenant = 'umbra'".format(place).encode())
            assert done.rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            link.execute(f"INSERT INTO {place}.space (tenant, project) VALUES ('umbra', 'x')".encode())


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE {0}.event SET kind = 'x'",
        "DELETE FROM {0}.event",
        "UPDATE {0}.event_block SET kind = 'x'",
        "DELETE FROM {0}.event_block",
        "TRUNCATE {0}.event",
        "UPDATE {0}.seal SET head = ''",
        "DELETE FROM {0}.seal",
        "TRUNCATE {0}.seal",
        "UPDATE {0}.pruned_leaves SET leaves = ''",
        "DELETE FROM {0}.pruned_leaves",
        "TRUNCATE {0}.agent",
        "UPDATE {0}.meta SET epoch = 'x'",
        "ALTER TABLE {0}.agent DISABLE ROW LEVEL SECURITY",
        "DROP POLICY tenure_tenant ON {0}.agent",
        "CREATE TABLE {0}.mine (x int)",
        "SELECT {0}.drop_events('umbra', 'p', '{{}}', '{{}}')",
        "SELECT {0}.clear_log('acme')",
        "DELETE FROM {0}.epoch",
    ],
)
def test_the_role_may_not(store: Postgres, tmp_path: Path, text: str) -> None:
    place = restricted_schema(tmp_path)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        all_as(url_as(ROLE, place), text.format(place), tenant="acme")


def test_a_table_of_the_callers_own_does_not_stand_for_one_of_ours(store: Postgres, tmp_path: Path) -> None:
    """A function with the owner's rights must find the schema's tables, not a temporary one of that name."""
    place = restricted_schema(tmp_path)
    with psycopg.connect(url_as(ROLE, place).partition("?")[0]) as link:
        link.execute(b"CREATE TEMP TABLE project AS SELECT 'planted'::text AS tenant")
        found = link.execute(f"SELECT {place}.tenants_here()".encode()).fetchall()
    assert {name for (name,) in found} == set(TENANTS)


def test_dropped_events_leave_no_item_behind(store: Postgres, tmp_path: Path) -> None:
    """A new item of a block must be emptied too: the function names each."""
    ((body,),) = all_as(
        url_as("tenure", "x"),
        "SELECT prosrc FROM pg_proc WHERE proname = 'drop_events' AND pronamespace = %s::regnamespace",
        restricted_schema(tmp_path),
    )
    for item in ITEMS:
        assert f'"{item}" = kept."{item}"' in body, item


@pytest.mark.parametrize("how", ["event", "block"])
def test_events_that_no_seal_covers_are_not_dropped_from_a_sealed_log(
    store: Postgres, tmp_path: Path, how: str
) -> None:
    """Whoever calls the function: it looks at the seals itself, also where the mark of the project was taken off."""
    place, engine = restricted_schema(tmp_path), engine_of(store, "acme")
    added: dict[str, Any] = engine.do(c.Add(project="p", task=c.NewTask(title="to be dropped"))).task or {}
    engine.do(c.AuditOn(project="p"))
    sealer.seal_all(engine, "p")
    engine.do(c.Note(project="p", task=added["key"], text="after the seal"))
    engine.do(c.ClaimNext(project="p", agent="ann", session="s"))
    engine.do(c.Add(project="p", task=c.NewTask(title="the last event stays in any case")))
    before = _events(store, "acme")

    def ask(text: str, *values: object) -> list[Any]:
        return all_as(url_as(ROLE, place), text.format(place), *values, tenant="acme")

    ((in_block,),) = ask("SELECT max(last) FROM {0}.event_block")
    tasks, sequences = ([added["id"]], []) if how == "event" else ([], [in_block])
    drop = "SELECT {0}.drop_events('acme', 'p', %s::text[], %s::bigint[])"
    for audited_at in (0, 1):
        ask("UPDATE {0}.project SET audited_at = %s RETURNING id", audited_at)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="no seal covers"):
            ask(drop, tasks, sequences)
    assert _events(store, "acme") == before
    sealer.seal_all(engine, "p")
    all_as(url_as(OWNER, place), drop.format(place), tasks, sequences, tenant="acme")  # it needs no document
    gone = {event.sequence for event in before if event.task in tasks or event.sequence in sequences}
    assert gone
    assert {event.sequence for event in _events(store, "acme")} == {event.sequence for event in before} - gone


def test_the_log_of_a_task_that_is_not_archived_is_not_dropped(store: Postgres, tmp_path: Path) -> None:
    """In a project without seals too. A document of the role's own does not cover more events than it has."""
    place, engine = restricted_schema(tmp_path), engine_of(store, "acme")
    added: dict[str, Any] = engine.do(c.Add(project="p", task=c.NewTask(title="alive"))).task or {}
    engine.do(c.Note(project="p", task=added["key"], text="kept"))
    engine.do(c.Add(project="p", task=c.NewTask(title="the last event stays in any case")))
    before = _events(store, "acme")
    drop = f"SELECT {place}.drop_events('acme', 'p', %s::text[], %s::bigint[])"
    (block,) = all_as(url_as(ROLE, place), f"SELECT max(last) FROM {place}.event_block", tenant="acme")
    for tasks, sequences in (([added["id"]], []), ([], list(block)), ([added["id"]], list(block))):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="not archived"):
            all_as(url_as(ROLE, place), drop, tasks, sequences, tenant="acme")
    assert _events(store, "acme") == before
    assert move_all(engine, "p", older=0).tasks == 1
    with store.begin("acme", write=True) as tx:
        (document,) = tx.find(Archived, {"project": "p"})
    assert document.events >= 2
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="not archived"):  # with another's document
        all_as(url_as(ROLE, place), drop, [document.id, added["id"]], [], tenant="acme")
    with store.begin("acme", write=True) as tx:
        tx.save([Change(None, replace(document, id=added["id"], key="X-1", ref="X-1", events=1))])
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="not archived"):
        all_as(url_as(ROLE, place), drop, [added["id"]], [], tenant="acme")
    assert [event for event in _events(store, "acme") if event.task == added["id"]]


EPOCHS = {
    "frozen under the same receipts": "epoch || '.1'", "a mark that is no number": "'0a1b2c3d.x'",
    "another form": "'now'", "another place": None,
}  # fmt: skip


@pytest.mark.parametrize("what", EPOCHS)
def test_an_epoch_that_the_program_would_not_make_is_refused(store: Postgres, tmp_path: Path, what: str) -> None:
    """Else the role could freeze a tenant that is in use, as one that has moved away."""
    place = restricted_schema(tmp_path)
    here = f"(SELECT place FROM {place}.meta)" if EPOCHS[what] else "'elsewhere'"
    in_force = f"SELECT coalesce((SELECT epoch FROM {place}.epoch), epoch) AS epoch FROM {place}.meta"
    value = EPOCHS[what] or "'0a1b2c3d'"
    text = (
        f"INSERT INTO {place}.epoch (tenant, epoch, place) SELECT 'acme', {value}, {here} FROM ({in_force}) AS f "
        "ON CONFLICT (tenant) DO UPDATE SET epoch = excluded.epoch, place = excluded.place RETURNING 1"
    )
    for _ in range(2):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="cannot be put in force"):
            all_as(url_as(ROLE, place), text, tenant="acme")
        begin_epoch(engine_of(store, "acme"), "from now on there is a row")


def test_a_live_log_is_not_cleared_by_way_of_a_mark_in_its_epoch(store: Postgres, tmp_path: Path) -> None:
    """Each step that the role could take by itself."""
    place, engine = restricted_schema(tmp_path), engine_of(store, "acme")
    before = _events(store, "acme")
    mark = (
        f"INSERT INTO {place}.epoch SELECT 'acme', '0a1b2c3d.1', place FROM {place}.meta "  # a move of the role's own
        "ON CONFLICT (tenant) DO UPDATE SET epoch = excluded.epoch RETURNING 1"
    )
    all_as(url_as(ROLE, place), mark, tenant="acme")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function"):
        all_as(url_as(ROLE, place), f"SELECT {place}.clear_log('acme')", tenant="acme")
    with pytest.raises(MoveRefused, match="may not delete the log"), store.begin("acme", write=True) as tx:
        tx.clear_log()
    assert _events(store, "acme") == before
    assert engine.tenant == "acme"


def test_the_log_of_a_tenant_that_moved_away_is_cleared_with_the_owners_url(tmp_path: Path, store: Postgres) -> None:
    place = restricted_schema(tmp_path)
    with store.begin("acme", write=True) as tx:
        tx.set_epoch("0a1b2c3d.1")
    elsewhere = url_as("tenure", place, f"{os.environ[WHERE].rpartition('/')[0]}/template1")
    with (
        closing(Postgres(url_as(ROLE, place), owner=elsewhere)) as wrong,
        pytest.raises(MoveRefused, match="TENURE_OWNER_URL does not count"),
        wrong.begin("acme", write=True) as tx,
    ):
        tx.clear_log()
    owned = Postgres(url_as(ROLE, place), owner=url_as(OWNER, place))
    with closing(owned):
        with owned.begin("acme", write=True) as tx:
            tx.clear_log()
        assert _events(owned, "acme") == []
        with pytest.raises((TenureError, Failed), match="moved away"), owned.begin("umbra", write=True) as tx:
            tx.clear_log()  # it is in use here
        assert _events(owned, "umbra")


# --- who may open it ---


@pytest.mark.parametrize(("role", "why"), [("tenure", "is a superuser"), (OWNER, "owns its tables")])
def test_a_role_that_no_policy_restricts_is_refused(store: Postgres, tmp_path: Path, role: str, why: str) -> None:
    with pytest.raises(UnsafeRole, match=f"the role {role} {why}.*TENURE_OWNER_URL"):
        Postgres(url_as(role, restricted_schema(tmp_path)))


def test_a_role_with_bypassrls_is_refused(restricted: PostgresServer, store: Postgres, tmp_path: Path) -> None:
    place = restricted_schema(tmp_path)
    with suppress(psycopg.errors.DuplicateObject):
        restricted.ask("CREATE ROLE tenure_bypassing LOGIN BYPASSRLS")
    restricted.ask(f"GRANT USAGE ON SCHEMA {place} TO tenure_bypassing")
    restricted.ask(f"GRANT SELECT ON ALL TABLES IN SCHEMA {place} TO tenure_bypassing")
    try:
        with pytest.raises(UnsafeRole, match="has BYPASSRLS"):
            Postgres(url_as("tenure_bypassing", place))
    finally:
        restricted.ask("DROP OWNED BY tenure_bypassing")


def test_off_lets_the_owner_open_it_again_and_the_role_goes_on(restricted: PostgresServer, place: str) -> None:
    owner = url_as(OWNER, place)
    Postgres(owner).close()
    row_security.run(owner, "on", ROLE)
    role = Postgres(url_as(ROLE, place))
    fill(role)
    row_security.run(owner, "off", None)
    for store in (Postgres(owner), role, Postgres(url_as(ROLE, place))):
        with store.begin("acme", write=False) as tx:
            assert len(tx.find(Task, {"project": "p"})) == 4
        assert engine_of(store, "acme").verify() == []
        store.close()


# --- what `check` finds ---

BROKEN: dict[str, tuple[str, str]] = {
    "a table without it": (
        "ALTER TABLE {0}.agent DISABLE ROW LEVEL SECURITY",
        "table agent: row-level security is off",
    ),
    "no policy": ("DROP POLICY tenure_tenant ON {0}.agent", "table agent: has no policy"),
    "another condition": (
        "ALTER POLICY tenure_tenant ON {0}.agent USING (true)",
        "table agent: has no policy tenure_tenant as",
    ),
    "a wider policy": ("CREATE POLICY more ON {0}.agent USING (true)", "table agent: the policy more allows more"),
    "a table without a tenant": ("CREATE TABLE {0}.more (x int)", "table more: has no column tenant"),
    "a view of its owner": ("ALTER VIEW {0}.task RESET (security_invoker)", "view task: has the rights of its owner"),
    "changing a seal": ("GRANT UPDATE (head) ON {0}.seal TO {1}", "may UPDATE seal"),
    "changing the log": ("GRANT UPDATE ON {0}.event TO {1}", "may UPDATE event"),
    "emptying a table": ("GRANT TRUNCATE ON {0}.agent TO {1}", "may TRUNCATE agent"),
    "a missing right": ("REVOKE DELETE ON {0}.agent FROM {1}", "may not DELETE agent, and needs to"),
    "tables of its own": ("GRANT CREATE ON SCHEMA {0} TO {1}", "may create tables in the schema"),
    "an open search path": (
        "ALTER FUNCTION {0}.tenants_here() RESET search_path",
        "function tenants_here: its search path is not fixed",
    ),
    "a function of everybody": (
        "GRANT EXECUTE ON FUNCTION {0}.tenants_here() TO PUBLIC",
        "function tenants_here: everybody may call it",
    ),
    "a foreign function": (
        "CREATE FUNCTION {0}.all_of() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "function all_of: has the rights of its owner, and is not tenure's",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_check_names_what_is_wrong(restricted: PostgresServer, place: str, what: str) -> None:
    owner = url_as(OWNER, place)
    Postgres(owner).close()
    row_security.run(owner, "on", ROLE)
    assert row_security.check(owner, None) == {ROLE: []}
    broken, found = BROKEN[what]
    restricted.ask(broken.format(place, ROLE))
    (findings,) = row_security.check(owner, ROLE).values()
    assert any(found in line for line in findings), findings
    restricted.ask(f"REVOKE ALL ON SCHEMA {place} FROM {ROLE}")


@pytest.mark.parametrize("power", ["SUPERUSER", "BYPASSRLS", "CREATEROLE", "NOLOGIN"])
def test_a_role_with_more_power_is_not_taken(restricted: PostgresServer, place: str, power: str) -> None:
    owner, role = url_as(OWNER, place), f"tenure_{power.lower()}"
    Postgres(owner).close()
    with suppress(psycopg.errors.DuplicateObject):
        restricted.ask(f"CREATE ROLE {role} {'LOGIN ' if power != 'NOLOGIN' else ''}{power}")
    with pytest.raises(UnsafeRole):
        row_security.run(owner, "on", role)
    with pytest.raises(UnsafeRole, match="owns tables"):
        row_security.run(owner, "on", OWNER)
    assert all_as(restricted.url, HAVE_TENANT, place)[0][2] is False


def test_the_printed_sql_is_what_on_runs(restricted: PostgresServer, place: str) -> None:
    owner = url_as(OWNER, place)
    Postgres(owner).close()
    texts = row_security.planned(owner, "on", ROLE)
    assert row_security.check(owner, None) == {}
    with psycopg.connect(owner.partition("?")[0]) as link:
        for text in texts:
            link.execute(text.encode())
    assert row_security.check(owner, None) == {ROLE: []}


# --- migrations ---

MORE = """-- breaking: no
-- since: 9.8.7

CREATE TABLE extra (tenant text COLLATE "C" NOT NULL, id text);
ALTER TABLE agent ADD COLUMN extra text;
UPDATE agent SET extra = tenant;
INSERT INTO extra SELECT tenant, id FROM agent;
CREATE OR REPLACE VIEW extras AS SELECT * FROM extra;
"""


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Makes this program one with a migration more."""
    with pytest.MonkeyPatch.context() as patch:

        def grow() -> None:
            folder = tmp_path / "migrations"
            shutil.copytree(schema.FOLDER, folder)
            (folder / f"{len(schema.migrations()) + 1:04d}_more.sql").write_text(MORE)
            patch.setattr(schema, "FOLDER", folder)
            schema.migrations.cache_clear()

        yield grow
    schema.migrations.cache_clear()


def test_a_migration_changes_the_rows_of_every_tenant_and_is_restricted_too(
    restricted: PostgresServer, place: str, later: Callable[[], None]
) -> None:
    owner, url = url_as(OWNER, place), url_as(ROLE, place)
    Postgres(owner).close()
    row_security.run(owner, "on", ROLE)
    role = Postgres(url)
    fill(role)
    role.close()
    later()
    with pytest.raises(SchemaMismatch, match=f"{ROLE} does not own.*TENURE_OWNER_URL"):
        Postgres(url)
    with pytest.raises(SchemaMismatch, match="TENURE_OWNER_URL does not count"):
        Postgres(url, owner=url_as("tenure", place, restricted.database("template1")))
    Postgres(url, owner=owner).close()
    for tenant in TENANTS:
        rows = all_as(url, f"SELECT tenant, extra FROM {place}.agent", tenant=tenant)
        assert rows
        assert set(rows) == {(tenant, tenant)}
        assert all_as(url, f"SELECT DISTINCT tenant FROM {place}.extras", tenant=tenant) == [(tenant,)]
    assert row_security.check(owner, None) == {ROLE: []}


# --- the whole store under the role ---


def test_archive_and_new_epochs_and_the_check_work_under_the_role(store: Postgres) -> None:
    other = engine_of(store, "umbra")
    before = other.verify(), len(_events(store, "umbra"))
    engine = engine_of(store, "acme")
    assert move_all(engine, "p", older=0).tasks == 1
    assert engine.verify() == []
    assert [e for e in _events(store, "acme") if e.kind == "task.completed"] == []  # dropped with its task
    begin_epoch(engine, "restored")
    assert (other.verify(), len(_events(store, "umbra"))) == before
    assert store.check() == []


def _events(store: Postgres, tenant: str) -> list[Any]:
    with store.begin(tenant, write=False) as tx:
        return tx.events({"project": "p"}, limit=1000)


def test_the_check_of_a_store_sees_every_tenant(restricted: PostgresServer, store: Postgres, tmp_path: Path) -> None:
    place = restricted_schema(tmp_path)
    restricted.ask(f"DELETE FROM {place}.queue WHERE tenant = 'umbra'")
    assert store.check() == ["2 entries of the queue are not as their tasks are"]


# --- a statement that forgets its tenant ---

NAMES_TENANT = re.compile(r"""(?P<name>(?:\w+\.)?"?\btenant\b"?(?:\ \|\|\ '')?)\ =\ (?P<value>\?|\$\d+)""", re.VERBOSE)


def forgetful(text: str) -> Iterator[str]:
    """The statement without each of its comparisons with the tenant in turn; what is compared stays a parameter."""
    for found in NAMES_TENANT.finditer(text):
        value = f"{found['value']}::text"
        yield f"{text[: found.start()]}({value} IS NOT NULL){text[found.end() :]}"


def test_a_statement_that_forgets_its_tenant_shows_nothing_of_another(
    store: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every statement that a tenant's reads send, without its tenant: the answers stay the same."""
    real, tried = Connection.run, set()

    def run(link: Connection, statements: Any, aside: Statement | None = None) -> Any:
        for text, values in statements:
            for without in forgetful(text):
                if (
                    without not in tried
                    and link.in_transaction
                    and text.lstrip().startswith(("SELECT", "(SELECT", "WITH"))
                ):
                    tried.add(without)
                    (answer,), (plain,) = real(link, [(without, values)]), real(link, [(text, values)])
                    assert sorted(map(repr, answer.rows())) == sorted(map(repr, plain.rows())), without
        return real(link, statements, aside)

    engine = engine_of(store, "acme")
    monkeypatch.setattr(Connection, "run", run)
    assert engine.verify() == []
    with store.begin("acme", write=False) as tx:
        tx.load(Task, [("p", "x"), ("p", "y")])
        for where in ({}, {"state": "ready"}, {"agent": "ann"}, {"session": "s"}, {"ref": "B-1"}, {"dag": "d"}):
            tx.find(Task, {"project": "p", **where}, limit=10)
            tx.count(Task, {"project": "p", **where}, "state")
        tx.find(Agent, {"project": "p"})
        for where in ({}, {"task": "x"}, {"session": "s"}):
            tx.events({"project": "p", **where})
    assert len(tried) > 40, len(tried)


def test_two_tenants_share_few_pooled_sessions_and_never_see_each_other(
    restricted: PostgresServer, pgbouncer: PgbouncerServer, tmp_path: Path
) -> None:
    store = open_restricted(tmp_path, None, pooled=True)
    fill(store)
    place = restricted_schema(tmp_path)
    stranger = pgbouncer.url.replace("/postgres", f"/{POOLED}")
    wrong: list[object] = []

    def go(worker: int) -> None:
        for n in range(25):
            tenant = TENANTS[(worker + n) % 2]
            try:
                engine = engine_of(store, tenant)
                engine.do(c.Add(project="p", task=c.NewTask(title=f"of {tenant}")))
                with store.begin(tenant, write=False) as tx:
                    wrong.extend(tx.find(Agent, {"project": "q"}))
                    seen = {row[0] for row in tx._read(f"SELECT DISTINCT tenant FROM {place}.task_base", ())}
                if seen != {tenant}:
                    wrong.append((tenant, seen))
                with psycopg.connect(stranger, prepare_threshold=None) as link:  # without a tenant
                    wrong.extend(link.execute(f"SELECT tenant FROM {place}.task_base".encode()).fetchall())
            except TenureError as error:
                wrong.append(error)

    threads = [threading.Thread(target=go, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    store.close()
