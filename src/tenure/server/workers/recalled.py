"""What one worker remembers of a sign-in counts at all of them: a scrape may come to any."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec

from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.server.auth.request_source import NAMED_TENANT
from tenure.server.workers.peers import Peers, Sender

NAME = "recall"
LIMIT = 1.0  # seconds for the answers of the others
_SENT = ("type", "method", "path", "scheme", "headers", NAMED_TENANT)
Recall = Callable[
    [MutableMapping[str, Any]], Awaitable[Principal]
]  # of a request's scope; raises where nothing is remembered


def answer_others(peers: Peers, recall: Recall) -> None:
    """Answer other workers by the rows that this one remembers."""

    async def answer(scope: dict[str, Any], send: Sender, _: asyncio.Event) -> None:
        try:
            await send(msgspec.to_builtins(await recall(scope)))
        except TenureError:
            await send(None)

    peers.answers[NAME] = answer


async def recalled_by_others(peers: Peers, scope: Mapping[str, Any]) -> Principal | None:
    """The principal of the request as another worker remembers it."""
    client = scope.get("client")
    sent = {name: scope.get(name) for name in _SENT} | {"client": None if client is None else [*client]}
    asked = [peers.ask_once(number, NAME, LIMIT, sent) for number in peers.others]
    for found in await asyncio.gather(*asked):
        if found is not None:
            return msgspec.convert(found, Principal)
    return None
