"""Behind pgbouncer in transaction mode the store keeps the whole contract: it leaves nothing in a session."""

import os
from pathlib import Path

import pytest

from tenure.core.records import Agent
from tenure.stores.port import Clock, Store
from tenure.stores.postgres import Postgres
from tenure.testing.samples import event_of, row_of
from tenure.testing.suites.store import StoreSuite
from tenure.testing.suites.store_setting import add, write
from tests.servers.pgbouncer import BEHIND, PgbouncerServer
from tests.servers.postgres import open_store, url_of
from tests.servers.restricted import open_restricted


@pytest.mark.sampled(one_in=3)
@pytest.mark.usefixtures("pgbouncer")
class TestBehindPgbouncer(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_store(tmp_path, clock, os.environ[BEHIND])


@pytest.mark.sampled(one_in=6)
@pytest.mark.usefixtures("restricted", "pgbouncer")
class TestUnderRowSecurityBehindPgbouncer(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_restricted(tmp_path, clock, pooled=True)


def test_a_pooler_is_noticed_and_nothing_is_prepared_on_it(pgbouncer: PgbouncerServer, tmp_path: Path) -> None:
    store = Postgres(url_of(tmp_path, pgbouncer.url))
    for name in ("a", "b", "c"):
        add(store, row_of(Agent, project="p", id=name))
    link = store.connections.take()
    assert (link.is_direct, link.prepares) == (False, False)
    store.connections.give(link)
    store.close()


def test_no_session_keeps_anything_of_a_transaction(pgbouncer: PgbouncerServer, tmp_path: Path) -> None:
    store = Postgres(url_of(tmp_path, pgbouncer.url))
    for number in range(20):
        write(store, events=[event_of(id=str(number))])
    left = """
        SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('enable_seqscan'),
            (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
            (SELECT count(*) FROM pg_listening_channels()), current_setting('search_path')
    """
    link = store.connections.take()
    for _ in range(10):
        assert link.all(left) == [(0, "on", 0, 0, '"$user", public')]
    store.connections.give(link)
    store.close()


def test_waiting_without_a_direct_way_polls(pgbouncer: PgbouncerServer, tmp_path: Path) -> None:
    waiting, writing = (Postgres(url_of(tmp_path, pgbouncer.url)) for _ in range(2))
    mark = waiting.mark("local")
    assert waiting.wait({"local": mark}, 0.01) == frozenset()  # the thread is up by now
    write(writing, events=[event_of()])
    assert waiting.wait({"local": mark}, 30) == {"local"}
    waiting.close()
    writing.close()
