"""What only a server can do to us: die, cut an answer off, be set so that it loses commits."""

import multiprocessing
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tenure import process_table
from tenure.core.errors import InvalidInput, OutcomeUnknown, StoreUnavailable
from tenure.core.records import Agent
from tenure.stores.mariadb import Mariadb
from tenure.stores.mariadb.address import parse
from tenure.stores.mariadb.connection import connect
from tenure.stores.open_store import may_come_back
from tenure.stores.open_store import open_store as opened
from tenure.stores.port import Change
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write
from tests.servers import processes
from tests.servers.mariadb import MariadbServer, url_of
from tests.sinks.receivers import authority
from tests.stores.commit_cutter import Cutter
from tests.stores.mariadb_setting import agent, in_thread, kill_all, on_server, until


@pytest.fixture
def store(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    yield from on_server(tmp_path)


@pytest.fixture
def other(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Mariadb]:
    """Another process's, as far as the server can tell."""
    yield from on_server(tmp_path)


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
    if is_done:
        until(lambda: len(logged(store)) == 1)  # the answer to an earlier statement of the round trip may have ended it
    cutter.close()
    through.close()
    assert set(stored(store, Agent)) == ({("p", "bo")} if is_done else set())
    assert len(logged(store)) == int(is_done)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        opened("mariadb://tenure@127.0.0.1:1/tenure")
    assert caught.value.definite


def test_another_program_behind_the_port_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for its client to begin, as Valkey does."""
    monkeypatch.setattr("tenure.stores.mariadb.connection._CONNECT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        late = threading.Timer(20, silent.close)  # the test ends also where nobody gives up
        late.start()
        with pytest.raises(StoreUnavailable, match="timed out"):
            Mariadb(f"mariadb://u@127.0.0.1:{port}/d")
        late.cancel()


@pytest.mark.parametrize(
    "greeting",
    [b"-ERR unknown command\r\n", b"\x05\0\0\0\x0aaaaa", b"\x01\0\0\0\x0a", b"\0\0\0\0"],
    ids=["another protocol", "cut off", "nearly empty", "empty"],
)
def test_a_greeting_that_no_mariadb_sends_is_an_unavailable_store(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            with listener.accept()[0] as line:
                line.sendall(greeting)

        thread, _ = in_thread(greet)
        with pytest.raises(StoreUnavailable) as caught:
            Mariadb(f"mariadb://u@127.0.0.1:{listener.getsockname()[1]}/d")
        thread.join()
    assert caught.value.definite


def test_authorities_that_cannot_be_read_are_named(mariadb: MariadbServer) -> None:
    with pytest.raises(StoreUnavailable, match=r"ssl_ca=/no/such\.pem"):
        Mariadb(f"{mariadb.place('x')}?ssl_ca=/no/such.pem")


def test_a_password_may_have_any_characters(mariadb: MariadbServer) -> None:
    mariadb.ask("CREATE OR REPLACE USER dee IDENTIFIED BY 'pä€ß'", "GRANT ALL ON *.* TO dee")
    opened(f"mariadb://dee:{quote('pä€ß')}@127.0.0.1:{mariadb.port}/any_characters").close()
    mariadb.drop("any_characters")


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
        opened(mariadb.place("not_there"), create=False)
    assert ("not_there",) not in mariadb.ask("SHOW DATABASES")


def test_a_wrong_password_is_told_without_it(mariadb: MariadbServer) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        opened(f"mariadb://nobody:hunter2@127.0.0.1:{mariadb.port}/x")
    assert "hunter2" not in str(caught.value)
    assert "password" in (caught.value.hint or "")


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


@pytest.mark.nightly
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
        store = Mariadb(server.place("killed"))
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
        again = Mariadb(server.place("killed"))
        assert not again.is_copy
        again.close()


def test_a_server_without_tls_is_not_gone_on_with_in_the_clear(mariadb: MariadbServer, tmp_path: Path) -> None:
    authority(tmp_path, "127.0.0.1")
    with pytest.raises(StoreUnavailable, match=r"(?i)ssl|tls"):
        opened(f"{mariadb.place('clear')}?ssl_ca={tmp_path / 'ca.pem'}")


@pytest.mark.nightly
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
        store = Mariadb(f"{server.place('safe')}?ssl_ca={ours / 'ca.pem'}")
        with store.begin("local", write=False) as transaction:
            assert transaction.now
            assert dict(transaction._read("SHOW STATUS LIKE 'Ssl_cipher'", ()))["Ssl_cipher"]
        store.close()
        for url in (
            f"{server.place('safe')}?ssl_ca={strangers / 'ca.pem'}",
            f"{_as_localhost(server)}?ssl_ca={ours}/ca.pem",
        ):
            with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
                Mariadb(url)


def _as_localhost(server: MariadbServer) -> str:
    """A name that its certificate does not have."""
    return server.place("safe").replace("127.0.0.1", "localhost")


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


@pytest.mark.nightly
def test_a_binary_log_that_is_not_synced_is_refused() -> None:
    with MariadbServer(settings={"log-bin": "binlog", "server-id": "1", "sync-binlog": "0"}) as server:
        with pytest.raises(StoreUnavailable, match="sync_binlog"):
            opened(server.place("tenure"))
        server.ask("SET GLOBAL sync_binlog = 1")
        store = opened(server.place("tenure"))
        write(store, events=[event_of()])
        store.close()


def test_a_new_connection_says_what_runs_and_on_which_host(
    mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name of any characters is one word; the server shows it where its performance_schema is on."""
    monkeypatch.setattr(process_table._Called, "what", "pool set")
    monkeypatch.setattr(process_table, "host", lambda: "büro 7." + "x" * 80)
    assert process_table.called() == ("tenure-pool-set@b-ro-7." + "x" * 80)[:63]
    connection = connect(parse(url_of(tmp_path)), wait=5.0, silence=5.0, database=False)
    assert connection._raw._connect_attrs["program_name"] == process_table.called()
    connection.close()
