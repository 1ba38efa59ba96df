"""What tests of the MariaDB store share: stores on the folder's database, threads, and the end of connections."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tenure.core import limits
from tenure.core.records import Agent
from tenure.stores.mariadb import Mariadb
from tenure.testing.samples import row_of
from tests.servers.mariadb import MariadbServer, url_of

WAITING = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"


def on_server(folder: Path, patience: float = limits.WRITE_WAIT) -> Iterator[Mariadb]:
    """For a fixture: a store in the folder's own database."""
    store = Mariadb(url_of(folder), patience=patience)
    yield store
    store.close()


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
