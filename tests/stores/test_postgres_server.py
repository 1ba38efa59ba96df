"""What only a server can do to us: die, stand still, cut an answer off, be restored elsewhere, be asked by others."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.errors import Conflict, InvalidInput, OutcomeUnknown, StoreUnavailable
from tenure.core.records import Agent, Task, replace
from tenure.engine import Context, Engine
from tenure.process_table import called
from tenure.stores.open_store import open_store as opened
from tenure.stores.port import Change
from tenure.stores.postgres import Postgres
from tenure.stores.postgres.connection import Connection, connect
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Dice, Scene, code_of
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write
from tests.servers.postgres import PostgresServer, url_of


@pytest.fixture
def store(postgres: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    store = Postgres(url_of(tmp_path))
    yield store
    store.close()


@pytest.fixture
def other(postgres: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    """Another process's, as far as the server can tell."""
    other = Postgres(url_of(tmp_path))
    yield other
    other.close()


@pytest.fixture
def admin(postgres: PostgresServer) -> Iterator[Connection]:
    link = connect(postgres.url, 30)
    yield link
    link.close()


def agent(name: str = "bo", **fields: Any) -> Agent:
    return row_of(Agent, project="p", id=name, **fields)


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < give_up
        threading.Event().wait(0.005)


def in_thread(action: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """What it returned or raised, once it has ended."""
    answers: list[object] = []

    def run() -> None:
        try:
            answers.append(action())
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


# --- connections -----------------------------------------------------------------------------------------------


def test_idle_connections_that_died_are_not_noticed_by_callers(
    postgres: PostgresServer, tmp_path: Path, admin: Connection
) -> None:
    store = Postgres(url_of(tmp_path, application_name="idle"))
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'idle'"
    add(store, agent())
    assert admin.all(kill)
    assert set(stored(store, Agent)) == {("p", "bo")}
    assert admin.all(kill)
    add(store, agent("cy"))
    assert admin.all(kill)
    assert store.mark("local") == 0
    store.close()


def test_the_server_sees_what_runs_and_on_which_host(store: Postgres, admin: Connection) -> None:
    ((pid,),) = store._read("SELECT pg_backend_pid()", ())
    assert admin.all("SELECT application_name FROM pg_stat_activity WHERE pid = ?", [pid]) == [(called(),)]


def test_a_connection_lost_before_the_commit_is_definite_and_leaves_nothing(store: Postgres, admin: Connection) -> None:
    def lose() -> None:
        with store.begin("local", write=True) as transaction:
            transaction.save([Change(None, agent())])
            ((pid,),) = transaction._read("SELECT pg_backend_pid()", ())
            admin.all("SELECT pg_terminate_backend(?)", [pid])
            transaction.load(Agent, [("p", "bo")])

    with pytest.raises(StoreUnavailable) as caught:
        lose()
    assert caught.value.definite
    assert stored(store, Agent) == {}


@pytest.fixture
def ghost(store: Postgres, admin: Connection) -> Iterator[None]:
    """A synchronous standby that never answers: every commit waits for it. The store is open by then."""
    admin.script("ALTER SYSTEM SET synchronous_standby_names = 'ghost'")
    admin.all("SELECT pg_reload_conf()")
    until(lambda: admin.all("SHOW synchronous_standby_names") == [("ghost",)])
    yield
    admin.script("ALTER SYSTEM RESET synchronous_standby_names")
    admin.all("SELECT pg_reload_conf()")


@pytest.mark.usefixtures("ghost")
@pytest.mark.parametrize("how", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_commit_whose_standby_was_not_waited_for_is_not_told_as_done(
    store: Postgres, admin: Connection, how: str
) -> None:
    assert added_while_the_wait_is_ended(store, admin, how) == [OutcomeUnknown]
    assert set(stored(store, Agent)) == {("p", "bo")}  # it happened all the same, on this server


@pytest.mark.usefixtures("ghost")
def test_a_role_that_is_shown_no_warnings_is_still_told_of_the_standby(admin: Connection, tmp_path: Path) -> None:
    store = Postgres(url_of(tmp_path, options="-c client_min_messages=error"))
    assert added_while_the_wait_is_ended(store, admin, "pg_cancel_backend") == [OutcomeUnknown]
    store.close()


def added_while_the_wait_is_ended(store: Postgres, admin: Connection, how: str) -> list[type]:
    thread, answers = in_thread(lambda: add(store, agent()))
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    until(lambda: bool(admin.all(waiting)))
    admin.all(f"SELECT {how}(pid) FROM ({waiting}) AS found")
    thread.join(30)
    return [type(answer) for answer in answers]


def test_a_server_that_is_not_there_is_told_as_away(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        Postgres(f"postgresql://nobody:secret@127.0.0.1:1/none?host={tmp_path}")
    assert "secret" not in caught.value.message


def test_a_pool_that_is_used_up_says_so(postgres: PostgresServer, tmp_path: Path) -> None:
    store = Postgres(url_of(tmp_path, pool="2"), patience=0.05)
    third = store.begin("local", write=False)
    with (
        store.begin("local", write=False),
        store.begin("local", write=False),
        pytest.raises(StoreUnavailable, match="pool="),
    ):
        third.__enter__()
    assert stored(store, Agent) == {}
    store.close()


def test_a_forked_process_is_refused(store: Postgres) -> None:
    def child(answer: Any) -> None:
        try:
            store.begin("local", write=False)
        except StoreUnavailable as error:
            answer.send(error.message)

    here, there = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    assert here.poll(30)
    assert "forked" in here.recv()
    process.join(30)


def test_prepared_statements_that_are_gone_cost_a_retry_and_no_more(store: Postgres) -> None:
    for name in ("a", "b", "c"):
        add(store, agent(name))
    link = store.connections.take()
    assert link.prepares
    link.script("DEALLOCATE ALL")
    store.connections.give(link)
    with pytest.raises(Conflict):
        add(store, agent("d"))
    add(store, agent("d"))
    assert len(stored(store, Agent)) == 4


# --- URLs ------------------------------------------------------------------------------------------------------


def test_a_url_is_shown_without_its_password(postgres: PostgresServer, tmp_path: Path) -> None:
    store = opened(url_of(tmp_path, password="hush").replace("//tenure@", "//tenure:hush@"))
    assert "hush" not in store.url
    store.close()


@pytest.mark.parametrize(
    "more", ["schema=No", "schema=a;b", 'schema="x"', "pool=0", "pool=x", "direct=here", "bogus=1"]
)
def test_a_url_that_makes_no_sense_is_refused(more: str) -> None:
    with pytest.raises(InvalidInput):
        Postgres(f"postgresql://u@h/d?{more}")


# --- locks -----------------------------------------------------------------------------------------------------


def test_writers_of_one_project_wait_and_of_two_do_not(store: Postgres, other: Postgres) -> None:
    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now  # the first question takes it
        with other.begin("local", write=True) as theirs:
            theirs.save([Change(None, row_of(Agent, project="q", id="bo"))])
        thread, answers = in_thread(lambda: add(other, agent("late")))
        mine.save([Change(None, agent("early"))])
        assert mine.find(Agent, {"project": "p"}) == [agent("early")]
        assert answers == []
    thread.join(30)
    assert answers == [None]
    assert set(stored(store, Agent)) == {("p", "early"), ("p", "late"), ("q", "bo")}


def test_a_lock_that_does_not_come_is_told_as_away(store: Postgres, tmp_path: Path) -> None:
    impatient = Postgres(url_of(tmp_path), patience=0.05)
    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now  # the first question takes it
        with pytest.raises(StoreUnavailable) as caught:
            add(impatient, agent())
        assert caught.value.definite
    impatient.close()


def test_now_is_read_after_the_lock_was_waited_for(store: Postgres, other: Postgres) -> None:
    times: list[int] = []

    def late() -> None:
        with other.begin("local", write=True) as transaction:
            transaction.lock("write", ["p"])
            times.append(transaction.now)

    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now  # the first question takes it
        thread, answers = in_thread(late)
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: mine._read(waits, ()) == [(1,)])
        ((end,),) = mine._read("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", ())
    thread.join(30)
    assert answers == [None]
    assert times[0] >= end


def test_locks_of_several_projects_are_taken_in_one_order(store: Postgres, other: Postgres, admin: Connection) -> None:
    deadlocks = "SELECT sum(deadlocks)::bigint FROM pg_stat_database"
    before = admin.all(deadlocks)
    names = [f"project-{n}" for n in range(6)]

    def take(one: Postgres, order: list[str]) -> Callable[[], int]:
        def run() -> int:
            for number in range(40):
                with one.begin("local", write=True) as transaction:
                    transaction.lock("write", order[number % 6 :] + order[: number % 6])
                    assert transaction.now
            return 40

        return run

    runs = [in_thread(take(one, order)) for one in (store, other) for order in (names, names[::-1])]
    for thread, _ in runs:
        thread.join(60)
    assert [answers for _, answers in runs] == [[40]] * 4
    admin.all("SELECT pg_stat_clear_snapshot()")
    assert admin.all(deadlocks) == before


# --- the log ---------------------------------------------------------------------------------------------------


def test_a_reader_across_projects_never_skips_what_commits_late(store: Postgres, other: Postgres) -> None:
    with store.begin("local", write=True) as slow:
        slow.append([event_of(id="early", project="p")])
        assert [e.id for e in slow.events({})] == ["early"]  # it has its sequence by now
        write(other, events=[event_of(id="late", project="q")])
        assert logged(other) == []
        with other.begin("local", write=False) as transaction:
            assert [e.id for e in transaction.events({"project": "q"})] == ["late"]  # of one project: at once
            assert [e.id for e in transaction.events({}, last=True)] == ["late"]
    assert [e.id for e in logged(other)] == ["early", "late"]


def test_a_strangers_transaction_does_not_hold_the_log_back(store: Postgres, admin: Connection) -> None:
    admin.run([("BEGIN", ()), ("SELECT pg_current_xact_id()", ())])
    write(store, events=[event_of(id="a"), event_of(id="b", project="q")])
    assert [e.id for e in logged(store)] == ["a", "b"]
    admin.run([("ROLLBACK", ())])


def test_a_late_commit_wakes_who_waits_though_its_sequence_is_lower(store: Postgres, other: Postgres) -> None:
    with store.begin("local", write=True) as slow:
        slow.append([event_of(id="early", project="p")])
        assert slow.events({})
        write(store, events=[event_of(id="late", project="q")])
        ready = threading.Event()

        def wait() -> bool:
            mark = other.mark("local")
            ready.set()
            return bool(other.wait({"local": mark}, 30))

        thread, answers = in_thread(wait)
        assert ready.wait(30)
        assert answers == []
    thread.join(30)
    assert answers == [True]


def test_waiting_goes_on_after_the_listening_connection_was_lost(
    store: Postgres, other: Postgres, admin: Connection
) -> None:
    mark = other.mark("local")
    thread, answers = in_thread(lambda: bool(other.wait({"local": mark}, 30)))
    listens = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query LIKE '%pg_current_snapshot%'"
    until(lambda: bool(admin.all(f"{listens} AND pid <> pg_backend_pid()")))
    admin.all(f"SELECT pg_terminate_backend(pid) FROM ({listens} AND pid <> pg_backend_pid()) AS found")
    write(store, events=[event_of()])
    thread.join(30)
    assert answers == [True]


def test_a_commit_of_another_tenant_is_no_news(store: Postgres, other: Postgres) -> None:
    """Also while the thread listens, and marks need no query."""
    for tenant in ("local", "elsewhere"):
        write(store, events=[event_of()], tenant=tenant)
        assert other.wait({tenant: 0}, 30) == {tenant}
    until(lambda: other.notifier.mark("local") is not None and other.notifier.mark("elsewhere") is not None)
    marks = {tenant: other.mark(tenant) for tenant in ("local", "elsewhere")}
    write(store, events=[event_of(id="e2")], tenant="elsewhere")
    assert other.wait({"elsewhere": marks["elsewhere"]}, 30) == {"elsewhere"}
    assert other.notifier.changed(other.notifier.seen({"local": marks["local"]})) == frozenset()
    assert other.wait({"local": marks["local"]}, 0) == frozenset()


# --- copies and tenants ----------------------------------------------------------------------------------------


def test_a_store_restored_elsewhere_begins_a_new_epoch_for_every_tenant(
    postgres: PostgresServer, tmp_path: Path, admin: Connection
) -> None:
    clock = FakeClock()
    store = Postgres(url_of(tmp_path), clock=clock)
    scene = Scene(store, clock)
    receipt = scene.take(scene.add("work"))
    strangers = Engine(store, Dice(1), Context(tenant="other"))
    strangers.do(c.DefineProject(project="p"))
    strangers.do(c.Add(project="p", task=c.NewTask(title="theirs")))
    theirs = strangers.do(c.ClaimTask(project="p", task="A-001", agent="bo", session="s")).receipt
    schema = url_of(tmp_path).rpartition("=")[2]
    admin.script(f"UPDATE {schema}.meta SET place = 'elsewhere'; UPDATE {schema}.epoch SET place = 'elsewhere'")
    store.close()
    copy = Postgres(url_of(tmp_path), clock=clock)
    assert copy.is_copy
    engine = Engine(copy, Dice(2))
    assert not copy.is_copy
    (refused,) = engine.run([c.Submit(project="p", receipt=receipt, data="x")])
    assert code_of(refused) == "STALE_EPOCH"
    (refused,) = Engine(copy, Dice(3), Context(tenant="other")).run([c.Submit(project="p", receipt=theirs, data="x")])
    assert code_of(refused) == "STALE_EPOCH"
    copy.close()
    again = Postgres(url_of(tmp_path), clock=clock)
    assert not again.is_copy
    again.close()


def test_tenants_with_the_same_names_share_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    clock = FakeClock()
    store = Postgres(url_of(tmp_path), clock=clock)
    mine, theirs = (Engine(store, Dice(n), Context(tenant=tenant)) for n, tenant in enumerate(("local", "other")))
    for engine in (mine, theirs):
        engine.do(c.DefineProject(project="p"))
        engine.do(c.Add(project="p", task=c.NewTask(title="work", tags=("x",), idempotency_key="once")))
    receipt = mine.do(c.ClaimTask(project="p", task="A-001", agent="bo", session="s")).receipt
    (foreign,) = theirs.run([c.Submit(project="p", receipt=receipt, data="stolen")])
    assert code_of(foreign) not in ("ACCEPTED", "STALE_GENERATION")
    with store.begin("other", write=False) as tx:
        (task,) = tx.find(Task, {})
        assert (task.state, task.agent) == ("ready", None)
        assert tx.find(Agent, {}) == []
        assert tx.count(Task, {}, "state") == {"ready": 1}
        assert tx.tally(Task, {"project": "p"}, 9) == 1
        assert [e.kind for e in tx.events({"project": "p"})] == [e.kind for e in tx.events({})]
        assert "task.claimed" not in [e.kind for e in tx.events({})]
        assert (tx.next_due("p"), tx.due(None, 1 << 60, 9), tx.due("p", 1 << 60, 9)) == (None, [], [])
        assert [h.id for heads in tx.lanes("p").values() for h in heads] == [task.id]
        assert [h.id for lane in tx.lanes("p") for h in tx.ready("p", lane, limit=9)] == [task.id]
    with store.begin("local", write=False) as tx:
        (held,) = tx.find(Task, {})
        assert held.id == task.id
        assert tx.load(Task, [("p", held.id), ("p", "unknown")]) == [held]
    with pytest.raises(Conflict):  # the row of one tenant is no row of the other's, whatever is said of it
        _remove(store, "other", replace(held, id="task_of_the_first"))
    assert mine.verify() == theirs.verify() == []
    store.close()


def _remove(store: Postgres, tenant: str, row: Task) -> None:
    with store.begin(tenant, write=True) as tx:
        tx.save([Change(row, None)])


def test_the_servers_clock_is_used_unless_one_is_handed_in(store: Postgres) -> None:
    with store.begin("local", write=False) as reading:
        first = reading.now
    with store.begin("local", write=True) as writing:
        second = writing.now
    assert first <= second
    assert abs(second - time.time_ns() // 1000) < 60_000_000


@pytest.mark.parametrize(
    ("set_to", "taken"), [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")]
)
def test_a_database_that_may_lose_commits_is_not_believed(
    store: Postgres, admin: Connection, set_to: str, taken: str
) -> None:
    admin.script(f"ALTER ROLE tenure SET synchronous_commit = {set_to}")
    try:
        with store.begin("local", write=True) as transaction:
            transaction.lock("write", ["p"])
            assert transaction.now  # the first question takes it
            ((kept,),) = transaction._read("SELECT current_setting('synchronous_commit')", ())
        fresh = connect(str(os.environ["TENURE_TEST_POSTGRES"]), 30)
        assert fresh.all("SHOW synchronous_commit") == [(set_to,)]
        store.connections.give(fresh)
        with store.begin("local", write=True) as transaction:
            transaction.lock("write", ["p"])
            assert transaction.now  # the first question takes it
            ((kept,),) = transaction._read("SELECT current_setting('synchronous_commit')", ())
        assert kept == taken
    finally:
        admin.script("ALTER ROLE tenure RESET synchronous_commit")
