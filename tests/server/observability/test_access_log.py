"""The access log: who did and read what, refusals too, in a chain that shows every change."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.config import BadConfig
from tenure.core.access_chain import ChainReport, check
from tenure.core.commands import CreateKey, Submit
from tenure.core.errors import NotFound, StoreUnavailable
from tenure.core.queries import Tasks
from tenure.server.access_log import AccessLog, fields_of
from tests.servers.tenure import TenureServer

API = "/api/v1/projects/p"
TRACE = "0af7651916cd43dd8448eb211c80319c"


def lines_of(*files: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def verified(*files: Path) -> ChainReport:
    return check([(str(file), file.read_bytes().splitlines(keepends=True)) for file in files])


# --- the file -----------------------------------------------------------------------------------------------


def test_a_chain_goes_on_through_restarts_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    for n in range(3):
        log = AccessLog(str(path), "local")
        log.write({"route": "/x", "n": n})
        log.close()
    assert [line.get("event") or line["n"] for line in lines_of(path)] == ["started", 0, "started", 1, "started", 2]
    assert verified(path).findings == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_file_is_put_aside_and_an_old_one_deleted(tmp_path: Path) -> None:
    path, now = tmp_path / "access.jsonl", 1_700_000_000.0
    log = AccessLog(str(path), "local", size=0.001, days=30, clock=lambda: now)
    for n in range(20):
        log.write({"route": "/x", "n": n})
    aside = sorted(tmp_path.glob("access.jsonl.*"))
    assert len(aside) > 2
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in aside)
    assert verified(*aside, path).findings == []
    assert [line["n"] for line in lines_of(*aside, path) if "n" in line] == list(range(20))
    os.utime(aside[0], (now - 31 * 86_400, now - 31 * 86_400))
    for file in aside[1:]:
        os.utime(file, (now, now))
    other = tmp_path / "access.jsonl.notes"  # somebody's own file
    other.touch()
    os.utime(other, (0, 0))
    for n in range(10):
        log.write({"route": "/x", "n": n})
    left = sorted(tmp_path.glob("access.jsonl.0*"))
    assert aside[0] not in left
    assert left[0] == aside[1]
    assert other.exists()
    assert verified(*left, path).findings == []
    log.close()


def test_a_file_that_somebody_else_moves_is_followed_by_another_of_the_same_chain(tmp_path: Path) -> None:
    path, moved = tmp_path / "access.jsonl", tmp_path / "moved"
    log = AccessLog(str(path), "local")
    log.write({"route": "/x"})
    path.rename(moved)
    log.write({"route": "/y"})
    log.close()
    assert [line["route"] for line in lines_of(path)] == ["/y"]
    assert verified(moved, path).findings == []


def test_a_torn_line_is_named_by_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    for cut in (1, 20):
        log = AccessLog(str(path), "local")
        log.write({"route": "/x"})
        log.close()
        path.write_bytes(path.read_bytes()[:-cut])
    AccessLog(str(path), "local").close()
    found = verified(path)
    assert (found.findings, len(found.torn)) == ([], 1)  # the first lacked only its line break


def test_two_processes_never_share_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "access.jsonl")
    log = AccessLog(path, "local")
    with pytest.raises(BadConfig, match="another process"):
        AccessLog(path, "local")
    one, two = (AccessLog(path, "local", worker=n) for n in (1, 2))
    assert [Path(each.path).name for each in (one, two)] == ["access-w1.jsonl", "access-w2.jsonl"]
    for each in (log, one, two):
        each.close()
    with pytest.raises(BadConfig, match="No such file"):
        AccessLog(str(tmp_path / "missing" / "access.jsonl"), "local")


def test_a_line_that_cannot_be_written_is_counted_in_the_next(tmp_path: Path) -> None:
    path, said = tmp_path / "access.jsonl", []
    log = AccessLog(str(path), "local", warn=lambda text, **more: said.append(text))
    whole, log._file = log._file, (tmp_path / "access.jsonl").open("rb")  # cannot be written to
    log.write({"route": "/lost"})
    log.write({"route": "/lost"})
    log._file.close()
    log._file = whole
    log.write({"route": "/x"})
    assert (lines_of(path)[-1]["route"], lines_of(path)[-1]["lost"]) == ("/x", 2)
    assert said == ["the access log cannot be written"]
    log.write({"route": "/y"})
    log.close()
    assert "lost" not in lines_of(path)[-1]
    report = verified(path)
    assert report.findings == [f"{path}:2: 2 lines were lost before it: the log could not be written"]
    assert (report.lost, report.lines) == (2, 3)


# --- what a line says ---------------------------------------------------------------------------------------


def test_operations_name_their_tasks_and_never_a_receipt() -> None:
    receipt = "B-003@7:" + "00" * 20
    said = fields_of(Submit(project="p", receipt=receipt, data="secret"), NotFound("no task"))
    assert said == {"command": "submit", "outcome": "NOT_FOUND", "keys": ["B-003"]}
    views = [{"key": f"A-{n:03d}"} for n in range(150)]
    said = fields_of(Tasks(project="p"), views)
    assert (said["query"], said["rows"], len(said["keys"]), said["keys_left_out"]) == ("tasks", 150, 100, 50)
    assert "00" * 20 not in json.dumps(fields_of(Tasks(project="p", parent=receipt), []))


# --- served -------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    with tenure.Client(path, "p", create=True) as client:
        client.init()
        client.add("first")
    return path


@pytest.fixture
def access(tmp_path: Path) -> Path:
    return tmp_path / "access.jsonl"


@pytest.fixture
def server(store: str, access: Path) -> Iterator[TenureServer]:
    with TenureServer(store, settings={"TENURE_SERVE_ACCESS_LOG": str(access)}) as server:
        yield server


def ask(server: TenureServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    link = HTTPConnection("127.0.0.1", server.port, timeout=30)
    fixed = {"Content-Type": "application/json", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    link.request(method, path, None if body is None else json.dumps(body), {**fixed, **headers})
    answer = link.getresponse()
    text = answer.read()
    link.close()
    return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text


def test_every_operation_is_a_line_reads_and_refusals_too(server: TenureServer, access: Path) -> None:
    _, claimed = ask(server, "POST", f"{API}/claims", {"agent": "ann", "session": "s"})
    receipt = claimed["receipt"]
    ask(server, "POST", f"{API}/tasks/A-001/claim", {"agent": "bo", "session": "t"})
    ask(server, "GET", f"{API}/tasks?limit=5")
    ask(server, "GET", f"{API}/tasks/{receipt}")
    ask(server, "POST", f"{API}/tasks/A-001/submit", {"receipt": f"A-001@9:{'0' * 40}", "data": "x"})
    ask(server, "POST", f"{API}/tasks/A-001/submit", {"receipt": receipt, "data": "the result"})
    ask(server, "POST", f"{API}/batch", {"commands": [
        {"command": "note", "task": "A-001", "text": "n"}, {"command": "cancel", "task": "A-404"}]})  # fmt: skip
    ask(server, "GET", "/api/v1/nowhere")
    ask(server, "GET", "/nowhere.html")
    ask(server, "GET", "/health")
    ask(server, "GET", f"{API}?at=1", Authorization="Bearer nonsense")
    server.end()
    first, *lines = lines_of(access)
    assert first["event"] == "started"
    routes = [line["route"].removeprefix("/api/v1/projects/{project}") for line in lines]
    assert routes == [
        "/claims", "/tasks/{task}/claim", "/tasks", "/tasks/{task}", "/tasks/{task}/submit", "/tasks/{task}/submit",
        "/batch", "none", "/", "",
    ]  # fmt: skip
    assert [line["status"] for line in lines] == [200, 409, 200, 404, 409, 200, 200, 404, 404, 401]
    claim, denied, listed, foreign, stale, done, batch, nowhere, page, refused = lines
    assert (claim["command"], claim["outcome"], claim["keys"]) == ("claim_next", "GRANTED", [claimed["task"]["key"]])
    assert (denied["outcome"], denied["keys"]) == ("DENIED_ACTIVE_CLAIM", ["A-001"])
    assert (listed["query"], listed["rows"], listed["keys"]) == ("tasks", 1, [claimed["task"]["key"]])
    assert foreign["error"] == "NOT_FOUND"
    assert (stale["outcome"], done["outcome"]) == ("STALE_EPOCH", "ACCEPTED")
    assert [(one["command"], one["outcome"]) for one in batch["operations"]] == [
        ("note", "UPDATED"), ("cancel", "NOT_FOUND"),
    ]  # fmt: skip
    assert (nowhere["path"], page["path"]) == ("/api/v1/nowhere", "/nowhere.html")
    assert refused["error"] == "NOT_SIGNED_IN"
    assert "principal" not in refused
    for line in lines:
        assert (line["tenant"], line["address"], line["trace_id"]) == ("local", "127.0.0.1", TRACE)
        assert line.get("role") == (None if line in (page, refused) else "owner")
        assert line.get("project") == (None if line in (nowhere, page) else "p")
    assert verified(access).findings == []
    written = access.read_text()
    assert receipt.partition(":")[2] not in written
    assert "the result" not in written


KEYS = (("alice", "member", None), ("bot", "agent", "bo"))


def test_a_line_names_who_is_refused_and_in_whose_name_an_agents_key_was_made(
    server: TenureServer, access: Path, store: str
) -> None:
    with tenure.Client(store, "p") as client:
        made = (CreateKey(project="", name=name, role=role, user="alice", agent=agent) for name, role, agent in KEYS)
        person, agent = (str(client.do(command).secret) for command in made)
    ask(server, "GET", f"{API}/tasks?limit=5", **{"Authorization": f"Bearer {person}", "Tenure-Tenant": "acme"})
    ask(server, "GET", f"{API}/tasks?limit=5", Authorization=f"Bearer {agent}")
    server.end()
    foreign, own = lines_of(access)[-2:]
    assert (foreign["status"], foreign["principal"], foreign["tenant"]) == (404, "human:alice", "local")
    assert foreign["key"] in person
    assert (own["status"], own["principal"], own["user"]) == (200, "agent:bo", "alice")


def test_a_stream_is_a_line_when_it_begins(server: TenureServer, access: Path) -> None:
    link = HTTPConnection("127.0.0.1", server.port, timeout=30)
    link.request("GET", f"{API}/events?after=0", headers={"Accept": "text/event-stream"})
    link.getresponse().read(20)
    assert lines_of(access)[-1]["route"].endswith("/events")
    link.close()


def test_a_server_that_was_killed_goes_on_with_the_chain(store: str, access: Path) -> None:
    settings = {"TENURE_SERVE_ACCESS_LOG": str(access)}
    with TenureServer(store, settings=settings) as server:
        ask(server, "GET", f"{API}/tasks")
        server.kill()
    with TenureServer(store, settings=settings) as server:
        ask(server, "GET", f"{API}/tasks")
    found = verified(access)
    assert (found.findings, found.torn, found.first) == ([], [], 1)
    assert [line.get("event") for line in lines_of(access)].count("started") == 2


def test_each_worker_has_a_file_and_a_chain(store: str, access: Path) -> None:
    with TenureServer(store, "--workers", "2", settings={"TENURE_SERVE_ACCESS_LOG": str(access)}) as server:
        for _ in range(20):
            assert ask(server, "GET", f"{API}/tasks")[0] == 200
        assert server.end() == 0
    files = sorted(access.parent.glob("access*.jsonl"))
    assert [file.name for file in files] == ["access-w0.jsonl", "access-w1.jsonl"]
    assert [verified(file).findings for file in files] == [[], []]
    assert sum(line.get("query") == "tasks" for line in lines_of(*files)) == 20


def test_a_file_that_cannot_be_written_stops_the_start(store: str, tmp_path: Path) -> None:
    for wrong in ({"ACCESS_LOG": str(tmp_path / "no" / "access")}, {"ACCESS_LOG_SIZE": "0"}, {"ACCESS_LOG_DAYS": "-1"}):
        settings = {f"TENURE_SERVE_{name}": value for name, value in wrong.items()}
        with pytest.raises(Exception, match="access_log"), TenureServer(store, settings=settings):
            pass


def test_a_preset_of_a_project_keeps_old_files_longer(tmp_path: Path) -> None:
    path, now = tmp_path / "access.jsonl", 1_700_000_000.0
    presets: list[str] = ["", "soc2"]

    def given() -> list[str]:
        if "unknown" in presets:
            raise StoreUnavailable("not now")
        return presets

    log = AccessLog(str(path), "local", size=0.001, days=30, clock=lambda: now, presets=given)
    for n in range(20):
        log.write({"route": "/x", "n": n})
    first, second, *_ = sorted(tmp_path.glob("access.jsonl.*"))
    for file, days in ((first, 366), (second, 364)):
        os.utime(file, (now - days * 86_400, now - days * 86_400))
    for presets[0], left in (("unknown", [True, True]), ("", [False, True]), ("hipaa", [False, True])):
        for n in range(10):
            log.write({"route": "/x", "n": n})
        assert [file.exists() for file in (first, second)] == left
    log.close()
