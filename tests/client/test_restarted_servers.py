"""Threads share a client, and a client outlives its server and its tenant's home."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure import Client, NewTask, Worker
from tenure.client.caller import SystemRandom
from tenure.client.local_token import token_file, write_token
from tenure.client.transports.http import HttpTransport
from tenure.core.commands import Note, Principal
from tenure.core.errors import NotHome, NotSignedIn
from tests.client.stub import Stub, Time, problem, reply, stubbed
from tests.client.test_worker import PATIENCE, until
from tests.servers.tenure import TenureServer

OK = reply(200, {"outcome": "OK", "message": "done"})
NOTE = Note(project="p", task="A-001", text="x")
STARTS, THREADS = 6, 8


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TenureServer]:
    """A server of this user, with a token for each start."""
    state = str(tmp_path / "state")
    monkeypatch.setenv("TENURE_STATE", state)
    store = str(tmp_path / "store.db")
    with Client(store, "shop", create=True) as client:
        client.init()
        client.add_many([NewTask(title=f"T{n}", type="t") for n in range(60)])
    with TenureServer(store, settings={"TENURE_SERVE_AUTH": "auto", "TENURE_STATE": state}) as server:
        yield server


def test_threads_of_one_client_outlive_restarts_of_their_server(server: TenureServer) -> None:
    told: Counter[str] = Counter()
    is_over, each = threading.Event(), threading.Semaphore(0)
    with Client(server.url, "shop") as client:

        def call() -> None:
            while not is_over.is_set():
                try:
                    client.status()
                    told["ok"] += 1
                except Exception as error:  # noqa: BLE001 counted
                    told[type(error).__name__] += 1
                each.release()

        threads = [threading.Thread(target=call) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for _ in range(STARTS):
            for _ in range(4 * THREADS):
                assert each.acquire(timeout=PATIENCE)
            server.kill()
            server.start()
        for _ in range(4 * THREADS):
            assert each.acquire(timeout=PATIENCE)
        is_over.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert set(told) == {"ok"}


def test_a_worker_outlives_restarts_of_its_server(server: TenureServer) -> None:
    worker, done = Worker(server.url, "shop", concurrency=6, lease=300.0), threading.Semaphore(0)
    worker.task("t")(lambda ctx: done.release())
    thread = threading.Thread(target=worker.run)
    thread.start()
    for start in range(STARTS):
        with Client(server.url, "shop") as mia:
            mia.add_many([NewTask(title=f"S{start} {n}", type="t") for n in range(6)])
        for _ in range(6):
            assert done.acquire(timeout=PATIENCE)
        server.kill()
        server.start()
        assert thread.is_alive()
    with Client(server.url, "shop") as mia:
        until(mia, lambda: mia.status()["tasks"] == {"completed": 60 + 6 * STARTS})
    worker.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    worker.close()


def test_a_token_that_another_thread_has_renewed_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request was sent with the old token; the new one is shared before its refusal comes."""
    monkeypatch.setenv("TENURE_STATE", str(tmp_path))
    old, new = (f"tnl_{digit * 64}" for digit in "12")
    refused = problem(401, "NOT_SIGNED_IN")
    with stubbed(refused, OK, OK) as stub:
        path = token_file({"TENURE_STATE": str(tmp_path)}, "127.0.0.1", int(stub.url.rpartition(":")[2]))
        write_token(path, old)
        transport = transport_at(stub)
        exchange = transport._calls._exchange

        async def meanwhile(*call: object) -> object:
            if not stub.requests:
                write_token(path, new)
                transport._calls._destination.credentials.is_renewed({})
            return await exchange(*call)  # type: ignore[arg-type]

        transport._calls._exchange = meanwhile  # type: ignore[method-assign,assignment]
        assert transport.do(NOTE, Principal()).ok
        assert stub.headers("authorization") == [f"Bearer {old}", f"Bearer {new}"]
        transport.close()
    with stubbed(refused) as stub:
        write_token(token_file({"TENURE_STATE": str(tmp_path)}, "127.0.0.1", int(stub.url.rpartition(":")[2])), old)
        transport = transport_at(stub)
        with pytest.raises(NotSignedIn):
            transport.do(NOTE, Principal())
        assert len(stub.requests) == 1
        transport.close()


# --- the home -----------------------------------------------------------------------------------------------


def transport_at(stub: Stub, time: Time | None = None, **homes: str) -> HttpTransport:
    time = time or Time()
    return HttpTransport(
        stub.url, key=None, random=SystemRandom(), monotonic=time.monotonic, pause=time.pause, homes=homes
    )


def not_home(of: Stub) -> bytes:
    return problem(421, "NOT_HOME", f"Tenure-Home: {of.url}")


def test_two_homes_that_name_each_other_for_a_moment_are_waited_for() -> None:
    time = Time()
    with stubbed(OK) as one, stubbed(OK) as other:
        one.replies, other.replies = [not_home(other)] * 4, [not_home(one)] * 3 + [OK]
        transport = transport_at(one, time, a=one.url, b=other.url)
        assert transport.do(NOTE, Principal()).ok
        assert (len(one.requests), len(other.requests)) == (4, 4)
        assert 0 < sum(time.pauses) < 5
        assert len(set(one.headers("idempotency-key") + other.headers("idempotency-key"))) == 1
        transport.close()


def test_two_homes_that_go_on_to_name_each_other_are_given_up() -> None:
    time = Time()
    with stubbed(OK) as one, stubbed(OK) as other:
        one.replies, other.replies = [not_home(other)], [not_home(one)]
        transport = transport_at(one, time, a=one.url, b=other.url)
        with pytest.raises(NotHome) as refused:
            transport.do(NOTE, Principal())
        assert refused.value.definite
        assert 6 < sum(time.pauses) <= 10
        assert len(one.requests) + len(other.requests) < 30
        transport.close()


def test_a_home_that_another_thread_has_followed_is_no_refusal() -> None:
    """The answer names the address that the client is at by now."""
    with stubbed(OK) as one, stubbed(OK) as other:
        one.replies = [not_home(other)]
        transport = transport_at(one, a=one.url, b=other.url)
        exchange = transport._calls._exchange

        async def meanwhile(*call: object) -> object:
            answer = await exchange(*call)  # type: ignore[arg-type]
            transport._calls._go_to(other.url)
            return answer

        transport._calls._exchange = meanwhile  # type: ignore[method-assign,assignment]
        assert transport.do(NOTE, Principal()).ok
        transport.close()
