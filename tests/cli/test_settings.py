"""Each setting has its effect, from each place that may set it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.core.instants import parse_instant
from tests.cli.conftest import Tenure
from tests.servers.processes import free_port


def toml(key: str, value: Any) -> str:
    section, _, name = key.rpartition(".")
    line = f"{name} = {json.dumps(value)}\n"
    return f"[{section}]\n{line}" if section else line


def in_shared(tenure: Tenure, key: str, value: Any) -> dict[str, str]:
    (tenure.folder / "tenure.toml").write_text(toml(key, value))
    return {}


def in_local(tenure: Tenure, key: str, value: Any) -> dict[str, str]:
    path = tenure.folder / ".tenure" / "config.toml"
    path.write_text(toml(key, value))
    path.chmod(0o600)
    return {}


def in_environment(tenure: Tenure, key: str, value: Any) -> dict[str, str]:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return {"TENURE_" + key.upper().replace(".", "_"): text}


def by_config(tenure: Tenure, key: str, value: Any) -> dict[str, str]:
    (tenure.folder / ".tenure" / "config.toml").unlink(missing_ok=True)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    assert tenure.process("config", key, text).code == 0
    return {}


PLACES = [in_shared, in_local, in_environment, by_config]
Place = Callable[[Tenure, str, Any], dict[str, str]]


@pytest.fixture(params=PLACES, ids=["tenure.toml", "config.toml", "environment", "config"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.param
    return found


def added(tenure: Tenure, **env: str) -> dict[str, Any]:
    task: dict[str, Any] = tenure.process("add", "Work", "--json", **env).json
    return task


def test_a_task_without_a_priority_takes_that_of_the_settings(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "tasks.priority", "high")
    assert tenure.process("config", "tasks.priority", **env).out == "high\n"
    assert added(tenure, **env)["priority"] == 20
    assert tenure.process("add", "Other", "-p", "low", "--json", **env).json["priority"] == 70


def test_a_task_without_a_number_of_attempts_takes_that_of_the_settings(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "tasks.max_attempts", 7)
    assert added(tenure, **env)["max_attempts"] == 7


def test_what_a_lost_claim_means_is_set(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "tasks.on_lost", "hold")
    key = added(tenure, **env)["key"]
    tenure.process("claim", key, "--lease", "1", **env)
    tenure.process("recover", key)
    exported = tenure.process("plan", "export", "--all").out
    assert "on_lost: hold" in exported


def test_a_lease_is_as_long_as_set(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "lease", 77.0)
    added(tenure, **env)
    assert 70 < tenure.process("claim", "--json", **env).json["lease"] <= 77


def test_an_agent_that_joins_has_the_intervals_of_the_settings(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "agents.stale_after", 50.0)
    tenure.process("join", "-n", "ann", **env)
    assert stored(tenure, "ann")["stale_after"] == 50_000_000
    env = place(tenure, "agents.heartbeat", 11.0)
    tenure.process("join", "-n", "bo", **env)
    assert stored(tenure, "bo")["heartbeat"] == 11_000_000
    assert stored(tenure, "bo")["stale_after"] == 1_800_000_000


def stored(tenure: Tenure, agent: str) -> dict[str, Any]:
    """The row of an agent: a view does not have its intervals."""
    script = (
        "import apsw, sys; c = apsw.Connection(sys.argv[1]); "
        "print(*c.execute('select heartbeat, stale_after from agent where id = ?', (sys.argv[2],)).fetchone())"
    )
    path = str(tenure.folder / ".tenure" / "tenure.db")
    done = subprocess.run([sys.executable, "-c", script, path, agent], capture_output=True, text=True, check=True)
    heartbeat, stale_after = map(int, done.stdout.split())
    return {"heartbeat": heartbeat, "stale_after": stale_after}


def test_an_agent_that_is_not_recognised_has_the_type_of_the_settings(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "agents.type", "builder")
    tenure.process("join", "-n", "ann", **env)
    assert [agent["type"] for agent in tenure.process("agents", "--json", **env).json] == ["builder"]


def test_agents_must_name_themselves_where_that_is_set(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "agents.auto_name", False) | {"TENURE_ROLE": "agent"}
    tenure.process("add", "Work")
    refused = tenure.process("claim", "--json", **env)
    assert (refused.code, "agents.auto_name" in refused.json["error"]["message"]) == (2, True)
    assert tenure.process("claim", "--agent", "ann", **env).code == 0


def test_the_log_of_commands_has_each_verb_above_its_level(tenure: Tenure, tmp_path: Path) -> None:
    path = tmp_path / "commands.log"
    in_local(tenure, "log.file", str(path))
    tenure.process("add", "secret title")
    tenure.process("claim", "A-999")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["level"], line["verb"], line["exit"]) for line in lines] == [
        ("info", "add", 0),
        ("error", "claim", 4),
    ]
    assert "secret title" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    tenure.process("list", TENURE_LOG_LEVEL="error")
    tenure.process("claim", "A-999", TENURE_LOG_LEVEL="error")
    assert [json.loads(line)["verb"] for line in path.read_text().splitlines()] == ["claim"]
    assert tenure.process("list", TENURE_LOG_LEVEL="loud").code == 11
    assert tenure.process("list", TENURE_LOG_FILE="/nowhere/log").code == 0  # one that cannot be written fails nothing


def test_a_repository_cannot_choose_the_file_of_the_log(tenure: Tenure, tmp_path: Path) -> None:
    path = tmp_path / "commands.log"
    in_shared(tenure, "log.file", str(path))
    assert tenure.process("list").code == 0
    assert not path.exists()


def test_colours_and_signs_are_set(tenure: Tenure, place: Place) -> None:
    tenure.process("add", "Work")
    assert "\x1b[" not in tenure.process("list").out
    env = place(tenure, "display.colour", "always") | {"NO_COLOR": ""}
    assert "\x1b[" in tenure.process("list", **env).out
    assert "\x1b[" not in tenure.process("list", **env, TENURE_NO_COLOR="1").out
    env = place(tenure, "display.unicode", False)
    assert "–" in tenure.process("list", TENURE_DISPLAY_UNICODE="true").out
    assert tenure.process("list", **env).out.isascii()


def test_the_leader_s_lease_is_set(tenure: Tenure, place: Place) -> None:
    env = place(tenure, "leader.lease", 7.0)
    command, environ = tenure.command("daemon"), tenure.environ | env
    with subprocess.Popen(command, cwd=tenure.folder, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "coordinating" in process.stderr.readline()
        leader = None
        while leader is None:
            leader = tenure.process("status", "--json").json["coordinator"]
        process.terminate()
    assert parse_instant(leader["until"]) - parse_instant(leader["since"]) < 30_000_000


def test_config_reports_what_is_wrong_and_shows_the_rest(tenure: Tenure) -> None:
    (tenure.folder / "tenure.toml").write_text("lese = 5\nlease = 60\n")
    said = tenure.process("config")
    assert said.code == 11
    assert "lese" in said.err
    assert "lease" in said.out
    assert tenure.process("list").code == 11


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("lease", "soon", "a number of seconds, or a duration as in 90s, 10m or 2h, or 'auto'"),
        ("leader.lease", True, "a number of seconds"),
        ("tasks.priority", "hihg", "a number from 0 (critical) to 100, or one of critical"),
        ("tasks.max_attempts", 2.5, "a whole number"),
        ("tasks.on_lost", "fail", "one of retry, back_off, hold"),
        ("serve.port", 70_000, "a port from 0 to 65535"),
        ("log.level", "loud", "one of debug, info, warning, error"),
        ("display.colour", "rainbow", "one of auto, always, never"),
        ("display.unicode", "perhaps", "true or false"),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused_where_it_stands(
    tenure: Tenure, key: str, value: Any, wanted: str
) -> None:
    assert f"must be {wanted}" in tenure.process("config", key, str(value)).err
    assert not (tenure.folder / ".tenure" / "config.toml").exists()
    in_shared(tenure, key, value)
    said = tenure.process("list")
    assert (said.code, f"tenure.toml: {key} is" in said.err, f"must be {wanted}" in said.err) == (11, True, True)


@pytest.mark.parametrize("key", ["lease", "leader.lease", "agents.heartbeat", "agents.stale_after", "run.timeout"])
def test_a_duration_is_written_as_people_write_it(tenure: Tenure, key: str, place: Place) -> None:
    env = place(tenure, key, "10m")
    assert tenure.process("config", key, **env).out == "600\n"


def test_config_changes_one_setting_and_keeps_the_rest_of_the_file(tenure: Tenure) -> None:
    path = tenure.folder / ".tenure" / "config.toml"
    path.write_text("# ours\nlease = 60  # a minute\n\n[tasks]\npriority = 'low'\n")
    path.chmod(0o600)
    assert tenure("config", "tasks.priority", "20").out == f"tasks.priority is 20 ({path})\n"
    assert tenure("config", "display.unicode", "false").code == 0
    assert path.read_text().startswith("# ours\nlease = 60  # a minute\n\n[tasks]\npriority = 20\n")
    assert tenure("config", "--unset", "lease").out == "lease is 1800 (default)\n"
    assert tenure("config", "display.unicode").out == "false\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_config_writes_the_shared_file_on_request_and_no_secret_into_it(tenure: Tenure) -> None:
    assert tenure("config", "--shared", "tasks.max_attempts", "5").code == 0
    assert (tenure.folder / "tenure.toml").read_text() == "[tasks]\nmax_attempts = 5\n"
    assert tenure("config", "--shared", "key", "tnr_abc").code == 11
    assert "tnr_abc" not in (tenure.folder / "tenure.toml").read_text()


def test_config_says_where_another_value_counts(tenure: Tenure) -> None:
    said = tenure.process("config", "lease", "20m", TENURE_LEASE="5m").out
    assert said.startswith("lease is 300 (TENURE_LEASE); the new value in ")


@pytest.mark.parametrize("words", [("--unset",), ("lease", "5", "--unset"), ("sinks.a.url", "x"), ("lese", "5")])
def test_config_changes_nothing_that_it_does_not_know(tenure: Tenure, words: tuple[str, ...]) -> None:
    assert tenure("config", *words).code == 2
    assert not (tenure.folder / ".tenure" / "config.toml").exists()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"lease = 5\n# caf\xe9\n", "line 2 is not UTF-8 text\n"),
        (b"\xff\xfel\x00e\x00", "line 1 is not UTF-8 text; it seems to be UTF-16\n"),
    ],
)
def test_a_settings_file_that_is_not_utf_8_is_named(tenure: Tenure, content: bytes, what: str) -> None:
    path = tenure.folder / "tenure.toml"
    path.write_bytes(content)
    for verb in ("list", "config", "trust"):
        assert tenure(verb).err == f"tenure: {path}: {what}  save the file as UTF-8\n"


def test_a_byte_order_mark_is_no_error(tenure: Tenure) -> None:
    (tenure.folder / "tenure.toml").write_bytes(b"\xef\xbb\xbflease = 5\n")
    assert tenure("config", "lease").out == "5\n"


def test_the_name_of_a_project_that_is_not_utf_8_is_said_to_be_so(tenure: Tenure) -> None:
    path = tenure.folder / ".tenure" / "project"
    path.write_bytes(b"caf\xe9")
    said = tenure("list")
    assert (said.code, f"{path}: the name of the project is not UTF-8 text" in said.err) == (11, True)


PROGRAM = """
import asyncio, sys
from tenure import AsyncClient, Client, NewTask

with Client() as client:
    print(client.add("By the SDK").task["key"])
    print(client.add_many([NewTask(title="By the batch")])[0]["key"])
    print(client.add("Named", priority="low", max_attempts=1, on_lost="retry").task["key"])

async def main():
    async with AsyncClient() as client:
        print((await client.add("By asyncio")).task["key"])

asyncio.run(main())
"""


def test_the_defaults_of_tasks_count_however_a_task_is_created(tenure: Tenure) -> None:
    (tenure.folder / "tenure.toml").write_text('[tasks]\npriority = "high"\nmax_attempts = 7\non_lost = "hold"\n')
    (tenure.folder / "plan.yaml").write_text("name: p\ntasks: [{id: one, title: By a plan}]\n")

    def found(key: str) -> tuple[int, int]:
        task = tenure.process("show", key, "--json").json
        return task["priority"], task["max_attempts"]

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tenure.folder, env=tenure.environ, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    sdk, batch, named, later = ran.stdout.split()
    assert tenure.process("plan", "apply", "plan.yaml").code == 0
    assert "0 created, 0 changed" in tenure.process("plan", "apply", "plan.yaml").out
    (planned,) = [t["key"] for t in tenure.process("list", "--json").json if t["title"] == "By a plan"]
    by_mcp = mcp_added(tenure, "By MCP")
    assert [found(key) for key in (sdk, batch, later, planned, by_mcp)] == [(20, 7)] * 5
    assert found(named) == (70, 1)
    other = tenure.process("add", "Elsewhere", "--project", "other", "--json")
    assert other.code == 4  # there is no such project: the settings of this one make none


def mcp_added(tenure: Tenure, title: str) -> str:
    """The key of a task that an agent adds over MCP."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = (
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"title": title}}},
    )
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "tenure", "mcp"], cwd=tenure.folder, env=tenure.environ, input=lines,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (answer,) = [reply for reply in map(json.loads, ran.stdout.splitlines()) if reply["id"] == 2]
    return str(answer["result"]["structuredContent"]["task"]["key"])


def test_the_defaults_of_a_server_count_for_tasks_that_are_created_over_http(tenure: Tenure) -> None:
    (tenure.folder / "tenure.toml").write_text("[tasks]\nmax_attempts = 7\n")
    port = free_port()
    words = [sys.executable, "-P", "-m", "tenure", "serve", "--port", str(port)]
    with subprocess.Popen(words, cwd=tenure.folder, env=tenure.environ, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert "serving" in server.stdout.readline()
            project = tenure.process("config", "project").out.strip()
            elsewhere = {"TENURE_URL": f"http://127.0.0.1:{port}", "TENURE_PROJECT": project}
            script = "from tenure import Client; print(Client().add('Over HTTP').task['max_attempts'])"
            ran = subprocess.run(
                [sys.executable, "-c", script], cwd=tenure.folder.parent, env=tenure.environ | elsewhere,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert ran.stdout == "7\n", ran.stderr
        finally:
            server.terminate()
