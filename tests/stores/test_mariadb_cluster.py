"""A Galera cluster: which of its nodes is used, and what is not taken for one."""

import os
from collections.abc import Callable, Iterator

import pytest

from tenure.core.errors import Conflict, OutcomeUnknown, StoreUnavailable
from tenure.core.records import Agent, replace
from tenure.stores.mariadb import Mariadb
from tenure.stores.mariadb.address import parse
from tenure.stores.mariadb.errors import AGAIN, Failed, at_commit
from tenure.stores.port import Change
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import add, stored
from tests.servers.galera import Galera
from tests.servers.mariadb import MariadbServer


def test_a_url_may_name_the_nodes_of_a_cluster() -> None:
    where = parse("mariadb://u:p@a,b:3307,[::1]:3308/d")
    assert where.hosts == (("a", 3306), ("b", 3307), ("::1", 3308))
    assert (where.is_cluster, where.shown) == (True, "mariadb://u@a,b:3307,[::1]:3308/d")
    assert not parse("mariadb://u@a/d").is_cluster


def test_several_hosts_that_are_no_cluster_are_refused(mariadb: MariadbServer) -> None:
    """One may be a replica that is behind: it would be taken for a node."""
    with pytest.raises(StoreUnavailable, match="not a ready node"):
        Mariadb(f"mariadb://root@127.0.0.1:1,127.0.0.1:{mariadb.port}/several")


def test_a_commit_that_the_server_took_back_is_a_conflict_and_another_refusal_unknown() -> None:
    """1213 is what a node of a cluster says of a commit that another node's has overtaken."""
    for code in AGAIN:
        assert isinstance(at_commit(Failed(code, "taken back"), "mariadb://h/d"), Conflict)
    for code in (1180, 1317, 1927, 3100):
        assert isinstance(at_commit(Failed(code, "who knows"), "mariadb://h/d"), OutcomeUnknown)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Galera]:
    with Galera() as cluster:
        yield cluster


@pytest.fixture
def nodes(cluster: Galera) -> Iterator[tuple[Mariadb, Mariadb]]:
    """One store at two nodes: as where a process has lost the first, and the others have not."""
    one = Mariadb(cluster.place("two"))
    first, *others = parse(one.url).hosts
    hosts = ",".join(f"{host}:{port}" for host, port in (*others, first))
    other = Mariadb(f"mariadb://root@{hosts}/two")
    yield one, other
    one.close()
    other.close()


@pytest.mark.nightly
def test_of_two_commits_at_two_nodes_one_is_a_conflict(nodes: tuple[Mariadb, Mariadb]) -> None:
    one, other = nodes
    add(one, row_of(Agent, project="p", id="bo", troubles=0))

    def raised(store: Mariadb) -> None:
        with store.begin("local", write=True) as tx:
            (row,) = tx.load(Agent, [("p", "bo")])
            if store is one:
                raised(other)
            tx.save([Change(row, replace(row, troubles=row.troubles + 1))])

    with pytest.raises(Conflict):
        raised(one)
    assert stored(one, Agent)["p", "bo"].troubles == 1
    raised(other)
    assert stored(one, Agent)["p", "bo"].troubles == 2


def alone(store: Mariadb) -> None:
    with store.begin("local", write=True) as epochs:
        epochs.set_epoch("another")


EPOCHS: dict[str, Callable[[Mariadb], object]] = {
    "its own": alone,
    "of all tenants": lambda store: store.begin_epochs("acme"),
}
ROUNDS = int(os.environ.get("TENURE_TEST_ROUNDS", "3"))


@pytest.mark.nightly
@pytest.mark.parametrize("begin", EPOCHS.values(), ids=EPOCHS)
@pytest.mark.parametrize("project", ["known", "new"])
def test_a_new_epoch_at_one_node_ends_writers_at_another(
    nodes: tuple[Mariadb, Mariadb], project: str, begin: Callable[[Mariadb], object]
) -> None:
    """In a project that was written to before, and in one whose turn the writer makes. It has read the former epoch."""
    one, other = nodes
    if project == "known" and ("known", "bo") not in stored(one, Agent):
        add(one, row_of(Agent, project="known", id="bo"))

    def overtaken(where: str, id: str) -> None:
        with one.begin("local", write=True) as tx:
            tx.load(Agent, [(where, id)])
            begin(other)
            tx.save([Change(None, row_of(Agent, project=where, id=id))])

    for n in range(ROUNDS):
        where = f"new-{n}-{begin is alone}" if project == "new" else "known"
        with pytest.raises(Conflict):
            overtaken(where, f"cy-{n}")
        assert (where, f"cy-{n}") not in stored(one, Agent)


@pytest.mark.nightly
def test_writers_of_two_projects_at_two_nodes_do_not_end_each_other(nodes: tuple[Mariadb, Mariadb]) -> None:
    """What a new epoch compares with is nothing that they share."""
    for store, project in zip(nodes, ("left", "right"), strict=True):
        add(store, row_of(Agent, project=project, id="bo"))
    one, other = nodes
    for n in range(5):
        with one.begin("local", write=True) as tx:
            tx.load(Agent, [("left", "bo")])
            add(other, row_of(Agent, project="right", id=f"cy-{n}"))
            tx.save([Change(None, row_of(Agent, project="left", id=f"cy-{n}"))])
    assert len([key for key in stored(one, Agent) if key[0] in ("left", "right")]) == 12


@pytest.mark.nightly
def test_a_cluster_is_used_through_its_first_node_and_goes_on_at_the_next() -> None:
    with Galera() as cluster:
        url = cluster.place("cluster")
        with pytest.raises(StoreUnavailable, match="all nodes of the cluster"):
            Mariadb(cluster.nodes[0].place("cluster"))
        store = Mariadb(url)
        add(store, row_of(Agent, project="p", id="bo"))
        cluster.kill()
        other = Mariadb(url)
        assert (other.is_copy, set(stored(other, Agent))) == (False, {("p", "bo")})
        assert other.place == store.place
        store.close()
        other.close()
