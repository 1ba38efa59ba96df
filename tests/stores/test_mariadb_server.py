"""What only a server can do to us: die, cut an answer off, be restored elsewhere, be set so that it loses commits."""

import multiprocessing
import signal
import socket
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
from tenure.stores.mariadb import Mariadb
from tenure.stores.open_store import may_come_back
from tenure.stores.open_store import open_store as opened
from tenure.stores.port import Change
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Dice, Scene, code_of
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write
from tests.servers import processes
from tests.servers.mariadb import MariadbServer, url_of
from tests.sinks.receivers import authority

WAITING = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"


@pytest.fixture
def store(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    store = Mariadb(url_of(tmp_path))
    yield store
    store.close()


@pytest.fixture
def other(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    """Another process's, as far as the server can tell."""
    other = Mariadb(url_of(tmp_path))
    yield other
    other.close()


@pytest.fixture
def impatient(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    impatient = Mariadb(url_of(tmp_path), patience=1)
    yield impatient
    impatient.close()


def agent(name: str = "bo", **fields: Any) -> Agent:
    return row_of(Agent, project="p", id=name, **fields)


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < give_up
        threading.Event().wait(0.01)


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


def kill_all(server: MariadbServer, store: Mariadb) -> int:
    """End every connection to the store's database."""
    name = store.url.rpartition("/")[2].partition("?")[0]
    ids = [row[0] for row in server.ask("SHOW PROCESSLIST") if row[3] == name]
    server.ask(*(f"KILL {id}" for id in ids), "SELECT 1")
    until(lambda: not {row[0] for row in server.ask("SHOW PROCESSLIST")} & set(ids))
    return len(ids)


# --- connections -----------------------------------------------------------------------------------------------


def test_idle_connections_that_died_are_not_noticed_by_callers(mariadb: MariadbServer, store: Mariadb) -> None:
    add(store, agent())
    assert kill_all(mariadb, store)
    assert set(stored(store, Agent)) == {("p", "bo")}
    assert kill_all(mariadb, store)
    add(store, agent("cy"))
    assert kill_all(mariadb, store)
    assert store.mark("local") == 0


def test_a_connection_lost_before_the_commit_is_definite_and_leaves_nothing(
    mariadb: MariadbServer, store: Mariadb
) -> None:
    def lose() -> None:
        with store.begin("local", write=True) as transaction:
            transaction.save([Change(None, agent())])
            kill_all(mariadb, store)
            transaction.load(Agent, [("p", "bo")])

    with pytest.raises(StoreUnavailable) as caught:
        lose()
    assert caught.value.definite
    assert stored(store, Agent) == {}


class Cutter:
    """Passes everything on to the server, and cuts the connection at a COMMIT: before it, or before its answer."""

    def __init__(self, port: int, *, is_done: bool) -> None:
        self._to, self._is_done = port, is_done
        self.is_armed = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            cut = threading.Event()
            threading.Thread(target=self._forth, args=(client, server, cut), daemon=True).start()
            threading.Thread(target=self._back, args=(server, client, cut), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        while data := client.recv(1 << 16):
            if self.is_armed and b"COMMIT" in data:
                cut.set()
                if not self._is_done:
                    break
            server.sendall(data)
        if not self._is_done or not cut.is_set():
            server.close()
            client.close()

    def _back(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        try:
            while (data := server.recv(1 << 16)) and not cut.is_set():
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize("is_done", [True, False], ids=["done", "not done"])
def test_an_answer_to_a_commit_that_never_came_is_an_unknown_outcome(
    mariadb: MariadbServer, store: Mariadb, tmp_path: Path, is_done: bool
) -> None:
    cutter = Cutter(mariadb.port, is_done=is_done)
    through = Mariadb(url_of(tmp_path).replace(str(mariadb.port), str(cutter.port)))
    through.mark("local")  # a new connection commits once by itself
    cutter.is_armed = True
    with pytest.raises(OutcomeUnknown):
        write(through, Change(None, agent()), events=[event_of()])
    cutter.close()
    through.close()
    assert set(stored(store, Agent)) == ({("p", "bo")} if is_done else set())
    assert len(logged(store)) == int(is_done)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        opened("mariadb://tenure@127.0.0.1:1/tenure")
    assert caught.value.definite


def test_only_a_server_that_does_not_answer_may_come_back(mariadb: MariadbServer) -> None:
    answers = {
        "mariadb://tenure@127.0.0.1:1/tenure": True,
        "mariadb://tenure@no-such-host.invalid/tenure": False,
        f"mariadb://nobody:wrong@127.0.0.1:{mariadb.port}/x": False,
    }
    for url, expected in answers.items():
        with pytest.raises(StoreUnavailable) as caught:
            opened(url)
        assert may_come_back(url, caught.value) is expected, caught.value


def test_a_password_may_be_in_the_environment(mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch) -> None:
    mariadb.ask("CREATE OR REPLACE USER cy IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO cy")
    monkeypatch.setenv("MYSQL_PWD", "secret")
    opened(f"mariadb://cy@127.0.0.1:{mariadb.port}/by_environment").close()
    mariadb.drop("by_environment")


def test_a_store_that_is_not_there_is_not_made_unasked(mariadb: MariadbServer) -> None:
    with pytest.raises(StoreUnavailable):
        opened(mariadb.database("not_there"), create=False)
    assert ("not_there",) not in mariadb.ask("SHOW DATABASES")


def test_a_wrong_password_is_told_without_it(mariadb: MariadbServer) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        opened(f"mariadb://nobody:hunter2@127.0.0.1:{mariadb.port}/x")
    assert "hunter2" not in str(caught.value)


def test_a_pool_that_is_used_up_says_so(mariadb: MariadbServer, tmp_path: Path) -> None:
    small = Mariadb(url_of(tmp_path).replace("pool=40", "pool=1"), patience=0.05)
    with small.begin("local", write=False), pytest.raises(StoreUnavailable, match="pool="):
        small.mark("local")
    small.close()


def test_a_forked_process_is_refused(store: Mariadb) -> None:
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_exit_by_refusal, args=(store,))
    child.start()
    child.join(30)
    assert child.exitcode == 7


def _exit_by_refusal(store: Mariadb) -> None:
    try:
        store.mark("local")
    except StoreUnavailable:
        raise SystemExit(7) from None


def test_a_url_is_shown_without_its_password(mariadb: MariadbServer) -> None:
    mariadb.ask("CREATE OR REPLACE USER bo IDENTIFIED BY 'se:cret'", "GRANT ALL ON *.* TO bo")
    store = opened(f"mariadb://bo:se%3Acret@127.0.0.1:{mariadb.port}/shown?pool=2")
    assert store.url == f"mariadb://bo@127.0.0.1:{mariadb.port}/shown?pool=2"
    store.close()
    mariadb.drop("shown")


@pytest.mark.parametrize("url", ["u@h/d?pool=0", "u@h/d?pool=x", "u@h/d?bogus=1", "u@h/", "u@h/a%22b", "u@h:x/d"])
def test_a_url_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        Mariadb(f"mariadb://{url}")


def test_what_a_killed_server_had_acknowledged_is_there_once() -> None:
    """Four writers, each with its project, while the server is killed three times."""
    acknowledged: list[str] = []
    ended = threading.Event()

    def work(store: Mariadb, who: int) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            name = f"{who}-{number}"
            row, event = row_of(Agent, project=f"p{who}", id=name), event_of(id=name, project=f"p{who}")
            try:
                write(store, Change(None, row), events=[event])
            except (StoreUnavailable, OutcomeUnknown):
                continue
            acknowledged.append(name)

    with MariadbServer() as server:
        store = Mariadb(server.database("killed"))
        threads = [threading.Thread(target=work, args=(store, who)) for who in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            seen = len(acknowledged)
            until(lambda seen=seen: len(acknowledged) > seen + 20)  # type: ignore[misc]
            assert server.process is not None
            processes.end(server.process, signal.SIGKILL)
            server.run()
        ended.set()
        for thread in threads:
            thread.join(60)
        log = [event.id for event in logged(store)]
        assert set(acknowledged) <= {id for _, id in stored(store, Agent)} == set(log)
        assert len(log) == len(set(log))
        assert [e.sequence for e in logged(store)] == sorted({e.sequence for e in logged(store)})
        assert store.check() == []
        store.close()
        again = Mariadb(server.database("killed"))
        assert not again.is_copy
        again.close()


def test_a_server_is_known_by_its_certificate(tmp_path: Path) -> None:
    with MariadbServer() as server:
        ours, strangers = server.folder / "ours", server.folder / "strangers"
        for folder, name in ((ours, "127.0.0.1"), (strangers, "127.0.0.1")):
            folder.mkdir(mode=0o755)
            authority(folder, name)
        (ours / "server.pem").chmod(0o644)
        server.settings |= {"ssl-cert": str(ours / "server.pem"), "ssl-key": str(ours / "server.pem")}
        assert server.process is not None
        processes.end(server.process)
        server.run()
        store = Mariadb(f"{server.database('safe')}?ssl_ca={ours / 'ca.pem'}")
        with store.begin("local", write=False) as transaction:
            assert transaction.now
            assert dict(transaction._read("SHOW STATUS LIKE 'Ssl_cipher'", ()))["Ssl_cipher"]
        store.close()
        for url in (
            f"{server.database('safe')}?ssl_ca={strangers / 'ca.pem'}",
            f"{_as_localhost(server)}?ssl_ca={ours}/ca.pem",
        ):
            with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
                Mariadb(url)


def _as_localhost(server: MariadbServer) -> str:
    """A name that its certificate does not have."""
    return server.database("safe").replace("127.0.0.1", "localhost")


# --- locks -----------------------------------------------------------------------------------------------------


def test_writers_of_one_project_wait_and_of_two_do_not(store: Mariadb, other: Mariadb) -> None:
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


def test_a_turn_that_does_not_come_is_a_conflict(store: Mariadb, impatient: Mariadb) -> None:
    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now
        with pytest.raises(Conflict):
            add(impatient, agent())
    add(impatient, agent())


def test_now_is_read_after_the_turn_was_waited_for(mariadb: MariadbServer, store: Mariadb, other: Mariadb) -> None:
    times: list[int] = []

    def late() -> None:
        with other.begin("local", write=True) as transaction:
            transaction.lock("write", ["p"])
            times.append(transaction.now)

    with store.begin("local", write=True) as mine:
        mine.lock("write", ["p"])
        assert mine.now
        thread, answers = in_thread(late)
        until(lambda: mariadb.ask(WAITING) == ((1,),))
        end = time.time_ns() // 1000
    thread.join(30)
    assert answers == [None]
    assert times[0] >= end


def test_turns_of_several_projects_are_taken_in_one_order(
    mariadb: MariadbServer, store: Mariadb, other: Mariadb
) -> None:
    deadlocks = "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"
    names = [f"project-{n}" for n in range(6)]
    with store.begin("local", write=True) as transaction:  # each has its row from now on
        transaction.append([event_of(project=name) for name in names])
    before = mariadb.ask(deadlocks)

    def take(one: Mariadb, order: list[str]) -> Callable[[], int]:
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
    assert mariadb.ask(deadlocks) == before


def test_a_deadlock_ends_one_of_the_two_with_a_conflict(store: Mariadb, other: Mariadb) -> None:
    add(store, agent(), row_of(Agent, project="q", id="bo"))
    met = threading.Barrier(2)

    def cross(one: Mariadb, first: str, second: str) -> None:
        with one.begin("local", write=True) as transaction:
            transaction.load(Agent, [(first, "bo")])
            met.wait(30)
            transaction.load(Agent, [(second, "bo")])

    runs = [in_thread(lambda: cross(store, "p", "q")), in_thread(lambda: cross(other, "q", "p"))]
    for thread, _ in runs:
        thread.join(30)
    assert sorted(type(answers[0]).__name__ for _, answers in runs) == ["Conflict", "NoneType"]


def test_a_new_epoch_waits_for_every_writer_that_has_read_the_old_one(store: Mariadb, impatient: Mariadb) -> None:
    with store.begin("local", write=True) as writer:
        assert writer.epoch
        with pytest.raises(Conflict), impatient.begin("local", write=True) as other:
            other.set_epoch("0badcafe")
    with impatient.begin("local", write=True) as other:
        other.set_epoch("0badcafe")


def test_no_writer_begins_while_a_new_epoch_is_put_in_force(store: Mariadb, impatient: Mariadb) -> None:
    with store.begin("local", write=True) as transaction:
        transaction.set_epoch("0badcafe")
        with pytest.raises(Conflict), impatient.begin("local", write=True) as writer:
            assert writer.epoch
    with impatient.begin("local", write=True) as writer:
        assert writer.epoch == "0badcafe"


# --- the log ---------------------------------------------------------------------------------------------------


def test_sequences_are_in_the_order_of_commits(mariadb: MariadbServer, store: Mariadb, other: Mariadb) -> None:
    with store.begin("local", write=True) as slow:
        slow.append([event_of(id="late", project="p")])
        assert slow.now
        write(other, events=[event_of(id="early", project="q")])
        assert [e.id for e in logged(other)] == ["early"]
    assert [e.id for e in logged(other)] == ["early", "late"]


def test_whoever_has_taken_sequences_keeps_others_from_overtaking(
    mariadb: MariadbServer, store: Mariadb, other: Mariadb
) -> None:
    with store.begin("local", write=True) as slow:
        slow.append([event_of(id="first", project="p")])
        assert [e.id for e in slow.events({})] == ["first"]  # it has its sequence by now
        thread, answers = in_thread(lambda: write(other, events=[event_of(id="second", project="q")]))
        until(lambda: mariadb.ask(WAITING) == ((1,),))
        assert logged(store) == []
    thread.join(30)
    assert answers == [None]
    assert [e.id for e in logged(other)] == ["first", "second"]


def test_a_commit_of_another_process_is_found_by_a_poll(store: Mariadb, other: Mariadb) -> None:
    write(store, events=[event_of(id="first")])
    mark = store.mark("local")
    thread, answers = in_thread(lambda: store.wait({"local": mark}, 30))
    write(other, events=[event_of(id="stranger")], tenant="other")
    write(other, events=[event_of(id="second")])
    thread.join(30)
    assert answers == [frozenset({"local"})]


def test_waiting_goes_on_after_the_connection_was_lost(mariadb: MariadbServer, store: Mariadb, other: Mariadb) -> None:
    mark = store.mark("local")
    thread, answers = in_thread(lambda: store.wait({"local": mark}, 30))
    kill_all(mariadb, store)
    write(other, events=[event_of()])
    thread.join(30)
    assert answers == [frozenset({"local"})]


# --- settings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "usual"),
    [
        ("innodb_flush_log_at_trx_commit", "2", "1"),
        ("innodb_flush_log_at_trx_commit", "0", "1"),
        ("max_allowed_packet", "4194304", "16777216"),
    ],
)
def test_a_server_that_may_lose_commits_is_refused(
    mariadb: MariadbServer, tmp_path: Path, name: str, value: str, usual: str
) -> None:
    url = url_of(tmp_path)
    Mariadb(url).close()
    mariadb.ask(f"SET GLOBAL {name} = {value}")
    try:
        with pytest.raises(StoreUnavailable, match=name):
            Mariadb(url)
    finally:
        mariadb.ask(f"SET GLOBAL {name} = {usual}")
    Mariadb(url).close()


def test_settings_that_were_made_unsafe_later_are_found(mariadb: MariadbServer, store: Mariadb) -> None:
    assert store.check() == []
    mariadb.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
    try:
        assert any("innodb_flush_log_at_trx_commit = 1" in fault for fault in store.check())
    finally:
        mariadb.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 1")


def test_a_binary_log_that_is_not_synced_is_refused() -> None:
    with MariadbServer(settings={"log-bin": "binlog", "server-id": "1", "sync-binlog": "0"}) as server:
        with pytest.raises(StoreUnavailable, match="sync_binlog"):
            opened(server.database("tenure"))
        server.ask("SET GLOBAL sync_binlog = 1")
        store = opened(server.database("tenure"))
        write(store, events=[event_of()])
        store.close()


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
    mariadb.ask("DO SLEEP(1.1)", f"ALTER TABLE `{name}`.meta ENGINE=InnoDB")  # as a restored dump makes it
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
