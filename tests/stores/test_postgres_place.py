"""What a store in PostgreSQL is recognised by: a dump restored into its own schema is a copy, an upgrade is none."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.records import Claim, Result
from tenure.engine import Context, Engine
from tenure.engine.runtime.tenancy import TenantEngines
from tenure.stores.postgres import Postgres, schema
from tenure.stores.router import Router
from tests.servers.postgres import PostgresServer, program

WITHOUT_OID = "regexp_replace(place, '/[^/]*$', '')"


@pytest.fixture
def name(postgres: PostgresServer, tmp_path: Path) -> Iterator[str]:
    """A schema of this test's own."""
    name = "place_" + re.sub(r"\W", "_", tmp_path.name.lower())[-50:]
    yield name
    postgres.ask(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def engine_of(store: Postgres, tenant: str = "local") -> Engine:
    return Engine(store, SystemRandom(), Context(tenant=tenant))


def held(engine: Engine) -> str:
    """The receipt of a live claim."""
    engine.do(c.DefineProject(project="p"))
    engine.do(c.Add(project="p", task=NewTask(title="t")))
    return claimed(engine)


def claimed(engine: Engine, agent: str = "ann") -> str:
    return str(engine.do(c.ClaimNext(project="p", agent=agent, session=agent)).receipt)


def code_of(engine: Engine, receipt: str) -> str:
    return str(engine.do(c.Submit(project="p", receipt=receipt, data="x")).outcome)


def restored(postgres: PostgresServer, name: str, between: Any = None) -> None:
    """Dump the schema, do something, then put the dump into its place: the same schema of the same database."""
    dump = postgres.folder / f"{name}.dump"
    tools = program().parent
    reached = ["-h", "127.0.0.1", "-p", str(postgres.port), "-U", "tenure"]
    found = {what: shutil.which(what) or str(tools / what) for what in ("pg_dump", "pg_restore")}
    with dump.open("wb") as into:
        subprocess.run([found["pg_dump"], *reached, "-Fc", f"--schema={name}", "postgres"], stdout=into, check=True)
    if between is not None:
        between()
    postgres.ask(f"DROP SCHEMA {name} CASCADE")
    subprocess.run([found["pg_restore"], *reached, "-d", "postgres", str(dump)], check=True)


def test_a_dump_restored_into_its_own_schema_begins_an_epoch(postgres: PostgresServer, name: str) -> None:
    tenants = ("local", "acme")
    first = Postgres(postgres.place(name))
    engines = {tenant: engine_of(first, tenant) for tenant in tenants}
    held_before = {tenant: held(engine) for tenant, engine in engines.items()}
    epochs = {tenant: engine.read(lambda tx: tx.epoch) for tenant, engine in engines.items()}
    held_after: dict[str, str] = {}

    def go_on() -> None:
        """What the dump does not have: the claim ends, and its task is granted again."""
        for tenant, engine in engines.items():
            engine.do(c.Release(project="p", receipt=held_before[tenant]))
            held_after[tenant] = claimed(engine, "bo")

    restored(postgres, name, go_on)
    first.close()
    again = Postgres(postgres.place(name))
    assert again.is_copy
    home = engine_of(again)  # the first process
    assert not again.is_copy
    for tenant in tenants:
        engine = home if tenant == "local" else engine_of(again, tenant)
        assert engine.read(lambda tx: tx.epoch) != epochs[tenant]
        assert code_of(engine, held_before[tenant]) == code_of(engine, held_after[tenant]) == "STALE_EPOCH"
        ended = engine.read(lambda tx: tx.events({"kind": "task.epoch_ended"}))
        assert len(ended) == 1, tenant
        claims = engine.read(lambda tx: tx.find(Claim, {}))
        results = engine.read(lambda tx: tx.find(Result, {}))
        assert len({(claim.task, claim.epoch, claim.generation) for claim in claims}) == len(claims)
        assert not any(result.accepted for result in results)
    assert claimed(home, "cy").partition(":")[2][:8] != held_after["local"].partition(":")[2][:8]
    again.close()
    last = Postgres(postgres.place(name))
    assert not last.is_copy  # it is settled
    last.close()


def test_the_dump_of_a_tenants_own_schema_begins_an_epoch_there(postgres: PostgresServer, name: str) -> None:
    def tenant() -> tuple[Postgres, Engine, Router]:
        home = Postgres(postgres.place(name))
        engine = engine_of(home)
        engine.do(c.AddTenant(tenant="acme", isolation="schema"))
        router = Router(Postgres, time.monotonic)
        return home, TenantEngines(engine, time.monotonic, router=router).find("acme"), router

    home, acme, router = tenant()
    own = str(acme.store.place).split("/")[2]  # type: ignore[attr-defined]
    receipt = held(acme)
    router.close()
    home.close()
    restored(postgres, own)
    home, acme, router = tenant()
    assert not home.is_copy
    assert code_of(acme, receipt) == "STALE_EPOCH"
    router.close()
    home.close()
    postgres.ask(f"DROP SCHEMA {own} CASCADE")


STEP = schema.FOLDER / "0019_epochs_of_all.sql"


def before_the_step(postgres: PostgresServer, name: str) -> tuple[str, str]:
    """A store whose places and functions are as before schema 19; the receipt of a live claim, and a place.

    `tests/upgrades` opens stores of that time; here the step alone runs, whatever steps there are after it.
    """
    store = Postgres(postgres.place(name))
    receipt = held(engine_of(store, "acme"))
    engine_of(store).transact((), lambda work: work.tx.set_epoch("0a0a0a0a"))
    place = store.place
    store.close()
    for table in ("meta", "epoch"):
        postgres.ask(f"UPDATE {name}.{table} SET place = {WITHOUT_OID}")
    for function in ("begin_epochs", "place_here", "without_oid"):
        postgres.ask(f"DROP FUNCTION {name}.{function}")
    assert postgres.ask(f"SELECT place FROM {name}.meta").count("/") == 2
    return receipt, place


def step(postgres: PostgresServer, name: str) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as link:
        link.execute(f"SET search_path = {name}".encode())
        link.execute(STEP.read_bytes())


def test_the_step_adds_the_oid_and_begins_no_epoch(postgres: PostgresServer, name: str) -> None:
    receipt, place = before_the_step(postgres, name)
    before = postgres.ask(f"SELECT epoch FROM {name}.meta")
    step(postgres, name)
    store = Postgres(postgres.place(name))
    assert (store.is_copy, store.place) == (False, place)
    assert place.rpartition("/")[2] == postgres.ask(f"SELECT '{name}.meta'::regclass::oid")
    for table in ("meta", "epoch"):
        assert postgres.ask(f"SELECT place FROM {name}.{table}") == place
    assert postgres.ask(f"SELECT epoch FROM {name}.meta") == before
    assert engine_of(store).read(lambda tx: tx.epoch) == "0a0a0a0a"
    assert code_of(engine_of(store, "acme"), receipt) == "ACCEPTED"
    store.close()


def test_the_step_leaves_a_copy_a_copy(postgres: PostgresServer, name: str) -> None:
    receipt, _ = before_the_step(postgres, name)
    for table in ("meta", "epoch"):
        postgres.ask(f"UPDATE {name}.{table} SET place = regexp_replace(place, '/[0-9]+/', '/1/')")
    step(postgres, name)
    store = Postgres(postgres.place(name))
    assert store.is_copy
    assert code_of(engine_of(store, "acme"), receipt) == "STALE_EPOCH"
    assert engine_of(store).read(lambda tx: tx.epoch) != "0a0a0a0a"
    store.close()


def test_a_place_that_an_older_process_writes_is_no_copy(postgres: PostgresServer, name: str) -> None:
    """It was open before the upgrade, and begins an epoch after it."""
    store = Postgres(postgres.place(name))
    older = Postgres(postgres.place(name))
    older.place = older.place.rpartition("/")[0]
    began = engine_of(older).new_epoch("by an older process", alone=True).epoch
    receipt = held(engine_of(store))
    store.settled_here()
    postgres.ask(f"UPDATE {name}.meta SET place = {WITHOUT_OID}")
    store.settled_here()
    again = Postgres(postgres.place(name))
    assert not again.is_copy
    assert engine_of(again).read(lambda tx: tx.epoch) == began
    assert code_of(engine_of(again), receipt) == "ACCEPTED"
    for one in (store, older, again):
        one.close()


def test_a_place_is_the_same_where_only_its_last_part_is_missing() -> None:
    here = "7/5/tenure/1234"
    same = [schema.is_same_place(stored, here) for stored in (here, "7/5/tenure")]
    others = ("7/5/tenure/1235", "7/5/other", "7/6/tenure", "8/5/tenure/1234", "7/5", "")
    assert (same, [schema.is_same_place(stored, here) for stored in others]) == ([True] * 2, [False] * 6)
