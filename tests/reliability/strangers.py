"""Who gets in, and what they learn: every operation by every identity, names of tenants and projects, tokens, crowds.

Nobody is answered above their role, no answer tells a project or tenant that exists from one that does not, also while
a store is away, no token breaks anything, and one key's thousands of connections lock nobody out.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from tempfile import TemporaryDirectory

import jwt

from tenure.client import Client
from tenure.core import commands as c
from tenure.core.errors import TenureError
from tenure.core.roles import ROLES, level_of
from tenure.engine import Engine
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Jwt, Policy
from tenure.server.docs_page import Operation
from tenure.server.logs import ServerLog
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import SECRETS, Dice
from tests.reliability import results
from tests.server.api.test_matrix import CLOSED, NAMES, OPERATIONS, least_body, least_path
from tests.server.auth.conftest import Door
from tests.server.auth.test_tokens import SECRET, content
from tests.server.stranger_worlds import FAR, House, differences
from tests.server.stranger_worlds import NAMES as TENANTS
from tests.server.tenant_worlds import Sent, Served
from tests.servers.tenure import TenureServer

MOST_SHOWN = 10
HIDDEN, NOWHERE = "hidden", "nowher"  # of equal length
Counted = tuple[int, list[str]]


class Office(Served):
    """A server with three projects, and a key of each role: for all of them, and for one."""

    def __init__(self) -> None:
        engine = Engine(Memory(clock=FakeClock()), Dice(), SECRETS)
        for project in (NAMES["project"], HIDDEN):
            engine.do(c.DefineProject(project=project))
        made = {
            (role, scope): engine.do(c.CreateKey(name=f"{role}-{len(scope)}", role=role, projects=scope)).secret
            for role in ROLES
            for scope in ((), (NAMES["project"],))
        }
        self.keys = {who: str(secret) for who, secret in made.items()}
        log = ServerLog("error", stream=io.BytesIO())
        super().__init__(Assembly(engine, Policy(auth="required", rate=0), log))

    def sent(self, operation: Operation, key: str | None, project: str | None = None) -> Sent:
        body, kind = b"", {}
        if "requestBody" in operation.spec:
            takes_json = "application/json" in operation.spec["requestBody"]["content"]
            body = json.dumps(least_body(operation)).encode() if takes_json else b"bytes"
            kind = {"Content-Type": "application/json"} if takes_json else {}
        path = least_path(operation)
        if project is not None:
            path = path.replace(f"/projects/{NAMES['project']}", f"/projects/{project}")
        named = {"Authorization": f"Bearer {key}"} if key else {}
        return Sent(str(operation.spec["operationId"]), operation.method.upper(), path, {**kind, **named}, body)


def by_role(operations: list[Operation] = CLOSED) -> Counted:
    """Every operation by every identity: none is answered above its role, and nothing fails."""
    office, count, found = Office(), 0, []
    for operation in operations:
        needed = operation.spec["x-tenure-role"]
        for who, key in (*office.keys.items(), (("", ()), None)):
            said, count = office.send(office.sent(operation, key)), count + 1
            is_refused = said.status in (401, 403, 404)
            if (level_of(who[0]) < level_of(needed) and not is_refused) or (key is None and said.status != 401):
                found.append(
                    f"{operation.spec['operationId']} needs {needed}, {who}: {said.status} {said.body[:200]!r}"
                )
            if said.status == 500:
                found.append(f"{operation.spec['operationId']}, {who}: {said.body[:200]!r}")
    office.close()
    return count, found


def of_projects(operations: list[Operation] = OPERATIONS) -> Counted:
    """A key for one project asks about one that it may not see, and about one that does not exist."""
    office, count, found = Office(), 0, []
    for operation in operations:
        if "{project}" not in operation.path:
            continue
        for (role, scope), key in office.keys.items():
            if not scope:
                continue
            told = set()
            for project in (HIDDEN, NOWHERE):
                said, count = office.send(office.sent(operation, key, project)), count + 1
                told.add((said.status, said.headers, said.body.replace(project.encode(), b"NAME")))
            if len(told) > 1:
                found.append(f"{operation.spec['operationId']}, {role}: {told}")
    office.close()
    return count, found


STATES: dict[str, Callable[[House], object]] = {
    "all there": lambda house: None,
    "own store away, never open": lambda house: setattr(house.own, "is_away", True),
    "own store away, was open": lambda house: (house.me(FAR), setattr(house.own, "is_away", True)),
    "home store away": lambda house: setattr(house.home_store, "is_away", True),
    "home store away, all known": lambda house: (
        [house.me(name) for name in ("local", *TENANTS[:2])],
        differences(house),
        setattr(house.home_store, "is_away", True),
        house.age(),
    ),
}  # fmt: skip


def of_tenants() -> Counted:
    """Every form of naming a tenant, in every order of the names, while stores are there and while they are away."""
    count, found = 0, []
    for state, bring in STATES.items():
        for turn in range(len(TENANTS)):
            house = House()
            bring(house)
            asked, told = differences(house, (*TENANTS[turn:], *TENANTS[:turn]))
            count, found = count + asked, found + [f"{state}: {one}" for one in told]
            house.close()
    return count, found


def of_tokens(seed: int, forms: int) -> Counted:
    """Signed tokens whose claims are anything that JSON can be: accepted or refused, and nothing else."""
    dice, door = random.Random(seed), Door(Policy(jwt=Jwt("https://issuer.example", "tenure", secret=SECRET)))
    found: list[str] = []
    odd = [
        None, True, 0, -1, 1.5, 2**70, 10**400, float("inf"), float("nan"), "", "1", "x", "\0", "\ud800", [], ["x"],
        [[]], {}, {"a": [1]}, "9" * 400, str(2**33), 1e300,
    ]  # fmt: skip
    names = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti", "role", "agent", "projects", "capabilities")
    for _ in range(forms):
        claims = {name: dice.choice(odd) for name in dice.sample(names, dice.randint(1, 3))}
        door.pass_time(10)
        token = jwt.api_jws.encode(json.dumps({**content(), **claims}).encode(), SECRET, "HS256")
        try:
            door.admit(token)
        except TenureError as error:
            if error.code not in ("NOT_SIGNED_IN", "NOT_FOUND", "INVALID_INPUT"):
                found.append(f"{claims}: {error.code}")
        except Exception as error:  # noqa: BLE001 - that is what it looks for
            found.append(f"{claims}: {error!r}")
    return forms, found


def of_crowds(connections: int, workers: int) -> Counted:
    """One viewer's key opens so many connections, and keeps them; the owner gets in now and then, and at the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections, found = min(connections, hard // 2), []
    with TemporaryDirectory() as folder, ExitStack() as stack:
        with Client(f"{folder}/tenure.db", "p", create=True) as client:
            client.init()
            keys = {role: str(client.do(c.CreateKey(name=role, role=role)).secret) for role in ("viewer", "owner")}
        options = ("--workers", str(workers)) if workers > 1 else ()
        server = TenureServer(f"{folder}/tenure.db", *options, settings={"TENURE_SERVE_AUTH": "required"})
        server.start()
        stack.callback(server.stop)
        head = f"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {keys['viewer']}\r\n\r\n".encode()
        for number in range(connections):
            with suppress(OSError):
                line = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
                line.sendall(head)
                line.recv(65536)
            if number % 500 == 499 or number == connections - 1:
                found += _owner(server.port, keys["owner"], number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections, found


def _owner(port: int, key: str, number: int) -> Iterator[str]:
    line = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        line.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {key}"})
        status = line.getresponse().status
        if status != 200:
            yield f"after {number + 1} connections the owner got {status}"
    except OSError as error:
        yield f"after {number + 1} connections the owner got {error!r}"
    finally:
        line.close()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability strangers", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--tokens", type=int, default=2000, help="forms of tokens")
    parser.add_argument("--connections", type=int, default=5000, help="of one key, at most half of the open files")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    began = time.monotonic()
    parts: dict[str, Counted] = {
        "role_and_route": by_role(),
        "projects": of_projects(),
        "tenants": of_tenants(),
        "tokens": of_tokens(seed, options.tokens),
        "connections": of_crowds(options.connections, options.workers),
    }
    figures: dict[str, results.Figure] = {name: count for name, (count, _) in parts.items()}
    findings = [f"{name}: {one}" for name, (_, found) in parts.items() for one in found]
    results.tell("strangers", {**figures, "findings": len(findings), "seconds": round(time.monotonic() - began)})
    print(f"seed {seed}", *findings[:MOST_SHOWN], sep="\n")
    print("nobody got in, and nobody learned anything" if not findings else f"FAILED: {len(findings)} findings")
    return 1 if findings else 0
