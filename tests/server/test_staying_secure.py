"""A browser that came by TLS is told to come by TLS from now on; one that did not is told nothing of the kind."""

import asyncio

import pytest

from tenure.client.caller import SystemRandom
from tenure.core.errors import NotSignedIn
from tenure.engine import Engine
from tenure.server.app import STAY_SECURE, App
from tenure.server.service import Service
from tenure.stores.open_store import open_store


@pytest.mark.parametrize(("scheme", "is_told"), [("https", True), ("http", False)])
async def test_the_header_comes_with_every_answer_over_tls(scheme, is_told):
    async def nobody(request):
        raise NotSignedIn("nobody is let in")

    async def receive():
        await asyncio.Event().wait()

    service = Service(Engine(open_store("memory://"), SystemRandom()))
    sent: asyncio.Queue = asyncio.Queue()
    path = "/api/v1/projects"
    scope = {
        "type": "http", "scheme": scheme, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }  # fmt: skip
    await App(service, nobody)(scope, receive, sent.put)
    begun = sent.get_nowait()
    assert begun["status"] == 401
    assert (STAY_SECURE in begun["headers"]) == is_told
    await service.close()
