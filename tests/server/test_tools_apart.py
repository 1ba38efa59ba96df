"""No MCP tool and no stream tells of another tenant: the same calls in two worlds, with names of both tenants."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.config import read_settings
from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import TenureError
from tenure.mcp.arguments import ENDINGS, VIEWS, schema
from tenure.mcp.remote_callers import RemoteCallers, RemoteRequest
from tenure.mcp.replies import error_reply
from tenure.mcp.tools import TOOLS, Call, answer
from tests.server.tenant_worlds import HIDDEN, OURS, PROJECT, Apart, World
from tests.server.test_tenants_apart import in_memory

EACH = 25  # calls of each tool
LAST = "the last of all"


@pytest.fixture(params=[2, 1], ids=["other ids", "equal ids"])
def apart(request: pytest.FixtureRequest) -> Iterator[Apart]:
    apart = Apart(in_memory, seed=7, theirs=request.param)
    yield apart
    assert list(apart.end()) == []  # rows of theirs that have changed, and broken promises


def test_no_tool_tells_of_another_tenant(apart: Apart, tmp_path: Path) -> None:
    settings = read_settings(str(tmp_path), {}, {})
    worlds = {world: callers_of(world, settings) for world in (apart.both, apart.alone)}
    answered = set()
    receipts = apart.names["receipt"]
    for name in ("claim", *sorted(TOOLS)):
        for number in range(EACH):
            given = arguments(apart, name, with_more=number > EACH // 3)
            if name in ("update", "finish") and number % 2:
                given["receipt"] = apart.dice.choice(receipts[-EACH:])  # of a claim by these tools
            project = apart.dice.choice([PROJECT, PROJECT, PROJECT, HIDDEN])
            one, other = (said(callers, name, given, project) for callers in worlds.values())
            assert one == other, (name, given)
            if b'"is_error":false' in one:
                answered.add(name)
                receipts += re.findall(r'"receipt":"([^"]+)"', one.decode())
    assert answered == set(TOOLS)


def callers_of(world: World, settings: Any) -> RemoteCallers:
    assembly = world.assembly
    return RemoteCallers(
        assembly.service.engine, assembly.service.threads.batcher, settings, PROJECT,
        engine_of=assembly.engines.find, batcher_of=assembly.tenants.batcher_of,
    )  # fmt: skip


def said(callers: RemoteCallers, name: str, given: dict[str, Any], project: str) -> bytes:
    who = Principal(role="agent", tenant=OURS, key="k", user="mia", agent="ann", is_proven=True)
    try:
        caller = callers.find(RemoteRequest(who, "claude-code", "connection", "s-ann", project))
        reply = answer(name, Call(caller, lambda: True), given)
    except TenureError as error:
        reply = error_reply(error)
    return msgspec.json.encode(reply._asdict())


def arguments(apart: Apart, name: str, *, with_more: bool) -> dict[str, Any]:
    """Those that it needs, and some that it may have, with names of both tenants."""
    shape = schema(TOOLS[name].takes)
    required = shape.get("required", ())
    given = {}
    for field, told in shape["properties"].items():
        if field != "wait" and (field in (*required, "title") or (with_more and apart.dice.random() < 0.4)):
            given[field] = value(apart, field, told)
    return given


def value(apart: Apart, field: str, told: dict[str, Any]) -> Any:
    choices = {"priority": ("high", "7"), "what": VIEWS, "outcome": ENDINGS, "class": ("task", "timeout")}
    if field in choices:
        return apart.dice.choice(choices[field])
    kind = told.get("type", "string")
    if kind == "array":
        return [apart.dice.choice(apart.names.get({"after": "task"}.get(field, field), ["x"]))]
    simple: dict[str, Any] = {"integer": 1, "number": 60, "boolean": True, "object": {}}
    names = {"summary": "text", "description": "text", "emit": "title"}
    return simple[kind] if kind in simple else apart.dice.choice(apart.names.get(names.get(field, field), ["x"]))


def test_no_stream_tells_of_another_tenant(apart: Apart) -> None:
    """From its beginning: what comes later is read by the same query."""
    for world in (apart.both, apart.alone):
        if world.theirs is not None:
            apart.before = {}
            world.theirs.add("of another tenant")
            apart.before = world.dump(world.theirs)
        world.ours.do(c.Add, project=PROJECT, task=NewTask(title=LAST))
    tasks = apart.names["task"]
    wanted: list[tuple[str, Callable[[bytes], bool]]] = [
        (f"/api/v1/projects/{PROJECT}/events", has_last),
        (f"/api/v1/projects/{PROJECT}/events?store=true", has_last),
        (f"/api/v1/projects/{HIDDEN}/events", lambda _: True),
        *((f"/api/v1/projects/{PROJECT}/events?task={task}", lambda _: True) for task in tasks),
    ]
    for target, is_over in wanted:
        one, other = (streamed(world, target, is_over) for world in (apart.both, apart.alone))
        assert one == other, target


def has_last(body: bytes) -> bool:
    return LAST.encode() in body


def streamed(world: World, target: str, is_over: Callable[[bytes], bool]) -> tuple[int, bytes]:
    """What a stream says until then."""
    path, _, query = target.partition("?")
    headers = {
        "Host": "localhost", "Accept": "text/event-stream", "Last-Event-ID": "0",
        "Authorization": f"Bearer {world.keys['owner']}",
    }  # fmt: skip
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "scheme": "https", "state": {}, "http_version": "1.1", "client": ("10.0.0.1", 4711),
        "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
    }  # fmt: skip
    status, body = 0, b""

    async def read() -> None:
        over = asyncio.Event()

        async def send(message: Any) -> None:
            nonlocal status, body
            status = message.get("status", status)
            body += message.get("body", b"")
            if body and is_over(body):
                over.set()

        async def receive() -> dict[str, Any]:
            await over.wait()
            return {"type": "http.disconnect"}

        async with asyncio.timeout(60):
            await world.assembly.app(scope, receive, send)

    world.loop.run(read())
    return status, body
