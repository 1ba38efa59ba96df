"""The replies of the `mcp` package to a client's first requests, recorded for `early_replies.py`."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from tenure.mcp.callers import StartOptions
from tenure.mcp.server import McpService
from tenure.mcp.stdio_server import StdioCallers

CLIENT = {"name": "recorder", "version": "1"}


async def _replies(protocol: str) -> dict[str, Any]:
    requests: dict[str, Any] = {
        "initialize": {"protocolVersion": protocol, "capabilities": {}, "clientInfo": CLIENT},
        "tools/list": None,
    }
    ours, read = anyio.create_memory_object_stream[Any](8)
    write, theirs = anyio.create_memory_object_stream[Any](8)
    service = McpService(StdioCallers(StartOptions("/", {}), lambda *_: AssertionError()), lambda *_: AssertionError())  # type: ignore[arg-type, return-value]
    found = {}
    async with ours, read, write, theirs, anyio.create_task_group() as group:
        options = service.server.create_initialization_options()
        group.start_soon(service.server.run, read, write, options)
        for method, params in requests.items():
            asked = JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=params)
            await ours.send(SessionMessage(asked))
            answer = (await theirs.receive()).message.model_dump_json(by_alias=True, exclude_unset=True)
            found[method] = json.loads(answer)["result"]
            if method == "initialize":
                await ours.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")))
        group.cancel_scope.cancel()
    return found


def text() -> str:
    replies = {protocol: anyio.run(_replies, protocol) for protocol in HANDSHAKE_PROTOCOL_VERSIONS}
    return json.dumps({"library": version("mcp"), "replies": replies}, indent=1, ensure_ascii=False) + "\n"
