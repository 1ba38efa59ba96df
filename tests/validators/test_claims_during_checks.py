"""While slow outputs are checked, others claim, renew and submit. Figures with `-s`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure import Client, NewTask
from tenure.core import commands as c
from tenure.core.errors import InvalidInput, TooLarge
from tests.servers.tenure import TenureServer
from tests.validators.test_schemas import never_ending
from tests.validators.test_slow_checks import figures

CLAIMS = 300
HOSTILE = 3  # at once; each check takes its whole second

Opened = Callable[[str], Client]


def slow_for_numbers() -> dict[str, Any]:
    """Good where the contract is given, and for a number every way through it is tried."""
    return {"$defs": never_ending()["$defs"], "if": {"type": "integer"}, "then": {"$ref": "#/$defs/0"}}


CONTRACT = {"validation": "json-schema", "settings": {"schema": slow_for_numbers()}}

pytestmark = pytest.mark.sampled


@pytest.fixture(params=["batcher", "server"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Clients of one store: threads that share a batcher, or connections to one server."""
    store = str(tmp_path / ".tenure" / "tenure.db")
    Client(store, "shop", create=True).init()
    if request.param == "batcher":
        shared = Client(store, "shop", gather=True)
        yield lambda _: shared
        shared.close()
        return
    server = TenureServer(store)
    server.start()
    clients: list[Client] = []

    def connect(agent: str) -> Client:
        clients.append(Client(server.url, "shop", agent=agent, session=f"s-{agent}"))
        return clients[-1]

    try:
        yield connect
    finally:
        for client in clients:
            client.close()
        server.stop()


def claimed(client: Client, is_over: Callable[[], bool]) -> list[float]:
    took = []
    while len(took) < CLAIMS and not is_over():
        began = time.monotonic()
        assert client.claim(types=["code"]).outcome == "GRANTED"
        took.append(time.monotonic() - began)
    return took


def test_nobody_waits_for_the_check_of_anothers_output(opened: Opened, request: pytest.FixtureRequest) -> None:
    client = opened("ann")
    client.plan([NewTask(title=f"task {n}") for n in range(2 * CLAIMS)])
    client.plan([NewTask(title=f"slow {n}", type="slow", output=CONTRACT) for n in range(HOSTILE)])
    hostile = [opened(f"hostile-{n}") for n in range(HOSTILE)]
    receipts = [str(one.claim(types=["slow"]).receipt) for one in hostile]
    alone = claimed(client, lambda: False)
    answers: list[str] = []

    def submit(who: Client, receipt: str) -> None:
        answers.extend(who.submit(receipt, n).outcome for n in range(3))

    threads = [threading.Thread(target=submit, args=pair) for pair in zip(hostile, receipts, strict=True)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    meanwhile = claimed(client, lambda: not any(thread.is_alive() for thread in threads))
    for thread in threads:
        thread.join()
    lasted = time.monotonic() - began
    print()
    print(request.node.name, figures("alone", alone))
    print(request.node.name, figures(f"while {3 * HOSTILE} checks run ({lasted:.1f} s)", meanwhile))
    assert answers == ["INVALID_OUTPUT"] * 9
    assert len(meanwhile) > 50
    assert max(meanwhile) < 0.9, "a claim waited for a check"
    assert all(client.show(key["key"])["state"] == "retrying" for key in client.tasks(type="slow"))


def test_hostile_contracts_and_outputs_are_refused_in_time(opened: Opened) -> None:
    client = opened("ann")
    began = time.monotonic()
    remote = {"validation": "json-schema", "settings": {"schema": {"$ref": "http://127.0.0.1:1/schema.json"}}}
    endless = {"validation": "json-schema", "settings": {"schema": never_ending()}}
    for output, says in ((remote, "nothing is fetched"), (endless, "within 1 s")):
        with pytest.raises(InvalidInput, match=says):
            client.add("hostile", output=output)
    key = client.add("regex", output={"validation": "regex", "settings": {"pattern": "(a+)+$"}}).task or {}
    receipt = str(client.claim(key["key"]).receipt)
    refused = client.submit(receipt, "a" * 500_000 + "!")  # a backtracking matcher would not end
    assert refused.outcome == "INVALID_OUTPUT"
    large = client.submit(receipt, "x" * 50_000_000)  # put as an artifact, of which a pattern sees nothing
    assert (large.outcome, "1 MiB" in large.message) == ("INVALID_OUTPUT", True)
    with pytest.raises(TooLarge):
        client.transport.do(c.Submit(project="shop", receipt=receipt, data="x" * 50_000_000), client.principal)
    assert time.monotonic() - began < 30
    assert client.submit(receipt, "aaa").outcome == "ACCEPTED"
