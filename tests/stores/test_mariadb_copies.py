"""A MariaDB store restored elsewhere, its tenants, its clock and its values."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.core import commands as c
from tenure.core.errors import Conflict
from tenure.core.records import Agent, Task, replace
from tenure.engine import Context, Engine
from tenure.stores.mariadb import Mariadb
from tenure.stores.port import Change
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Dice, Scene, code_of
from tenure.testing.samples import event_of
from tenure.testing.suites.store_setting import logged, stored, write
from tests.servers.mariadb import MariadbServer, url_of
from tests.stores.mariadb_setting import agent, on_server


@pytest.fixture
def store(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    yield from on_server(tmp_path)


# --- copies and tenants ----------------------------------------------------------------------------------------


def test_a_store_restored_elsewhere_begins_a_new_epoch_for_every_tenant(mariadb: MariadbServer, tmp_path: Path) -> None:
    clock = FakeClock()
    url = url_of(tmp_path)
    store = Mariadb(url, clock=clock)
    scene = Scene(store, clock)
    receipt = scene.take(scene.add("work"))
    strangers = Engine(store, Dice(1), Context(tenant="other"))
    strangers.new_epoch("they have their own from now on")
    strangers.do(c.DefineProject(project="p"))
    strangers.do(c.Add(project="p", task=c.NewTask(title="theirs")))
    theirs = strangers.do(c.ClaimTask(project="p", task="A-001", agent="bo", session="s")).receipt
    name = url.rpartition("/")[2].partition("?")[0]
    mariadb.ask("UPDATE meta SET place = 'elsewhere'", "UPDATE epoch SET place = 'elsewhere'", database=name)
    store.close()
    copy = Mariadb(url, clock=clock)
    assert copy.is_copy
    engine = Engine(copy, Dice(2))
    assert not copy.is_copy
    (refused,) = engine.run([c.Submit(project="p", receipt=receipt, data="x")])
    assert code_of(refused) == "STALE_EPOCH"
    (refused,) = Engine(copy, Dice(3), Context(tenant="other")).run([c.Submit(project="p", receipt=theirs, data="x")])
    assert code_of(refused) == "STALE_EPOCH"
    copy.close()
    again = Mariadb(url, clock=clock)
    assert not again.is_copy
    again.close()


def test_a_table_that_was_made_again_is_a_copy(mariadb: MariadbServer, tmp_path: Path) -> None:
    url = url_of(tmp_path)
    Mariadb(url).close()
    name = url.rpartition("/")[2].partition("?")[0]
    mariadb.ask("DO SLEEP(1.1)", f"ALTER TABLE `{name}`.migration ENGINE=InnoDB")  # as a restored dump makes it
    copy = Mariadb(url)
    assert copy.is_copy
    Engine(copy, Dice(2))
    copy.close()
    again = Mariadb(url)
    assert not again.is_copy
    again.close()


def test_tenants_with_the_same_names_share_nothing(mariadb: MariadbServer, tmp_path: Path) -> None:
    store = Mariadb(url_of(tmp_path), clock=FakeClock())
    mine, theirs = (Engine(store, Dice(n), Context(tenant=tenant)) for n, tenant in enumerate(("local", "other")))
    for engine in (mine, theirs):
        engine.do(c.DefineProject(project="p"))
        engine.do(c.Add(project="p", task=c.NewTask(title="work", tags=("x",), idempotency_key="once")))
    receipt = mine.do(c.ClaimTask(project="p", task="A-001", agent="bo", session="s")).receipt
    (foreign,) = theirs.run([c.Submit(project="p", receipt=receipt, data="stolen")])
    assert code_of(foreign) not in ("ACCEPTED", "STALE_GENERATION")
    with store.begin("other", write=False) as tx:
        (task,) = tx.find(Task, {})
        assert (task.state, task.agent, tx.find(Agent, {})) == ("ready", None, [])
        assert "task.claimed" not in [e.kind for e in tx.events({})]
        assert (tx.next_due("p"), tx.due(None, 1 << 60, 9), tx.due("p", 1 << 60, 9)) == (None, [], [])
        assert [h.id for lane in tx.lanes("p") for h in tx.ready("p", lane, limit=9)] == [task.id]
    with store.begin("local", write=False) as tx:
        (held,) = tx.find(Task, {})
    with pytest.raises(Conflict):  # the row of one tenant is no row of the other's, whatever is said of it
        write(store, Change(replace(held, id="task_of_the_first"), None), tenant="other")
    assert mine.verify() == theirs.verify() == []
    store.close()


def test_the_servers_clock_is_used_unless_one_is_handed_in(store: Mariadb) -> None:
    with store.begin("local", write=False) as reading:
        first = reading.now
    with store.begin("local", write=True) as writing:
        second = writing.now
    assert first <= second
    assert abs(second - time.time_ns() // 1000) < 60_000_000


def test_values_of_any_size_are_kept(store: Mariadb) -> None:
    """Beyond one packet of statements, and beyond what one INSERT takes."""
    rows = [agent(f"a{n}", type="'\\\"%s?" * 40_000) for n in range(8)]
    events = [event_of(id=str(n), message="x" * 400_000) for n in range(9)]
    write(store, *(Change(None, row) for row in rows), events=events)
    assert list(stored(store, Agent).values()) == rows
    assert [(e.id, len(e.message)) for e in logged(store)] == [(str(n), 400_000) for n in range(9)]
