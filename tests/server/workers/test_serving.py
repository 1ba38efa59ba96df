"""A server of several processes: what one of them knows all of them know, and none is missed when it dies."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tenure.client import Client
from tenure.client.local_token import find_token
from tenure.config import BadConfig
from tenure.core.commands import Add, CreateKey, NewTask
from tenure.server.serve import listening_on
from tests.server.workers.conftest import WORKERS, Server
from tests.servers import processes
from tests.servers.postgres import PostgresServer

TASKS = "/api/v1/projects/p/tasks"
CLAIMS = "/api/v1/projects/p/claims"
LOGIN, LOGOUT = "/login", "/logout"
PATIENCE = 60


def add(server: Server, title: str = "x", **more: Any) -> Any:
    answer = server.ask("POST", TASKS, {"title": title}, **more)
    assert answer.status == 201, answer
    return answer.json


def sample(server: Server, text: str, line: HTTPConnection | None = None) -> float:
    page = server.ask("GET", "/metrics", line=line).body.decode()
    found = re.search(rf"^{re.escape(text)} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_each_worker_answers_with_what_the_others_wrote(server: Server) -> None:
    for number, line in server.lines().items():
        add(server, f"by {number}", line=line)
    for line in server.lines().values():
        titles = {task["title"] for task in server.ask("GET", TASKS, line=line).json["items"]}
        assert titles == {f"by {number}" for number in range(WORKERS)}


def test_an_agent_that_waits_gets_its_task_in_whichever_process_it_is(server: Server) -> None:
    lines = server.lines()
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting = [
            pool.submit(server.ask, "POST", f"{CLAIMS}?wait=50", {"agent": f"a{n}", "session": f"s{n}"}, line=line)
            for n, line in lines.items()
        ]
        held = 'tenure_held_requests{kind="claims"}'
        assert server.process is not None
        processes.wait_until(lambda: sample(server, held) == WORKERS, server.process, server.log)
        made = {add(server, f"task {n}")["task"]["id"] for n in range(WORKERS)}
        got = [one.result(PATIENCE).json for one in waiting]
    assert {claim["task"]["id"] for claim in got} == made


def test_each_worker_streams_what_any_of_them_wrote(server: Server) -> None:
    streams = []
    for line in server.lines().values():
        line.request("GET", "/api/v1/projects/p/events", headers={"Accept": "text/event-stream"})
        streams.append(line.getresponse())
    made = add(server)["task"]["id"]
    for stream in streams:
        lines = iter(stream.readline, b"")
        assert any(made.encode() in line for line in lines if line.startswith(b"data:"))


def test_a_scrape_of_any_worker_has_the_sum_of_all(server: Server) -> None:
    for line in server.lines().values():
        add(server, line=line)
    counted = 'tenure_commands_total{command="add",result="CREATED",role="owner"}'
    for line in server.lines().values():
        assert sample(server, counted, line) == WORKERS
        assert sample(server, "tenure_coordinator_leader", line) == 1
        assert sample(server, "tenure_workers", line) == WORKERS


def test_no_counter_falls_when_a_worker_dies(server: Server) -> None:
    counted = 'tenure_commands_total{command="add",result="CREATED",role="owner"}'
    for line in server.lines().values():
        add(server, line=line)
    assert sample(server, counted) == WORKERS
    for pid in server.pids():
        server.kill_worker(pid)
        assert sample(server, counted) == WORKERS
    add(server)
    assert sample(server, counted) == WORKERS + 1


def test_another_worker_leads_at_once_when_the_leader_dies(make: Callable[..., Server]) -> None:
    server = make(LEADER_LEASE="600")
    server.logged(lambda entry: entry["event"] == "leads with term 1")
    server.lines()  # all of them serve: one that dies before has not told its name, and leads until its lease ends
    for one in server.pids():
        server.kill_worker(one)
    assert server.logged(lambda entry: entry["event"] == "leads with term 2")


def test_a_key_has_one_rate_over_all_workers(make: Callable[..., Server], tmp_path: Path) -> None:
    with Client(str(tmp_path / "store.db"), "p", create=True) as client:
        key = client.do(CreateKey(name="ci", role="member")).secret
    server = make(SERVE_RATE="2", SERVE_AUTH="required")
    statuses = Counter(server.ask("GET", TASKS, Authorization=f"Bearer {key}").status for _ in range(10 * WORKERS))
    # 4 at once and 2 a second; a rate for each worker would allow 12 at once.
    assert set(statuses) == {200, 429}
    assert statuses[200] <= 10, statuses


def test_failed_sign_ins_are_counted_over_all_workers(make: Callable[..., Server], tmp_path: Path) -> None:
    with Client(str(tmp_path / "store.db"), "p", create=True) as client:
        client.do(CreateKey(name="ci", role="member"))
    server = make(SERVE_AUTH="required")
    wrong = "Bearer tnr_0000000000000000_" + "a" * 43
    statuses = [server.ask("GET", TASKS, Authorization=wrong).status for _ in range(10 * WORKERS)]
    assert Counter(statuses)[401] <= 12
    assert statuses[-1] == 429


def test_one_token_signs_in_everywhere_and_a_session_ends_everywhere(
    make: Callable[..., Server], tmp_path: Path
) -> None:
    state = {"TENURE_STATE": str(tmp_path / "state")}
    server = make(SERVE_AUTH="auto", STATE=state["TENURE_STATE"])
    assert server.process is not None
    processes.wait_until(lambda: find_token(state, "127.0.0.1", server.port) is not None, server.process, server.log)
    token = find_token(state, "127.0.0.1", server.port)
    origin = {"Origin": server.url}
    signed_in = server.ask("POST", LOGIN, {"key": token}, **origin)
    assert signed_in.status in (200, 204), signed_in
    cookie = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
    for _ in range(4 * WORKERS):
        assert server.ask("GET", TASKS, Authorization=f"Bearer {token}").status == 200
        assert server.ask("GET", TASKS, **cookie).status == 200
    for pid in server.pids():  # nor does it end with the process that began it
        server.kill_worker(pid)
    assert server.ask("GET", TASKS, **cookie).status == 200
    assert server.ask("POST", LOGOUT, **cookie, **origin).status in (200, 204)
    for _ in range(2 * WORKERS):
        assert server.ask("GET", TASKS, **cookie).status == 401


def test_an_mcp_session_goes_on_whichever_worker_is_asked(server: Server) -> None:
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    hello = {
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "2"}},
    }  # fmt: skip
    opened = server.ask("POST", "/mcp?project=p", hello, **accept)
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], **accept}
    began = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert server.ask("POST", "/mcp?project=p", began, **session).status == 202
    add(server, "over MCP")
    agents = set()
    for line in server.lines().values():
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "show", "arguments": {}}}
        answer = server.ask("POST", "/mcp?project=p", call, line=line, **session)
        assert answer.status == 200, answer
        (told,) = [part for part in answer.body.split(b"data:") if b"jsonrpc" in part] or [answer.body]
        assert "result" in json.loads(told), told
        agents.add(server.ask("GET", "/api/v1/projects/p/agents", line=line).body)
    lines = server.lines()
    owner = int(session["Mcp-Session-Id"].rpartition("-w")[2])
    other = lines[(owner + 1) % WORKERS]
    assert server.ask("DELETE", "/mcp?project=p", line=other, **session).status == 200
    for line in server.lines().values():
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert server.ask("POST", "/mcp?project=p", call, line=line, **session).status == 404


def test_a_request_at_the_socket_of_a_dead_worker_waits_for_the_next(server: Server) -> None:
    pids = server.pids()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # it accepts nothing: connections wait at its socket
    lines = [server.line() for _ in range(4 * WORKERS)]
    for line in lines:
        line.request("GET", "/health")
    for pid in pids:
        server.kill_worker(pid)
    assert {line.getresponse().status for line in lines} == {200}


def test_at_the_end_waiting_agents_are_answered_and_nothing_is_left(server: Server, tmp_path: Path) -> None:
    pids = server.pids()
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting = [
            pool.submit(server.ask, "POST", f"{CLAIMS}?wait=50", {"agent": f"a{n}", "session": f"s{n}"}, line=line)
            for n, line in server.lines().items()
        ]
        held = 'tenure_held_requests{kind="claims"}'
        assert server.process is not None
        processes.wait_until(lambda: sample(server, held) == WORKERS, server.process, server.log)
        assert server.end() == 0
        assert {one.result(PATIENCE).json["outcome"] for one in waiting} == {"NO_TASK"}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_workers_end_with_a_parent_that_is_killed_and_the_next_server_takes_the_port(server: Server) -> None:
    pids = server.pids()
    server.kill()
    server.start()
    assert server.process is not None
    processes.wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), server.process, server.log)
    assert add(server)


def test_no_client_connects_to_a_socket_that_is_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be reset: the port of a server that was killed is asked for again and again."""
    opened: list[socket.socket] = []
    listen = socket.socket.listen

    def noted(self: socket.socket, *given: int) -> None:
        opened.append(self)
        listen(self, *given)

    monkeypatch.setattr(socket.socket, "listen", noted)
    listening = listening_on("127.0.0.1", 0, "", 3)
    try:
        assert opened == listening
        with pytest.raises(BadConfig, match="Address already in use"):
            listening_on("127.0.0.1", listening[0].getsockname()[1], "", 1)
    finally:
        for one in listening:
            one.close()


def test_on_postgresql_workers_share_a_store_too(make: Callable[..., Server], postgres: PostgresServer) -> None:
    server = make(postgres.create("workers_share"))
    worked_off_while_workers_die(server)


def test_no_result_is_lost_or_counted_twice_while_workers_are_killed(server: Server) -> None:
    worked_off_while_workers_die(server)


def worked_off_while_workers_die(server: Server) -> None:
    """Four agents work a project off through the SDK; whichever worker has their connection, it may die."""
    count = 60
    with Client(server.url, "p", agent="boss", session="boss") as boss:
        boss.batch([boss_task(n) for n in range(count)])
    done: list[str] = []
    mutex, killing = threading.Lock(), threading.Lock()

    def work(name: str) -> None:
        with Client(server.url, "p", agent=name, session=name) as client:
            while (claim := client.claim()).ok:
                client.submit(claim.receipt, {"by": name}).check()
                with mutex:
                    done.append(claim.task["id"])
                    is_next = len(done) % 10 == 0
                if is_next:
                    with killing:
                        server.kill_worker(min(server.pids()))  # the oldest; the others have requests open

    with ThreadPoolExecutor(4) as pool:
        for one in [pool.submit(work, f"agent-{n}") for n in range(4)]:
            one.result(PATIENCE)
    assert len(done) == len(set(done)) == count
    with Client(server.store, "p", agent="a", session="s") as client:
        assert len(client.tasks(state="completed", limit=200)) == count
        assert client.verify() == []
    assert len(server.restarts()) == count // 10


def boss_task(number: int) -> Any:
    return Add(project="p", task=NewTask(title=f"task {number}"))


@pytest.mark.parametrize("count", ["0", "-1", "65", "many"])
def test_a_senseless_number_of_workers_is_refused(count: str, tmp_path: Path) -> None:
    assert "workers" in refused(str(tmp_path / "store.db"), count)


def test_a_store_in_the_memory_of_one_process_has_no_workers(tmp_path: Path) -> None:
    assert "memory" in refused("memory://", "2")


def test_the_error_of_a_start_is_told_as_that_of_one_process(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    said = refused(str(tmp_path / "store.db"), "2", "--tls-cert", str(missing), "--tls-key", str(missing))
    assert "missing.pem" in said
    assert "Traceback" not in said


def refused(store: str, count: str, *options: str) -> str:
    if store != "memory://":
        Client(store, "p", create=True).close()
    told = subprocess.run(
        [sys.executable, "-P", "-m", "tenure", "serve", "--workers", count, "--port", str(processes.free_port()),
         *options],
        env={**os.environ, "TENURE_URL": store}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert told.returncode not in (0, 70), told
    return told.stderr
