"""Real servers on one store: what they count adds up, their logs keep secrets, traces go through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import tenure
from tests.servers import processes
from tests.servers.tenure import TenureServer

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
API = "/api/v1/projects/p"


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    with tenure.Client(path, "p", create=True) as client:
        client.init()
        for n in range(5):
            client.add(f"task {n}")
    return path


@pytest.fixture
def servers(store: str) -> Iterator[list[TenureServer]]:
    with TenureServer(store) as one, TenureServer(store) as other:
        yield [one, other]


def ask(server: TenureServer, method: str, path: str, body: Any = None) -> tuple[HTTPResponse, str]:
    link = HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Content-Type": "application/json", "traceparent": TRACEPARENT}
    link.request(method, path, None if body is None else json.dumps(body), headers)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer, text


def work(server: TenureServer) -> str:
    """Claim and complete a task; its receipt."""
    claimed = json.loads(ask(server, "POST", f"{API}/claims", {"agent": "ann", "session": "s"})[1])
    body = {"receipt": claimed["receipt"], "data": "done"}
    answer, text = ask(server, "POST", f"{API}/tasks/{claimed['task']['ref']}/submit", body)
    assert answer.status == 200, text
    return str(claimed["receipt"])


def metric(server: TenureServer, name: str) -> float:
    page = ask(server, "GET", "/metrics")[1]
    samples = [s for family in text_string_to_metric_families(page) for s in family.samples]
    return sum(sample.value for sample in samples if sample.name == name)


def total(servers: list[TenureServer], name: str) -> float:
    return sum(metric(server, name) for server in servers)


def wait_for(server: TenureServer, servers: list[TenureServer], name: str, value: float) -> None:
    assert server.process is not None
    processes.wait_until(lambda: total(servers, name) == value, server.process, server.log)


def test_what_servers_count_adds_up_also_when_another_takes_the_lead(servers: list[TenureServer]) -> None:
    one, other = servers
    for server in (one, other, one):
        work(server)
    wait_for(one, servers, "tenure_tasks_completed_total", 3)
    assert [metric(server, "tenure_results_total") for server in servers] == [2, 1]  # each what it answered
    by_leader = [metric(server, "tenure_tasks_completed_total") for server in servers]
    assert sorted(by_leader) == [0, 3]
    led, follows = (one, other) if by_leader[0] else (other, one)
    led.end()
    assert follows.process is not None
    processes.wait_until(lambda: "leads with term 2" in follows.log.read_text(), follows.process, follows.log)
    work(follows)
    wait_for(follows, [follows], "tenure_tasks_completed_total", 1)


def test_the_log_says_who_did_what_and_keeps_secrets(store: str) -> None:
    with TenureServer(store) as server:
        receipt = work(server)
        ask(server, "GET", f"/nowhere/{receipt}?token={receipt}")
        answer, _ = ask(server, "GET", f"{API}/tasks/{receipt}")
        assert answer.headers["traceparent"].startswith(f"00-{TRACE}-")
        assert answer.headers["traceparent"] != TRACEPARENT
        server.end()
        written = server.log.read_text()
    assert receipt.partition(":")[2] not in written
    lines = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["event"] == "request"]
    assert [line["route"] for line in requests][:2] == [
        "/api/v1/projects/{project}/claims",
        "/api/v1/projects/{project}/tasks/{task}/submit",
    ]
    assert {line["trace_id"] for line in requests} == {TRACE}
    with tenure.Client(store, "p") as client:
        traced = {event["kind"] for event in client.log() if event.get("request_trace_id") == TRACE}
    assert traced >= {"task.claimed", "task.completed"}
