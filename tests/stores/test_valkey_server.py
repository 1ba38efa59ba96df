"""A store and its server: what a restart, a promotion, weak settings and lost connections come to."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from tenure.core import commands as c
from tenure.core.errors import Conflict, InvalidInput, OutcomeUnknown, StoreError, StoreUnavailable
from tenure.core.records import Agent, replace
from tenure.engine import Engine
from tenure.process_table import called
from tenure.stores.open_store import may_come_back, open_store
from tenure.stores.port import DURABLE, Change
from tenure.stores.valkey import Valkey, transaction
from tenure.stores.valkey.address import parse
from tenure.testing.factories import Dice
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store_setting import add, logged, stored, write
from tests.servers import processes
from tests.servers.fixtures import running
from tests.servers.processes import fast_folder
from tests.servers.valkey import ROOM, ValkeyServer

Servers = Callable[..., ValkeyServer]


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Starts servers of the test's own."""
    started: list[Any] = []

    def start(*, is_durable: bool = True, **settings: str) -> ValkeyServer:
        server = ValkeyServer(is_durable=is_durable, place=fast_folder(ROOM))
        server.settings.update({name.replace("_", "-"): value for name, value in settings.items()})
        context = running(server)
        context.__enter__()
        started.append(context)
        return server

    yield start
    for context in started:
        context.__exit__(None, None, None)


def replica_of(servers: Servers, primary: ValkeyServer) -> tuple[ValkeyServer, Any]:
    replica = servers(replicaof=f"127.0.0.1 {primary.port}")
    raw = redis.Redis(port=replica.port)
    while raw.info("replication")["master_link_status"] != "up":
        pass
    return replica, raw


def epoch_of(store: Valkey, tenant: str = "local") -> str:
    with store.begin(tenant, write=False) as tx:
        return tx.epoch


def add_bo(store: Valkey) -> None:
    add(store, row_of(Agent, project="p", id="bo"))


def test_the_server_sees_what_runs_and_on_which_host(servers: Servers) -> None:
    server = servers()
    store = Valkey(server.place("named"))
    assert called() in {client["name"] for client in redis.Redis(port=server.port).client_list()}
    store.close()


# --- starting again, and promotion ---


def test_a_durable_server_that_starts_again_keeps_everything_and_the_epoch(servers: Servers) -> None:
    server = servers()
    store = Valkey(server.url())
    engine = Engine(store, Dice(1))
    engine.do(c.DefineProject(project="p"))
    engine.do(c.Add(project="p", task=c.NewTask(title="one")))
    granted = engine.do(c.ClaimNext(project="p", agent="ann", session="s"))
    before = (epoch_of(store), logged(store))
    server.kill()
    server.start()
    assert (epoch_of(store), logged(store), store.is_copy) == (*before, False)
    done = engine.do(c.Submit(project="p", receipt=granted.receipt or "", data={}, summary="done"))
    assert done.outcome == "ACCEPTED"
    again = Valkey(server.url())
    assert (epoch_of(again), again.is_copy) == (before[0], False)
    for one in (store, again):
        one.close()


def test_a_server_that_does_not_sync_each_commit_begins_a_new_epoch_when_it_starts_again(servers: Servers) -> None:
    server = servers(appendfsync="everysec")
    store = Valkey(server.url())
    engine = Engine(store, Dice(1))
    engine.do(c.DefineProject(project="p"))
    before = epoch_of(store)
    server.kill()
    server.start()
    engine.do(c.Add(project="p", task=c.NewTask(title="one")))
    assert epoch_of(store) != before
    store.close()


def test_a_promoted_replica_begins_a_new_epoch_for_every_tenant(servers: Servers) -> None:
    primary = servers()
    replica, raw = replica_of(servers, primary)
    url = f"valkey://127.0.0.1:{primary.port},127.0.0.1:{replica.port}/0"
    store, other = Valkey(url), Valkey(url)
    engine = Engine(store, Dice(1))
    engine.do(c.DefineProject(project="p"))
    engine.do(c.Add(project="p", task=c.NewTask(title="one")))
    granted = engine.do(c.ClaimNext(project="p", agent="ann", session="s"))
    write(other, Change(None, row_of(Agent, project="p", id="bo")), tenant="second")
    epochs = epoch_of(store), epoch_of(store, "second")
    redis.Redis(port=primary.port).wait(1, 10_000)
    primary.kill()
    raw.replicaof("NO", "ONE")
    refused = engine.do(c.Submit(project="p", receipt=granted.receipt or "", data={}, summary="late"))
    assert refused.outcome == "STALE_EPOCH"
    assert not store.is_copy
    assert epoch_of(store) != epochs[0]
    assert epoch_of(store, "second") != epochs[1]
    with other.begin("second", write=True) as tx:
        assert tx.epoch != epochs[1]
    assert engine.do(c.ClaimNext(project="p", agent="bea", session="t")).outcome == "GRANTED"
    assert engine.verify() == []
    for one in (store, other):
        one.close()


def test_a_writer_that_began_before_the_promotion_cannot_commit_after_it(servers: Servers) -> None:
    """Its connection may outlive both: here the server itself becomes a replica and a primary again."""
    server = servers()
    store = Valkey(server.url())
    add_bo(store)
    raw = redis.Redis(port=server.port)

    def late() -> None:
        with store.begin("local", write=True) as tx:
            (row,) = tx.load(Agent, [("p", "bo")])
            raw.replicaof("127.0.0.1", "1")
            raw.replicaof("NO", "ONE")
            tx.save([Change(row, replace(row, troubles=1))])

    with pytest.raises(Conflict):
        late()
    assert store.is_copy
    store.close()


def test_a_server_that_had_replicas_and_starts_again_may_be_another_one(servers: Servers) -> None:
    server = servers()
    _, raw = replica_of(servers, server)
    store = Valkey(server.url())
    add_bo(store)
    raw.replicaof("NO", "ONE")
    server.kill()
    server.start()
    again = Valkey(server.url())
    assert again.is_copy
    before = epoch_of(again)
    again.settled_here()
    assert not again.is_copy
    assert epoch_of(again) != before
    third = Valkey(server.url())
    assert not third.is_copy
    for one in (store, again, third):
        one.close()


@pytest.mark.nightly
def test_no_acknowledged_commit_is_lost_or_done_twice_when_the_server_is_killed(servers: Servers) -> None:
    server = servers()
    store = Valkey(server.url())
    acknowledged: set[str] = set()
    unknown: set[str] = set()
    is_over = threading.Event()

    def work(who: int) -> None:
        for n in itertools.count():
            if is_over.is_set():
                return
            try:
                write(store, events=[event_of(id=f"{who}-{n}", project=f"p{who}")])
                acknowledged.add(f"{who}-{n}")
            except OutcomeUnknown:
                unknown.add(f"{who}-{n}")
            except StoreError:
                pass  # nothing was done

    workers = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for worker in workers:
        worker.start()
    for kill in range(1, 21):
        while len(acknowledged) < 25 * kill:
            pass
        server.kill()
        server.start()
    is_over.set()
    for worker in workers:
        worker.join(60)
    found = [event.id for event in logged(store)]
    assert len(found) == len(set(found))
    assert acknowledged <= set(found) <= acknowledged | unknown
    assert (store.is_copy, store.check()) == (False, [])
    store.close()


# --- settings ---


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"appendonly": "no"}, "appendonly"),
        ({"appendfsync": "everysec"}, "appendfsync"),
        ({"appendfsync": "no"}, "appendfsync"),
        ({"no_appendfsync_on_rewrite": "yes"}, "no-appendfsync-on-rewrite"),
    ],
)
def test_a_server_that_may_lose_commits_is_not_called_durable(
    servers: Servers, settings: dict[str, str], word: str
) -> None:
    store = Valkey(servers(**settings).url())
    assert DURABLE not in store.features
    (weakness,) = store.unsafe_settings()
    assert weakness.startswith(f"{word} is ")
    store.close()


def test_a_server_that_syncs_every_commit_is_durable(valkey: ValkeyServer) -> None:
    store = Valkey(f"{valkey.url()}?space=durable")
    assert DURABLE in store.features
    assert store.unsafe_settings() == []
    store.close()


def test_a_server_that_would_throw_rows_away_is_refused(servers: Servers) -> None:
    server = servers(maxmemory_policy="allkeys-lru", maxmemory="100mb")
    with pytest.raises(StoreUnavailable, match="thrown away"):
        Valkey(server.url())


def test_settings_that_cannot_be_read_are_not_trusted(servers: Servers) -> None:
    server = servers()
    raw = redis.Redis(port=server.port)
    raw.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config")
    store = Valkey(f"valkey://app:secret@127.0.0.1:{server.port}/0")
    assert DURABLE not in store.features
    assert "secret" not in store.url
    assert all("CONFIG GET" in weakness for weakness in store.unsafe_settings())
    add_bo(store)
    store.close()


def test_a_cluster_is_refused(servers: Servers) -> None:
    # A port of its own: else it is 10,000 above the other, which may be none.
    server = servers(cluster_enabled="yes", cluster_port=str(processes.free_port()))
    redis.Redis(port=server.port).execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    with pytest.raises(StoreUnavailable, match="belongs to a cluster"):
        Valkey(server.url())


def test_a_replica_is_refused(servers: Servers) -> None:
    replica, _ = replica_of(servers, servers())
    with pytest.raises(StoreUnavailable, match="replica"):
        Valkey(replica.url())


# --- what is lost on the way ---


def test_a_connection_that_is_lost_at_the_commit_leaves_the_outcome_unknown(servers: Servers) -> None:
    server = servers()
    store = Valkey(server.url())
    add(store, row_of(Agent, project="p", id="al"))

    def interrupted() -> None:
        with store.begin("local", write=True) as tx:
            tx.save([Change(None, row_of(Agent, project="p", id="bo"))])
            server.kill()

    with pytest.raises(OutcomeUnknown):
        interrupted()
    store.close()


def test_a_connection_that_is_lost_before_the_commit_means_that_nothing_was_done(servers: Servers) -> None:
    server = servers()
    store = Valkey(server.url())

    def interrupted() -> None:
        with store.begin("local", write=True) as tx:
            tx.load(Agent, [("p", "bo")])
            server.kill()
            tx.find(Agent, {"project": "p"})

    with pytest.raises(StoreUnavailable):
        interrupted()
    with pytest.raises(StoreUnavailable):
        add_bo(store)
    with pytest.raises(StoreUnavailable):
        store.mark("local")
    server.start()
    add_bo(store)
    assert set(stored(store, Agent)) == {("p", "bo")}
    store.close()


def test_a_full_server_refuses_at_once_and_nothing_is_done(servers: Servers) -> None:
    server = servers()
    store = Valkey(server.url())
    add_bo(store)
    store.turns.pause = lambda seconds: pytest.fail("a turn that the server refuses is waited for")
    raw = redis.Redis(port=server.port)
    raw.config_set("maxmemory", "1mb")
    with pytest.raises(StoreUnavailable, match="memory"):
        add(store, row_of(Agent, project="p", id="al"))
    raw.config_set("maxmemory", "0")
    assert set(stored(store, Agent)) == {("p", "bo")}
    store.close()


def test_a_commit_that_too_few_replicas_have_is_not_told_as_done(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers()
    replica, _ = replica_of(servers, server)
    store = Valkey(f"{server.url()}?replicas=1")
    add_bo(store)
    replica.freeze()
    monkeypatch.setattr(transaction, "WAIT", 50)
    with pytest.raises(OutcomeUnknown, match="1 replicas"):
        add(store, row_of(Agent, project="p", id="al"))
    replica.thaw()
    add(store, row_of(Agent, project="p", id="cy"))
    store.close()
    with pytest.raises(StoreUnavailable, match="replicas=2"):
        Valkey(f"{server.url()}?replicas=2")


def test_a_server_that_forgot_its_scripts_gets_them_again(valkey: ValkeyServer) -> None:
    store = Valkey(f"{valkey.url()}?space=scripts")
    add_bo(store)
    redis.Redis(port=valkey.port).script_flush()
    write(store, events=[event_of()])
    assert len(logged(store)) == 1
    store.close()


# --- the URL ---


def test_a_url_names_hosts_space_and_replicas() -> None:
    where = parse("rediss://me:p%40ss@a,b:7000/3?space=team&replicas=2&pool=5&ca=/etc/ca.pem")
    assert where.hosts == (("a", 6379), ("b", 7000))
    assert (where.database, where.user, where.password) == (3, "me", "p@ss")
    assert (where.is_encrypted, where.ca) == (True, "/etc/ca.pem")
    assert (where.space, where.replicas, where.pool) == ("team", 2, 5)
    assert where.shown == "rediss://me@a,b:7000/3?space=team&replicas=2&pool=5&ca=/etc/ca.pem"
    assert parse("valkey://[::1]:1").hosts == (("::1", 1),)


@pytest.mark.parametrize("rest", ["", ":x", "/x", "?space={", "?replicas=-1", "?pool=0", "?unknown=1", ",,127.0.0.1"])
def test_a_bad_url_is_refused(rest: str) -> None:
    with pytest.raises(InvalidInput):
        open_store(f"valkey://{'127.0.0.1' if rest else ''}{rest}")


def test_a_store_is_made_only_where_that_is_wanted(valkey: ValkeyServer) -> None:
    url = f"{valkey.url()}?space=not-made"
    with pytest.raises(StoreUnavailable, match="no store"):
        open_store(url, create=False)
    for create in (True, False):
        open_store(url, create=create).close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"valkeys://{'a' * 70}.example/0", "label"),
        ("valkeys://127.0.0.1:1/0?ca=/no/such.pem", r"ca=/no/such\.pem cannot be read"),
    ],
)
def test_what_cannot_be_reached_is_told_with_its_cause(url: str, said: str) -> None:
    with pytest.raises(StoreUnavailable, match=said):
        open_store(url)


def test_a_wrong_password_is_told_without_it(servers: Servers) -> None:
    server = servers()
    redis.Redis(port=server.port).config_set("requirepass", "right")
    with pytest.raises(StoreUnavailable, match="Check the user and the password") as caught:
        open_store(f"valkey://:hunter2@127.0.0.1:{server.port}/0")
    assert "hunter2" not in str(caught.value)


def test_a_server_that_does_not_answer_yet_is_waited_for_and_one_that_refuses_is_not(servers: Servers) -> None:
    def may_come(url: str) -> bool:
        with pytest.raises(StoreUnavailable) as caught:
            open_store(url)
        return may_come_back(url, caught.value)

    server = servers(maxmemory_policy="allkeys-lru")
    redis.Redis(port=server.port).config_set("requirepass", "right")
    assert not may_come(f"valkey://:wrong@127.0.0.1:{server.port}/0")
    assert not may_come(f"valkey://:right@127.0.0.1:{server.port}/0")
    assert not may_come("valkeys://no-such-host.invalid/0")
    server.kill()
    assert may_come(f"valkey://:right@127.0.0.1:{server.port}/0")
