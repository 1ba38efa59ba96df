"""The tools over streamable HTTP, by the package's own client, on a real server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tenure.client import Client
from tenure.core.commands import Principal
from tenure.core.errors import NotAllowed
from tenure.mcp.remote_callers import RemoteCallers, RemoteRequest
from tenure.mcp.server import WAITING
from tenure.mcp.tools import TOOLS
from tenure.sealing.signing import SigningKey
from tests.mcp.conftest import ERAS
from tests.server.mcp.conftest import Connect, Served

HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "2"},
    },
}  # fmt: skip


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not is_so():
            await anyio.lowlevel.checkpoint()


class Raw:
    """A client that only knows HTTP, as agents' own clients look on the wire."""

    def __init__(self, place: Served, key: str = "ann") -> None:
        self.place, self.key = place, key
        self.session: str | None = None
        self.lines: list[http.client.HTTPConnection] = []

    def send(self, method: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
        line = http.client.HTTPConnection("127.0.0.1", self.place.port, timeout=30)
        told = {
            "Authorization": f"Bearer {self.key}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        } | headers  # fmt: skip
        if self.session:
            told["Mcp-Session-Id"] = self.session
        line.request(method, "/mcp", None if body is None else json.dumps(body), told)
        self.lines.append(line)
        return line.getresponse()

    def hang_up(self) -> None:
        for line in self.lines:
            line.close()

    def open(self) -> dict[str, Any]:
        answer = self.send("POST", HELLO)
        self.session = answer.headers["mcp-session-id"]
        hello = said(answer)
        assert self.send("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
        return hello

    def call(self, tool: str, id: int = 1, **arguments: Any) -> http.client.HTTPResponse:
        params = {"name": tool, "arguments": arguments}
        return self.send("POST", {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


Dial = Callable[..., Raw]


@pytest.fixture
def raw(place: Served) -> Iterator[Dial]:
    made: list[Raw] = []

    def another(key: str = "ann") -> Raw:
        made.append(Raw(place, key))
        return made[-1]

    yield another
    for one in made:
        one.hang_up()


def said(answer: http.client.HTTPResponse) -> dict[str, Any]:
    text = answer.read().decode()
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = next(line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
    return json.loads(text)


# --- the work ---


@pytest.mark.parametrize("mode", ERAS)
async def test_a_task_goes_from_claim_to_result(connect: Connect, owner: Client, mode: str) -> None:
    owner.add("One")
    async with connect("ann", mode=mode) as ann:
        assert {tool.name for tool in (await ann.client.list_tools()).tools} == set(TOOLS)
        claimed = await ann("claim")
        assert claimed.outcome == "GRANTED"
        assert (await ann("update", receipt=claimed["receipt"], percent=50)).outcome == "RENEWED"
        assert (await ann("finish", receipt=claimed["receipt"], outcome="done")).outcome == "ACCEPTED"
    (generation,) = owner.history("A-001")
    assert (generation["agent"], generation["user"], generation["release_reason"]) == ("ann", "ann", "COMPLETED")


async def test_a_zombie_is_refused_and_the_one_that_took_over_is_accepted(connect: Connect, owner: Client) -> None:
    owner.add("x")
    async with connect("ann") as ann, connect("bo", mode="2026-07-28") as bo:
        first = await ann("claim", lease=1)
        second = await bo("claim", wait=30)
        assert (second.outcome, second["generation"]) == ("GRANTED", 2)
        late = await ann("finish", receipt=first["receipt"], outcome="done", result={"mine": 1})
        assert (late.outcome, late.is_error, late["work_lost"]) == ("STALE_GENERATION", True, True)
        assert (await bo("finish", receipt=second["receipt"], outcome="done")).outcome == "ACCEPTED"


async def test_resources_and_prompts_are_there_too(connect: Connect, owner: Client) -> None:
    owner.add("One")
    async with connect("ann") as ann:
        (content,) = (await ann.client.read_resource("tenure://task/A-001")).contents
        assert json.loads(content.text)["title"] == "One"
        assert (await ann.client.get_prompt("work")).messages


# --- who calls ---


async def test_the_key_says_who_it_is_whatever_the_client_says(connect: Connect, owner: Client) -> None:
    async with connect("bo", name="claude-code", Tenure_Agent="ann") as bo:
        assert (await bo("show", what="status"))["you"] == "bo"


async def test_a_persons_key_speaks_as_an_agent_named_after_its_client(connect: Connect, owner: Client) -> None:
    owner.add("x")
    async with connect("olaf", name="claude-code") as one, connect("olaf", name="claude-code") as other:
        names = [(await agent("show", what="status"))["you"] for agent in (one, other)]
        assert [name.partition("-")[0] for name in names] == ["claude", "claude"]
        assert names[0] != names[1]
        await one("claim")
    claim = owner.show("A-001")
    assert claim["agent"] == names[0]
    assert [agent["type"] for agent in owner.agents() if agent["name"] == names[0]] == ["claude"]


async def test_a_viewer_looks_and_takes_nothing(connect: Connect, owner: Client) -> None:
    owner.add("x")
    async with connect("vera") as vera:
        assert (await vera("show"))["tasks"][0]["key"] == "A-001-x"
        assert (await vera("claim")).outcome == "NOT_ALLOWED"


async def test_the_project_is_named_by_query_header_or_key(connect: Connect, owner: Client, tmp_path: Any) -> None:
    with Client(str(tmp_path / "tenure.db"), "q", create=True) as q:
        q.init()
        q.add("of q")
    asked = [connect(query="?project=q"), connect(Tenure_Project="q"), connect("q-only")]
    for at in asked:
        async with at as agent:
            assert (await agent("show"))["tasks"][0]["title"] == "of q"
    async with connect("q-only", query="?project=default") as agent:
        assert (await agent("show")).outcome == "NOT_FOUND"


async def test_a_session_is_of_no_use_to_another_key(raw: Dial, place: Served, owner: Client) -> None:
    ann, bo = raw("ann"), raw("bo")
    ann.open()
    bo.session = ann.session
    assert bo.call("show").status == 404
    assert ann.call("show").status == 200


async def test_the_sessions_secret_is_told_to_nobody(raw: Dial, place: Served, owner: Client) -> None:
    owner.add("x")
    agent = raw()
    agent.open()
    assert said(agent.call("claim"))["result"]["structuredContent"]["outcome"] == "GRANTED"
    assert agent.session
    assert agent.session not in json.dumps([owner.history("A-001"), owner.log()], default=str)


# --- receipts ---


async def test_a_connection_is_shown_its_receipts_again(connect: Connect, owner: Client) -> None:
    owner.add("x")
    async with connect("ann") as ann:
        receipt = (await ann("claim"))["receipt"]
        (held,) = (await ann("show", what="held"))["tasks"]
        assert held["receipt"] == receipt
        await ann("finish", receipt=receipt, outcome="done")
        assert (await ann("show", what="held"))["tasks"] == []


@pytest.mark.parametrize("mode", ERAS)
async def test_a_session_named_by_header_gets_no_receipt_of_another_connection(
    connect: Connect, owner: Client, mode: str
) -> None:
    """Its name is no secret."""
    owner.add("x")
    async with connect("olaf", Tenure_Session="s") as one:
        await one("claim")
    async with connect("olaf", mode=mode, Tenure_Session="s") as another:
        held = await another("show", what="held")
    assert "receipt" not in json.dumps(held["tasks"])


async def test_nothing_of_a_caller_is_kept_on_disk(connect: Connect, owner: Client, tmp_path: Any) -> None:
    owner.add("x")
    async with connect("ann") as ann:
        await ann("claim")
    assert not list(tmp_path.rglob("receipts"))


# --- waiting, and those who leave ---


async def test_many_wait_without_a_thread_each(connect: Connect, owner: Client, place: Served) -> None:
    crowd = WAITING + 16
    async with connect("ann") as ann:
        taken: list[str] = []

        async def wait() -> None:
            reply = await ann("claim", wait=60)
            taken.append(reply["task"]["key"])

        async with anyio.create_task_group() as group:
            for _ in range(crowd):
                group.start_soon(wait)
            await until(lambda: place.service.waiting_claims.waiting == crowd)
            assert place.mcp.service.threads.waits.borrowed_tokens == 0
            await ann("show")  # nobody else is kept waiting
            for n in range(crowd):
                owner.add(f"t{n}")
    assert len(set(taken)) == crowd


@pytest.mark.parametrize("mode", ERAS)
async def test_a_wait_that_is_cancelled_takes_nothing(
    connect: Connect, owner: Client, place: Served, mode: str
) -> None:
    async with connect("ann", mode=mode) as ann:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ann("claim", wait=60))
            await until(lambda: place.service.waiting_claims.waiting == 1)
            group.cancel_scope.cancel()
        await until(lambda: place.service.waiting_claims.waiting == 0)
    owner.add("x")
    assert owner.show("A-001")["state"] == "ready"


async def test_who_hangs_up_while_it_waits_is_given_nothing(raw: Dial, place: Served, owner: Client) -> None:
    """Without a word: its process was killed. In the handshake's era that alone cancels nothing."""
    agent = raw()
    agent.open()
    answer = agent.call("claim", wait=60)
    await until(lambda: place.service.waiting_claims.waiting == 1)
    answer.close()
    agent.hang_up()
    await until(lambda: place.service.waiting_claims.waiting == 0)
    owner.add("x")
    assert owner.show("A-001")["state"] == "ready"


async def test_a_task_granted_to_who_has_hung_up_is_given_back(raw: Dial, place: Served, owner: Client) -> None:
    owner.add("x")
    agent = raw()
    agent.open()
    said(agent.call("message", text="I am here"))  # so that it is known, and the claim is all there is to write
    with owner.store.begin("local", write=True):
        answer = agent.call("claim")
        answer.close()
        agent.hang_up()
    await until(lambda: bool(owner.history("A-001")))
    await until(lambda: owner.history("A-001")[0]["release_reason"] == "VOLUNTARY")
    assert owner.show("A-001")["state"] == "ready"


async def test_a_server_that_closes_sends_home_who_waits(connect: Connect, owner: Client, place: Served) -> None:
    async with connect("ann", mode="2026-07-28") as ann:
        async with anyio.create_task_group() as group:
            replies: list[Any] = []

            async def wait() -> None:
                replies.append(await ann("claim", wait=60))

            group.start_soon(wait)
            await until(lambda: place.service.waiting_claims.waiting == 1)
            place.service.begin_close()
        assert replies[0].outcome == "NO_TASK"


# --- the wire ---


async def test_claude_codes_hello_is_answered(raw: Dial, place: Served, owner: Client) -> None:
    hello = raw().open()["result"]
    assert (hello["serverInfo"]["name"], hello["protocolVersion"]) == ("tenure", "2025-06-18")
    assert "Work only on a task that you have claimed" in hello["instructions"]


async def test_there_is_no_stream_beside_the_answers(raw: Dial, place: Served, owner: Client) -> None:
    """So no idle agent holds a connection open; clients are made for that."""
    agent = raw()
    agent.open()
    answer = agent.send("GET", Accept="text/event-stream")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, DELETE")


async def test_a_session_that_was_ended_is_unknown(raw: Dial, place: Served, owner: Client) -> None:
    agent = raw()
    agent.open()
    assert agent.send("DELETE").status == 200
    assert agent.call("show").status == 404


@pytest.mark.parametrize("body", [[], {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1, "method": "no/such"}, "x", None])
async def test_what_is_no_request_is_told_so(raw: Dial, place: Served, owner: Client, body: Any) -> None:
    agent = raw()
    agent.open()
    answer = agent.send("POST", body)
    assert answer.status in (200, 202, 400)
    if answer.status == 200:
        assert "error" in said(answer)


def test_a_session_that_signs_is_refused(place: Served, owner: Client) -> None:
    """The server holds no private key: what it submitted here could never count."""
    with Client(str(place.store), "default", agent="ann", session="signs") as ann:
        ann.register(public_key=SigningKey(b"\x01" * 32).public)
    callers = RemoteCallers(place.service.engine, place.service.batcher, {}, "default")
    with pytest.raises(NotAllowed, match="signs its results"):
        callers.find(RemoteRequest(Principal(role="agent", agent="ann", session="signs")))
    assert callers.find(RemoteRequest(Principal(role="agent", agent="ann", session="other"))).client.session == "other"
