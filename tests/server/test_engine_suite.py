"""The engine's shipped suite, timelines and all, with every command sent over HTTP to a server of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tenure.client.caller import SystemRandom
from tenure.client.transports.http import HttpTransport
from tenure.core.commands import OWNER, Command, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.server.app import App
from tenure.server.requests import Request
from tenure.server.service import Service
from tenure.stores.port import Clock, Store
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.engine.known_secrets import KnownSecrets
from tenure.testing.engine.losses import Losses
from tenure.testing.engine.repeats import Repeats
from tenure.testing.engine.secrets import Secrets
from tenure.testing.engine.stage import leaks
from tenure.testing.engine.timelines import Timelines
from tenure.testing.factories import Scene
from tenure.testing.secret_watch import plain_secrets
from tests.servers.processes import free_port

PROVES = ".proves"  # ends a key that says which agent it is


class OverHttp:
    """An engine whose commands go out by one door and come in by another; the rest is the engine's own."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine, self._url = engine, url
        self._transports: dict[str | None, HttpTransport] = {}  # by the key that is shown

    def do(self, command: Command, principal: Principal = OWNER) -> Outcome:
        return self._transport_of(principal).do(command, principal)

    def run(self, batch: Sequence[Command], principal: Principal = OWNER) -> list[Outcome | TenureError]:
        if len(batch) > 1:
            return self._transport_of(principal).run(batch, principal)
        try:
            return [self.do(batch[0], principal)]
        except TenureError as error:
            return [error]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _transport_of(self, principal: Principal) -> HttpTransport:
        key = principal.key and principal.key + PROVES * principal.is_proven
        if key not in self._transports:
            self._transports[key] = HttpTransport(
                self._url, key=key, random=SystemRandom(), monotonic=lambda: 0.0, pause=lambda _: None
            )
        return self._transports[key]

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()


class Served(uvicorn.Server):
    """A server in a thread of this process, on a store with a clock of ours."""

    def __init__(self, engine: Engine) -> None:
        self.port = free_port()
        self.service = Service(engine)
        app = App(self.service, _sign_in)
        super().__init__(uvicorn.Config(app, port=self.port, log_config=None, lifespan="on"))
        self._thread = threading.Thread(target=self.run)
        self._is_up = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._is_up.set()

    def __enter__(self) -> str:
        self._thread.start()
        assert self._is_up.wait(20)
        return f"http://127.0.0.1:{self.port}"

    def __exit__(self, *_: object) -> None:
        self.should_exit = True
        self._thread.join(20)


async def _sign_in(request: Request) -> Principal:
    """As on loopback: whoever says who it is, is. Its key is the one it shows."""
    said = {name: request.header(f"tenure-{name}".encode()) for name in ("user", "agent", "session")}
    key = (request.header(b"authorization") or "").removeprefix("Bearer ")
    return Principal(
        role=request.header(b"tenure-role") or "owner", key=key.removesuffix(PROVES) or None,
        is_proven=key.endswith(PROVES), **said,
    )  # fmt: skip


class OnServer:
    # The path of a command about the whole store has no place for a project that is none.
    test_an_unknown_project_is_not_found_by_any_command = None
    # JSON does not tell a tuple from a list.
    test_an_agent_is_known_from_its_first_command = None
    test_an_agent_is_active_while_it_holds_something = None

    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Sqlite(str(tmp_path / "tenure.db"), clock=clock)

    @pytest.fixture
    def scene(self, store: Store, clock: FakeClock) -> Iterator[Scene]:
        scene = Scene(store, clock)
        engine = scene.engine
        with Served(engine) as url:
            over = OverHttp(engine, url)
            scene.engine = over  # type: ignore[assignment]
            yield scene
            scene.engine = engine
            over.close()
            if not scene.broken:
                assert engine.verify() == []
                assert leaks(scene) == []
                assert plain_secrets(scene) == []


class TestOverHttp(OnServer, Timelines, Repeats, KnownSecrets, Secrets, Losses):
    """The rest of the suite goes the same way in `./x reliability over_http`."""
