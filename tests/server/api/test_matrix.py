"""Who may ask for what: every operation of the document, asked by every role and by nobody, on a server with keys."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest

from tenure.client import Client
from tenure.core import commands as c
from tenure.core.inputs import LARGEST_BATCH
from tenure.core.roles import ROLES, level_of
from tenure.server.docs_page import Operation, operations, resolved
from tenure.server.openapi import document
from tenure.testing.factories import PROJECT
from tests.server.api.ground import made
from tests.servers.tenure import TenureServer

OPERATIONS = list(operations(document()))
CLOSED = [one for one in OPERATIONS if one.spec["x-tenure-role"] is not None]
NAMES = {
    "project": PROJECT,
    "task": "Z-999",
    "dag": "dag",
    "session": "nobody",
    "agent": "nobody",
    "code": "Q",
    "key": "no",
    "scope": "agent:nobody",
    "schedule": "none",
    "trigger": "none",
    "sink": "none",
    "webhook": "none",
    "pool": "none",
    "tenant": "acme",
    "user": "mia",
    "name": "a/b.txt",
}
# The least that reaches the role's own check: the store's coordinator is another matter, see below.
ALSO = {"lead": {"agent": True}, "step_down": {"agent": True}}


class Keyed(NamedTuple):
    server: TenureServer
    keys: dict[str, str]  # by role

    def ask(self, operation: Operation, role: str | None, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
        if body is None and "requestBody" in operation.spec:
            takes_json = "application/json" in operation.spec["requestBody"]["content"]
            body = json.dumps(least_body(operation)).encode() if takes_json else b"bytes"
        headers = {"Authorization": f"Bearer {self.keys[role]}"} if role else {}
        if _name(operation) in ("inbox", "agentnews"):
            headers["Tenure-Agent"] = NAMES["agent"]
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(operation.method.upper(), least_path(operation), body, headers)
            response = connection.getresponse()
            raw = response.read()
            is_json = "json" in (response.headers["content-type"] or "")
            return response.status, json.loads(raw) if is_json else {}
        finally:
            connection.close()


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    store = str(tmp_path_factory.mktemp("matrix") / "tenure.db")
    made(store)
    with Client(store, PROJECT, create=True) as client:
        keys = {role: str(client.do(c.CreateKey(name=f"{role}'s", role=role)).secret) for role in ROLES}
    server = TenureServer(store, settings={"TENURE_SERVE_AUTH": "required"})
    try:
        server.start()
        yield Keyed(server, keys)
    finally:
        server.stop()


# --- the least request that the document allows ---


def least_path(operation: Operation) -> str:
    asked = [resolved(parameter) for parameter in operation.spec.get("parameters", ())]
    required = [p for p in asked if p["in"] == "query" and p.get("required")]
    query = "&".join(f"{p['name']}={NAMES.get(p['name'], 'x')}" for p in required)
    return operation.path.format(**NAMES) + (f"?{query}" if query else "")


def least_body(operation: Operation) -> Any:
    schema = operation.spec["requestBody"]["content"]["application/json"]["schema"]
    return least(schema) | ALSO.get(operation.spec["operationId"], {})


def least(schema: dict[str, Any]) -> Any:
    schema = resolved(schema)
    if "anyOf" in schema:
        return least(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: _field(name, schema["properties"][name]) for name in schema.get("required", ())}
    if kind == "array":
        return [least(schema["items"])] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    return "x" if kind == "string" else True if kind == "boolean" else None


RECEIPT = "Z-999@1:53Z70T9DQ1FPZ2RDF81842BXPTNRVB1Y"
KNOWN = {
    "receipt": RECEIPT, "scope": "project:", "old": "1" * 40, "new": "2" * 40, "branch": "main", "task": "Z-999",
    "key": "no key", "cron": "* * * * *", "on": "webhook",
    "url": "https://example.org/hook",
}  # fmt: skip


def _field(name: str, schema: dict[str, Any]) -> Any:
    return KNOWN[name] if name in KNOWN and resolved(schema).get("type") == "string" else least(schema)


# --- the matrix ---


def _name(operation: Operation) -> str:
    return str(operation.spec["operationId"])


@pytest.mark.parametrize("operation", CLOSED, ids=_name)
def test_each_role_may_do_what_the_document_says_and_nothing_else(keyed: Keyed, operation: Operation) -> None:
    needed = operation.spec["x-tenure-role"]
    told: dict[str | None, int | str] = {}
    expected: dict[str | None, int | str] = {}
    for role in (None, *ROLES):
        status, answer = keyed.ask(operation, role)
        is_refused = status in (401, 403)
        told[role] = status if is_refused else "allowed"
        is_allowed = role is not None and needed in ROLES and level_of(role) >= level_of(needed)
        is_allowed = is_allowed and not (role == "agent" and "x-tenure-capability" in operation.spec)
        expected[role] = "allowed" if is_allowed else 401 if role is None else 403
        if is_refused:
            assert answer["code"] == ("NOT_SIGNED_IN" if role is None else "NOT_ALLOWED")
            assert answer["definite"] is True
        assert status < 500, answer
    assert told == expected


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in CLOSED], ids=_name)
def test_what_is_open_asks_for_nobody(keyed: Keyed, operation: Operation) -> None:
    status, answer = keyed.ask(operation, None)
    if _name(operation) == "take_delivery":  # a signature takes the place of a key: see test_deliveries
        assert (status, answer["code"]) == (401, "NOT_SIGNED_IN")
    elif _name(operation) not in ("login", "logout"):  # which are about keys themselves
        assert status in (200, 503), answer


def test_in_a_batch_each_command_needs_the_role_of_its_own(keyed: Keyed) -> None:
    commands = [
        {"command": "note", "task": "B-001", "text": "seen"},
        {"command": "add", "task": {"title": "by an agent"}},
    ]
    batch = next(one for one in OPERATIONS if _name(one) == "batch")
    status, answer = keyed.ask(batch, "agent", json.dumps({"commands": commands}).encode())
    assert status == 200
    refused, done = answer["outcomes"]
    assert (refused["code"], done["outcome"]) == ("NOT_ALLOWED", "CREATED")


@pytest.mark.parametrize("role", ["agent", "member"])
def test_the_stores_coordinator_is_for_admins(keyed: Keyed, role: str) -> None:
    lead = next(one for one in OPERATIONS if _name(one) == "lead")
    assert keyed.ask(lead, role, b'{"holder": "me"}')[0] == 403


# --- before the body ---

WRITES = [one for one in CLOSED if "requestBody" in one.spec]


@pytest.mark.parametrize("operation", WRITES, ids=_name)
def test_nobodys_body_is_not_read(keyed: Keyed, operation: Operation) -> None:
    """Neither a bad one nor one that is far too large, of which not a byte is even sent."""
    assert keyed.ask(operation, None, b"\xff{not json")[0] == 401
    head = f"{operation.method.upper()} {least_path(operation)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with socket.create_connection(("127.0.0.1", keyed.server.port), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: {LARGEST_BATCH * 1000}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("operation", [one for one in WRITES if one.spec["x-tenure-role"] != "viewer"], ids=_name)
def test_nor_is_that_of_somebody_who_may_not_ask(keyed: Keyed, operation: Operation) -> None:
    assert keyed.ask(operation, "viewer", b"\xff{not json")[0] == 403


def test_a_body_of_somebody_who_may_is_bounded(keyed: Keyed) -> None:
    add = next(one for one in OPERATIONS if _name(one) == "add")
    status, answer = keyed.ask(add, "owner", b'{"task": {"title": "' + b"x" * LARGEST_BATCH + b'"}}')
    assert (status, answer["code"]) == (413, "TOO_LARGE")
