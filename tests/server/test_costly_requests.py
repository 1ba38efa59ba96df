"""Requests whose cost grows with the log or their body: few run at once, and everybody else is answered meanwhile."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tenure.client.routes import PREFIX, QUERIES
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import Principal
from tenure.core.errors import Overloaded
from tenure.core.queries import Log, Overview, Query, Tasks
from tenure.engine import Engine
from tenure.engine.reads import costly
from tenure.engine.reads.query_table import read_query
from tenure.server import plan_routes
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy
from tenure.server.logs import ServerLog
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import SECRETS, Dice
from tests.server.tenant_worlds import Said, Sent, Served

PROJECT = f"{PREFIX}/projects/p"
PLAN = json.dumps({"text": "name: x\ntasks:\n- title: one\n", "path": "x.yaml"}).encode()
LARGE = b'{"commands": []' + b" " * limits.COSTLY_BODY + b"}"
COSTLY = [("GET", r.path, b"") for r in QUERIES if r.asks.declaration.costly and r.method == "GET"] + [  # type: ignore[union-attr]
    ("POST", "/projects/{project}/forecast", b"{}"),
    ("POST", "/projects/{project}/plan-files", PLAN),
    ("POST", "/projects/{project}/preview", LARGE),
    ("GET", "/projects/{project}/tasks?text=word", b""),
    ("GET", "/projects/{project}/tasks?at=1", b""),
    ("GET", "/projects/{project}?at=1", b""),
    ("GET", f"/projects/{{project}}/overview?minutes={limits.OVERVIEW_SHORT + 1}", b""),
    ("GET", f"/projects/{{project}}/events?limit={limits.LISTED + 1}", b""),
]
CHEAP = ("/me", "/projects", "/projects/p", "/projects/p/tasks", "/projects/p/overview", "/projects/p/events")


class Place(Served):
    def __init__(self) -> None:
        engine = Engine(Memory(clock=FakeClock()), Dice(), SECRETS)
        engine.do(c.DefineProject(project="p"))
        self.keys = [str(engine.do(c.CreateKey(name=name, role="owner")).secret) for name in ("ann", "bo")]
        super().__init__(Assembly(engine, Policy(auth="required", rate=0), ServerLog("error", stream=io.BytesIO())))

    def sent(self, method: str, path: str, body: bytes = b"", key: int = 0) -> Sent:
        target = PREFIX + path.replace("{project}", "p")
        return Sent(path, method, target, {"Authorization": f"Bearer {self.keys[key]}"}, body)

    def ask(self, method: str, path: str, body: bytes = b"", key: int = 0) -> Said:
        return self.send(self.sent(method, path, body, key))


@pytest.fixture
def place() -> Iterator[Place]:
    place = Place()
    yield place
    place.close()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Others are inside the gate, as many as may be."""
    monkeypatch.setattr(costly, "_AT_ONCE", threading.BoundedSemaphore(limits.COSTLY))
    with ExitStack() as stack:
        threads = [Inside() for _ in range(limits.COSTLY)]
        for one in threads:
            stack.enter_context(one)
        yield


class Inside:
    """A thread that is inside the gate."""

    def __enter__(self) -> None:
        self.goes_on, entered = threading.Event(), threading.Event()

        def stay() -> None:
            with costly.gate():
                entered.set()
                self.goes_on.wait(60)

        self.thread = threading.Thread(target=stay)
        self.thread.start()
        assert entered.wait(60)

    def __exit__(self, *_: object) -> None:
        self.goes_on.set()
        self.thread.join()


def test_costly_requests_are_refused_while_others_run_and_all_others_are_answered(place: Place, full: None) -> None:
    for method, path, body in COSTLY:
        said = place.ask(method, path, body)
        assert (said.status, json.loads(said.body)["code"]) == (503, "OVERLOADED"), path
    for path in CHEAP:
        assert place.ask("GET", path).status == 200, path
    assert place.ask("POST", "/projects/p/preview", b'{"commands": []}').status == 200


def test_costly_requests_are_answered_when_there_is_room(place: Place) -> None:
    for method, path, body in COSTLY:
        assert place.ask(method, path, body).status in (200, 404), path  # 404: the log is not sealed


def test_what_is_behind_the_gate_is_declared_with_its_route(place: Place) -> None:
    """The requests above are all of them: one that is declared later has to be added."""
    declared = {r.path for r in QUERIES if r.asks.declaration.costly}  # type: ignore[union-attr]
    declared |= {one.path.removeprefix(PREFIX) for one in place.assembly.app.endpoints() if one.is_costly}
    assert declared <= {path.partition("?")[0] for _, path, _ in COSTLY}
    assert {path for path in declared if "audit" in path or "forecast" in path or "plan" in path}


def test_only_some_run_at_once_some_wait_and_another_key_is_answered_meanwhile(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, most, goes_on, lock = 0, 0, threading.Event(), threading.Lock()
    entered = threading.Semaphore(0)
    read = plan_routes.files.read

    def slow(*given: Any) -> Any:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        entered.release()
        assert goes_on.wait(60)
        with lock:
            inside -= 1
        return read(*given)

    monkeypatch.setattr(plan_routes.files, "read", slow)
    many = limits.COSTLY + limits.COSTLY_WAITING + 4
    statuses: list[int] = []

    async def one() -> None:
        statuses.append((await place.answer(place.sent("POST", "/projects/p/plan-files", PLAN))).status)

    async def scene() -> None:
        asking = [asyncio.ensure_future(one()) for _ in range(many)]
        for _ in range(limits.COSTLY):
            assert await asyncio.to_thread(entered.acquire, timeout=60)
        for path in CHEAP:
            assert (await place.answer(place.sent("GET", path, key=1))).status == 200
        goes_on.set()
        await asyncio.gather(*asking)

    place.loop.run(scene())
    assert most == limits.COSTLY
    assert (statuses.count(200), statuses.count(503)) == (limits.COSTLY + limits.COSTLY_WAITING, 4)


QUICK = (Tasks(project="p", text="x"), Log(project="p", limit=5000), Overview(project="p", minutes=9999))


@pytest.mark.parametrize("query", QUICK)
def test_an_embedded_program_does_not_meet_the_gate(full: None, query: Query) -> None:
    engine = Engine(Memory(), Dice())
    engine.do(c.DefineProject(project="p"))
    read_query(engine, query)
    with pytest.raises(Overloaded):
        read_query(engine, query, Principal(address="127.0.0.1", tenant="local"))
