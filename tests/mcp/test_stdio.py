"""The server as agents start it: a process of its own, spoken to over its standard input and output."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import ListRootsResult, Root

from tenure.client import Client
from tenure.mcp.stdio_server import PATIENCE
from tests.mcp.conftest import ERAS, Agent, Connect, command, make_store

pytestmark = pytest.mark.anyio
Raw = Callable[..., subprocess.Popen[bytes]]

HELLO: tuple[dict[str, Any], ...] = (
    {
        "id": "hello",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)


def call(id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def send(server: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(lines(*messages))
    server.stdin.flush()


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


def heard(server: subprocess.Popen[bytes], id: object) -> dict[str, Any]:
    """The answer with that id; others before it are passed over."""
    assert server.stdout is not None
    for line in server.stdout:
        message: dict[str, Any] = json.loads(line)
        if message.get("id") == id:
            return message
    raise AssertionError(f"the server ended without an answer to {id}")


# --- the work ---


async def test_a_zombie_is_refused_and_the_one_that_took_over_is_accepted(process: Connect, owner: Client) -> None:
    owner.add("x")
    async with process("--session", "s1", "--agent", "ann") as ann:
        first = await ann("claim", lease=1)
        assert first.outcome == "GRANTED"
        async with process("--session", "s2", "--agent", "bo", mode="2026-07-28") as bo:
            second = await bo("claim", wait=30)  # it is woken when the lease of the first is over
            assert (second.outcome, second["generation"]) == ("GRANTED", 2)
            assert (await ann("show", what="held"))["tasks"] == []
            late = await ann("update", receipt=first["receipt"], percent=90)
            assert (late.outcome, late.is_error) == ("STALE_GENERATION", True)
            assert late["next"].startswith("Stop")
            done = await bo("finish", receipt=second["receipt"], outcome="done", summary="by bo")
            assert done.outcome == "ACCEPTED"
        zombie = await ann("finish", receipt=first["receipt"], outcome="done", summary="by ann", result={"mine": 1})
    assert (zombie.outcome, zombie.is_error, zombie["work_lost"]) == ("STALE_GENERATION", True, True)
    lineage = [(g["agent"], g["release_reason"], g["result_accepted"]) for g in owner.history("A-001")]
    assert lineage == [("ann", "EXPIRED", False), ("bo", "COMPLETED", True)]
    assert [r["summary"] for r in owner.history("A-001")[0]["refused"]] == ["by ann"]
    assert owner.verify() == []


async def test_many_servers_never_hand_out_a_task_twice(process: Connect, owner: Client) -> None:
    keys = {str(owner.add(f"Task {n}").task["key"]) for n in range(12)}  # type: ignore[index]
    taken: list[str] = []

    async def take(agent: Agent) -> None:
        taken.append((await agent("claim"))["task"]["key"])

    async def work(number: int) -> None:
        at = process("--session", f"s{number}", "--agent", f"a{number}")
        async with at as agent, anyio.create_task_group() as calls:
            for _ in range(3):
                calls.start_soon(take, agent)

    async with anyio.create_task_group() as servers:
        for number in range(4):
            servers.start_soon(work, number)
    assert len(taken) == 12
    assert set(taken) == keys


async def test_a_claim_that_waits_keeps_no_other_call_waiting(process: Connect, owner: Client) -> None:
    async with process() as agent:
        got: dict[str, Any] = {}

        async def wait() -> None:
            got["waited"] = await agent("claim", wait=60)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            for _ in range(5):
                assert (await agent("show", what="status"))["tasks"] == {}
            assert not got
            assert (await agent("add", title="At last")).outcome == "CREATED"
    assert got["waited"]["task"]["title"] == "At last"


async def test_the_shell_and_the_server_of_an_agent_are_one_session(
    process: Connect, owner: Client, folder: Path, environ: dict[str, str]
) -> None:
    owner.add("x")
    inside = environ | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "7334e224-d17a"}
    async with process(environ=inside, name="claude-code") as agent:
        claimed = await agent("claim")
        assert claimed["task"]["agent"] == "claude-d17a"
        words = command("done", "-s", "from the shell", "--json")
        said = await anyio.run_process(words, cwd=folder, env=inside, check=False)
        assert json.loads(said.stdout)["outcome"] == "ACCEPTED", said
        again = await agent("finish", receipt=claimed["receipt"], outcome="release")
    assert again.outcome == "TASK_ALREADY_COMPLETED"
    (generation,) = owner.history("A-001")
    assert (generation["session"], generation["release_reason"]) == ("7334e224-d17a", "COMPLETED")


async def test_a_session_with_a_key_signs_what_it_submits_by_mcp(
    process: Connect, owner: Client, folder: Path, environ: dict[str, str]
) -> None:
    owner.add("x")
    inside = environ | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "7334e224-d17a"}
    joined = await anyio.run_process(command("join", "--key", "my.key", "--json"), cwd=folder, env=inside, check=False)
    assert joined.returncode == 0, joined
    session = json.loads(joined.stdout)["session"]
    async with process("--session", session, environ=inside, name="claude-code") as agent:
        claimed = await agent("claim")
        done = await agent("finish", receipt=claimed["receipt"], outcome="done", summary="by mcp")
    assert done.outcome == "ACCEPTED", done
    (generation,) = owner.history("A-001")
    assert len(generation["signatures"]) == 1


# --- where the store is ---


async def test_without_a_store_the_tools_say_so_and_work_once_there_is_one(process: Connect, bare: Path) -> None:
    async with process() as agent:
        assert len((await agent.client.list_tools()).tools) == 7
        for tool, arguments in (("claim", {}), ("show", {}), ("add", {"title": "x"})):
            refused = await agent(tool, **arguments)
            assert (refused.outcome, refused.is_error) == ("NO_STORE", True)
            assert "tenure init" in refused.text
        assert not (bare / ".tenure").exists()
        make_store(bare)
        assert (await agent("add", title="x")).outcome == "CREATED"
        shutil.rmtree(bare / ".tenure")
        assert (await agent("show")).outcome == "NO_STORE"
        make_store(bare)
        assert (await agent("show"))["tasks"] == []


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ERAS)
async def test_a_server_started_elsewhere_finds_the_store_by_the_clients_roots(
    process: Connect, owner: Client, folder: Path, tmp_path: Path, mode: str
) -> None:
    owner.add("x")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    asked: list[int] = []

    async def roots(context: Any) -> ListRootsResult:
        asked.append(1)
        return ListRootsResult(roots=[Root(uri=path.as_uri()) for path in (elsewhere, tmp_path / "none", folder)])

    async with process(cwd=elsewhere, mode=mode, list_roots_callback=roots) as agent:
        assert (await agent("claim")).outcome == "GRANTED"
        assert (await agent("show", what="held"))["tasks"]
        (status,) = (await agent.client.read_resource("tenure://status")).contents
        assert json.loads(status.text)["tasks"] == {"claimed": 1}
        assert len(asked) == 1
    async with process(cwd=elsewhere, mode=mode) as agent:  # whose client offers none
        assert (await agent("show")).outcome == "NO_STORE"


async def test_a_folder_that_was_named_is_the_only_one_that_is_looked_at(
    process: Connect, owner: Client, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=folder.as_uri())])

    async with process("-C", str(elsewhere), list_roots_callback=roots) as agent:
        assert (await agent("show")).outcome == "NO_STORE"
    async with process("-C", str(folder), cwd=elsewhere) as agent:
        assert (await agent("show"))["tasks"] == []


async def test_the_store_may_be_named_by_the_environment(
    process: Connect, owner: Client, folder: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    url = f"sqlite://{folder}/.tenure/tenure.db"
    async with process(cwd=tmp_path, environ=environ | {"TENURE_URL": url}) as agent:
        assert (await agent("show"))["tasks"] == []


# --- the wire ---


def test_a_script_that_pipes_its_requests_in_gets_every_answer_and_nothing_else(raw: Raw, owner: Client) -> None:
    owner.add("x")
    server = raw()
    asked = [
        call(1, "claim"),
        call(2, "show", what="status"),
        call(3, "update", receipt="no"),
        call(4, "add", title="y"),
    ]
    out, err = server.communicate(lines(*HELLO, *asked), timeout=60)
    said = [json.loads(line) for line in out.splitlines()]
    assert {message["id"] for message in said} == {"hello", 1, 2, 3, 4}
    assert all("result" in message for message in said)
    assert (server.returncode, err) == (0, b"")
    assert owner.show("A-001")["state"] == "claimed"  # claims stay: the session may go on


def test_the_end_of_the_input_ends_a_claim_that_waits_and_takes_nothing(raw: Raw, owner: Client) -> None:
    server = raw()
    out, err = server.communicate(lines(*HELLO, call(1, "claim", wait=300)), timeout=60)
    answer = json.loads(out.splitlines()[-1])
    assert answer["result"]["structuredContent"]["outcome"] == "NO_TASK"
    assert (server.returncode, err) == (0, b"")


@pytest.mark.sampled
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_although_input_is_open_and_a_claim_waits(
    raw: Raw, owner: Client, ending: signal.Signals
) -> None:
    owner.add("x")
    server = raw("--session", "s1")
    send(server, *HELLO, call(1, "claim"))
    assert heard(server, 1)["result"]["structuredContent"]["outcome"] == "GRANTED"
    send(server, call(2, "claim", wait=300), call(3, "show"))
    heard(server, 3)
    server.send_signal(ending)
    assert server.wait(timeout=30) == 0
    assert server.stderr is not None
    assert server.stderr.read() == b""
    assert owner.show("A-001")["state"] == "claimed"
    assert owner.verify() == []


def test_a_client_that_is_gone_is_no_fault_of_ours(raw: Raw, owner: Client) -> None:
    server = raw()
    send(server, *HELLO)
    heard(server, "hello")
    assert server.stdout is not None
    server.stdout.close()
    send(server, call(1, "show"))
    assert server.stdin is not None
    server.stdin.close()
    assert server.wait(timeout=30) == 0
    assert server.stderr is not None
    assert server.stderr.read() == b""


def test_a_cancelled_call_is_never_answered_and_holds_up_no_end(raw: Raw, owner: Client) -> None:
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "changed my mind"}}
    server = raw()
    send(server, *HELLO, call(1, "claim", wait=300), cancel, call(2, "show"))
    heard(server, 2)
    assert server.stdin is not None
    server.stdin.close()
    assert server.wait(timeout=PATIENCE - 5) == 0
    assert server.stdout is not None
    assert server.stdout.read() == b""


def test_what_is_no_message_is_passed_over(raw: Raw, owner: Client) -> None:
    server = raw()
    send(server, *HELLO)
    assert server.stdin is not None
    server.stdin.write(b'\n{"jsonrpc"\n[]\nnull\n\xff\xfe\x00\n{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n')
    send(server, {"id": 2, "method": "tools/call", "params": {"name": 7}}, {"id": 3, "method": "no/such"})
    send(server, call(4, "show"))
    assert heard(server, 4)["result"]["structuredContent"]["tasks"] == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to see descriptors in")
def test_what_the_server_starts_reads_nothing_and_writes_nowhere_near_the_wire(raw: Raw, owner: Client) -> None:
    """Such as git, which a project that wants clean trees has us start."""
    server = raw()
    send(server, *HELLO, {"id": 1, "method": "ping"})
    heard(server, 1)  # from then on it may start processes; the replies before it are recorded ones
    descriptors = Path(f"/proc/{server.pid}/fd")
    assert (descriptors / "0").readlink() == Path("/dev/null")
    assert (descriptors / "1").readlink() == (descriptors / "2").readlink()


# --- a store that is not ours, or is taken away ---


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


async def test_a_cloned_folder_that_names_a_server_sends_it_nothing(process: Connect, bare: Path) -> None:
    make_store(bare)
    with socket.create_server(("127.0.0.1", 0)) as ear:
        ear.setblocking(False)
        (bare / ".tenure" / "config.toml").write_text(f'url = "http://127.0.0.1:{ear.getsockname()[1]}"\n')
        git(bare, "init", "-q")
        git(bare, "add", "-f", "-A")
        async with process() as agent:
            said = await agent("claim")
            assert (said.is_error, said.outcome) == (True, "UNTRUSTED")
            assert "tenure trust" in said.text
        with pytest.raises(BlockingIOError):
            ear.accept()


async def test_nothing_is_acknowledged_after_git_clean(process: Connect, owner: Client, folder: Path) -> None:
    owner.add("Cleaned away")
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(".tenure/\n")
    async with process("--session", "s1", "--agent", "ann") as agent:
        receipt = (await agent("claim"))["receipt"]
        git(folder, "clean", "-xdfq", "-e", ".gitignore")
        assert not (folder / ".tenure").exists()
        for said in (
            await agent("update", receipt=receipt, percent=50),
            await agent("finish", receipt=receipt, outcome="done", result="lost?"),
            await agent("claim"),
        ):
            assert said.is_error, said
            assert said.outcome in ("STORE_AWAY", "NO_STORE", "NOT_FOUND"), said
        assert not (folder / ".tenure" / "tenure.db").exists()  # nobody has made a new one
