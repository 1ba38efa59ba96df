"""The same verbs over a server: TENURE_URL is all that differs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.client.transports import http
from tests.cli.conftest import Tenure
from tests.servers.tenure import TenureServer

PLAN = """
name: shop
tasks:
  - name: schema
    title: Design the schema
  - name: api
    title: Write the API
    depends_on: [schema]
"""


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenureServer]:
    store = str(tmp_path_factory.mktemp("served") / "store.db")
    Client(store, create=True).close()
    with TenureServer(store) as server:
        yield server


@pytest.fixture
def team(bare: Tenure, server: TenureServer) -> Tenure:
    """A folder whose commands speak to a server."""
    bare.environ["TENURE_URL"] = server.url
    assert bare.process("init").code == 0
    return bare


def json_of(team: Tenure, *words: object) -> object:
    said = team.process(*words, "--json")
    assert said.code == 0, said
    return said.json


def test_a_zombie_is_refused(team: Tenure) -> None:
    assert team.process("add", "Design the schema", "--track", "B").code == 0
    assert team.process("claim", "--session", "ann", "--lease", 1).code == 0
    assert team.process("claim", "--session", "bo", "--wait", 30, "--json").json["generation"] == 2
    zombie = team.process("done", "B-001", "--session", "ann", "--json")
    assert (zombie.code, zombie.json["outcome"]) == (6, "STALE_GENERATION")
    assert team.process("done", "--session", "bo").code == 0
    entries = team.process("history", "B-001", "--json").json
    assert [(e["release_reason"], e["result_accepted"]) for e in entries] == [("EXPIRED", False), ("COMPLETED", True)]
    assert team.process("doctor").code == 0
    assert not (team.folder / ".tenure").exists(), "receipts are kept in the user's own folder"


def test_the_verbs_of_a_day(team: Tenure) -> None:
    (team.folder / "plan.yaml").write_text(PLAN)
    assert team.process("plan", "apply", "plan.yaml").code == 0
    assert "Write the API" in team.process("plan", "export", "--all").out
    assert [task["key"] for task in json_of(team, "list")] == ["A-001-design-the-schema", "A-002-write-the-api"]
    assert json_of(team, "next")["task"]["key"] == "A-001-design-the-schema"
    receipt = json_of(team, "claim")["receipt"]
    assert json_of(team, "whoami", "--receipt")["holds"][0]["receipt"] == receipt
    (held,) = json_of(team, "whoami")["holds"]
    assert (held["key"], held["task_ref"], "receipt" in held) == ("A-001-design-the-schema", "A-001@1", False)
    assert receipt not in team.process("whoami").out
    for words in (
        ("progress", "half", "--percent", 50), ("checkpoint", "save", "--next-action", "go on"), ("start",),
        ("msg", "hello", "--to", "ann"), ("inbox",), ("reserve", "src/**"), ("locks",), ("status",), ("usage",),
        ("prime",), ("why", "A-002"), ("show", "A-001"), ("agents",), ("session",), ("log",), ("watch",), ("ready",),
        ("note", "A-002", "hm"), ("edit", "A-002", "--title", "API"), ("pause", "A-002"), ("resume", "A-002"),
        ("done", "-s", "fine"), ("wait", "A-001"), ("cancel", "A-002", "--dry-run"), ("undo",), ("dlq",), ("leave",),
    ):  # fmt: skip
        said = team.process(*words)
        assert (said.code, said.err) == (0, ""), (words, said)
    assert [task["state"] for task in json_of(team, "list")] == ["completed", "ready"]


def test_what_only_a_store_can_do_is_said(team: Tenure) -> None:
    for words in (("db", "check"), ("db", "backup", "x.db"), ("db", "archive"), ("db", "upgrade"), ("daemon",)):
        said = team.process(*words, "--json")
        assert (said.code, said.json["error"]["code"]) == (7, "STORE_ONLY"), words
        assert "server" in said.json["error"]["message"]


def test_the_key_is_used_and_never_printed(team: Tenure) -> None:
    team.environ["TENURE_KEY"] = "tk_secret"
    assert team.process("config", "key").out == "…\n"
    for words in (("config",), ("config", "--json"), ("doctor",), ("list",), ("whoami", "--json")):
        said = team.process(*words)
        assert "tk_secret" not in said.out + said.err
    (team.folder / "tenure.toml").write_text('key = "tk_shared"\n')
    refused = team.process("list")
    assert refused.code == 11
    assert "TENURE_KEY" in refused.err
    assert "tk_shared" not in refused.err


def test_a_server_that_is_away_is_code_10(team: Tenure, server: TenureServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.kill()
    monkeypatch.setenv("TENURE_URL", server.url)
    monkeypatch.setattr(http, "PATIENCE", 0.1)
    said = team("list", "--json")
    assert (said.code, said.json["error"]["code"], said.json["error"]["definite"]) == (10, "STORE_UNAVAILABLE", True)


def test_events_are_followed(team: Tenure) -> None:
    with team.start("log", "-f", "--json") as follower:
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["kind"] == "project.created"
        team.process("add", "One")
        kinds = iter(lambda: json.loads(follower.stdout.readline())["kind"], None)
        assert "task.created" in kinds
        follower.kill()


def test_a_runner_works_off_the_queue_of_a_server(team: Tenure) -> None:
    for name in ("One", "Two"):
        team.process("add", name)
    done = team.process("run", "--agent", "sh -c 'cat > /dev/null; echo made'", "--until-empty", "-n", 2, "--json")
    assert done.code == 0, done
    assert [task["state"] for task in json_of(team, "list")] == ["completed", "completed"]
    assert json_of(team, "show", "A-001")["result"]["data"] is not None


def test_an_agents_hook_renews_over_a_server(team: Tenure) -> None:
    team.process("add", "One")
    team.process("claim", "--session", "s-1")
    payload = json.dumps({"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": str(team.folder)})
    said = team.process("hook", "--from", "claude", "--session", "s-1", stdin=payload)
    assert said.code == 0
    assert "A-001" in said.out


def test_mcp_serves_a_store_behind_a_server(team: Tenure) -> None:
    team.process("add", "One")
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "claim", "arguments": {"wait": 1}}},
    ]  # fmt: skip
    with subprocess.Popen(
        team.command("mcp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=team.folder,
        env=team.environ,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for call in calls:
            process.stdin.write(json.dumps(call) + "\n")
            process.stdin.flush()
            if "id" in call:
                answer = json.loads(process.stdout.readline())
        process.stdin.close()
    assert answer["result"]["structuredContent"]["outcome"] == "GRANTED"


def test_a_worktree_is_made_and_landed(team: Tenure) -> None:
    def git(*words: str, cwd: Path = team.folder) -> str:
        named = ["-c", "user.name=ann", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *named, *words], cwd=cwd, check=True, capture_output=True, text=True, env=team.environ
        ).stdout

    git("init", "-b", "main")
    (team.folder / "file").write_text("one\n")
    git("add", "file")
    git("commit", "-m", "one")
    team.process("add", "Two")
    team.process("claim", "--session", "s")
    tree = json_of(team, "worktree", "add", "--session", "s")
    where = Path(tree["path"])
    (where / "file").write_text("two\n")
    git("commit", "-am", "two", cwd=where)
    landed = team.process("land", "--session", "s", cwd=where)
    assert landed.code == 0, landed
    assert (team.folder / "file").read_text() == "two\n"
