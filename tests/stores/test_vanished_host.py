"""A host that vanishes while a store has connections to it: another network, whose packets nobody answers any more."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tenure.core.errors import StoreError
from tenure.core.records import Agent
from tenure.stores.postgres import Postgres
from tenure.stores.sql import hosts
from tenure.stores.sql.hosts import Place, SilentHosts
from tenure.testing.samples import row_of
from tenure.testing.suites.store_setting import add, stored
from tests.servers.machine import Machine
from tests.servers.postgres import PostgresServer, url_of

# Runs on the other machine: accepts at an address and a port, and forwards to a socket of the file system.
FORWARDER = """
import socket, sys, threading

def pass_on(source, target):
    while data := source.recv(65536):
        target.sendall(data)

with socket.create_server((sys.argv[1], 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        one, _ = server.accept()
        other = socket.socket(socket.AF_UNIX)
        other.connect(sys.argv[2])
        for ends in ((one, other), (other, one)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()
"""


@contextmanager
def bridged(path: Path, port: int) -> Iterator[None]:
    """A socket in the file system, which another network can reach too, that leads to a port of this one."""

    def forward(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)

    def serve() -> None:
        with suppress(OSError):  # closed
            while True:
                one, _ = listening.accept()
                other = socket.create_connection(("127.0.0.1", port))
                for ends in ((one, other), (other, one)):
                    threading.Thread(target=forward, args=ends, daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        threading.Thread(target=serve, daemon=True).start()
        yield


@pytest.mark.nightly
def test_a_store_goes_on_at_the_next_host_when_the_first_one_vanishes(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SilentHosts()
    monkeypatch.setattr(hosts, "OF_THIS_PROCESS", silent)
    Postgres(url_of(tmp_path)).close()
    with Machine() as machine, bridged(tmp_path / "bridge", postgres.port):
        words = [*machine.within, sys.executable, "-c", FORWARDER, machine.there, str(tmp_path / "bridge")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as forwarder:
            assert forwarder.stdout is not None
            port = int(forwarder.stdout.readline())
            vanishing = Place(machine.there, port)
            options = {"connect_timeout": "1", "tcp_user_timeout": "1000", "allow_insecure": "1"}
            url = url_of(tmp_path, **options).replace("127.0.0.1:", f"{machine.there}:{port},127.0.0.1:", 1)
            with closing(Postgres(url)) as store:
                add(store, row_of(Agent, project="p", id="bo"))
                assert silent.last([vanishing, Place("b", 1)], 0.0)[0] == vanishing
                machine.vanish()
                with suppress(StoreError):  # the call that was sent to it
                    stored(store, Agent)
                assert ("p", "bo") in stored(store, Agent)
                assert vanishing in silent._at
            forwarder.kill()
