"""A Galera cluster: which of its nodes is used, and what is not taken for one."""

import pytest

from tenure.core.errors import StoreUnavailable
from tenure.core.records import Agent
from tenure.stores.mariadb import Mariadb
from tenure.stores.mariadb.address import parse
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
